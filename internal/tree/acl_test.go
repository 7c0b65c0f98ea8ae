package tree

import (
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestIPEntriesMatchAsApacheReadsThem(t *testing.T) {
	for _, c := range []struct {
		addr, entry string
		want        bool
	}{
		{"10.1.2.3", "10.1.2.3", true}, {"10.1.2.3", "10.1.2.4", false}, {"10.1.2.3", "10.1.2.4/31", false},
		{"10.1.2.5", "10.1.2.4/31", true}, {"10.1.2.3", "10.0.0.0/8", true}, {"11.1.2.3", "10.0.0.0/8", false},
		{"11.1.2.3", "10.0.0.0/7", true}, {"1.2.3.4", "200.0.0.0/0", true}, {"10.1.2.3", "10.9.9.9/9", true},
		{"10.1.2.3", "10.1.2.3/32", true}, {"10.1.2.3", "10.1.2.3/33", false}, {"10.1.2.3", "10.1.2.3/-1", false},
		{"10.1.2.3", "10.1.2.3/", false}, {"10.1.2.3", "10.1.2.3/x", false}, {"10.1.2.3", "10.1.2.3/+32", true},
		{"10.1.2.3", "010.01.2.3", true}, {"10.1.2.3", "10.1.2", false}, {"10.1.2.3", "10.1.2.3.", false},
		{"10.1.2.3", "10.1.2.256", false}, {"10.1.2.3", "nonsense", false}, {"10.1.2.3", "", false}, {"", "10.1.2.3", false},
		{"0:0:0:0:0:0:0:1", "::1", true}, {"0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1", true}, {"0:0:0:0:0:0:0:1", "::2", false},
		{"0:0:0:0:0:0:0:1", "::2/126", true}, {"2001:db8:0:0:0:0:0:5", "2001:db8::/32", true},
		{"2001:db9:0:0:0:0:0:5", "2001:db8::/32", false}, {"2001:db8:0:0:0:0:0:5", "2001:DB8::5", true},
		{"2001:db8:0:0:0:0:0:5", "2001:db8:0:0:0:0:0:5/128", true}, {"2001:db8:0:0:0:0:0:5", "::/0", true},
		{"2001:db8:0:0:0:0:0:5", "2001:db8::5/129", false}, {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", true},
		{"1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8", false}, {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", false},
		{"1:2:3:4:5:6:0:8", "1:2:3:4:5:6::8", true}, {"0:0:0:0:0:0:0:0", "::", true}, {"0:0:0:0:0:0:0:0", ":::", false},
		{"0:0:0:0:0:0:0:1", "1::2::3", false}, {"0:0:0:0:0:0:0:1", "::12345", false}, {"0:0:0:0:0:0:0:1", "::g", false},
		{"10.1.2.3", "::ffff:10.1.2.3", false}, {"0:0:0:0:0:0:0:1", "0.0.0.1", false}, {"0.0.0.1", "::/0", false},
		{"fe80:0:0:0:0:0:0:1%eth0", "fe80::1", false},
	} {
		acl := []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "ip", ID: c.entry}}}
		if got := Allowed(acl, proto.PermRead, []proto.ID{{Scheme: "ip", ID: c.addr}}); got != c.want {
			t.Errorf("%s against %s: %v", c.addr, c.entry, got)
		}
	}
}

func TestAllowedLooksAtEveryEntryAndIdentity(t *testing.T) {
	u, v := proto.ID{Scheme: "digest", ID: "u:h"}, proto.ID{Scheme: "digest", ID: "v:h"}
	for _, c := range []struct {
		name string
		acl  string
		perm int32
		ids  []proto.ID
		want bool
	}{
		{"no list", "none", proto.PermAdmin, nil, true},
		{"world", "1:world:anyone", proto.PermRead, nil, true},
		{"world without the bit", "1:world:anyone", proto.PermWrite, nil, false},
		{"world with another id", "31:world:someone", proto.PermRead, nil, false},
		{"any of two bits", "16:world:anyone", proto.PermRead | proto.PermAdmin, nil, true},
		{"the second entry", "1:digest:v:h;2:digest:u:h", proto.PermWrite, []proto.ID{u}, true},
		{"the second identity", "2:digest:u:h", proto.PermWrite, []proto.ID{v, u}, true},
		{"another identity", "31:digest:u:h", proto.PermRead, []proto.ID{v}, false},
		{"equal id of another scheme", "31:sasl:u:h", proto.PermRead, []proto.ID{u}, false},
		{"super", "1:ip:1.1.1.1", proto.PermAdmin, []proto.ID{v, {Scheme: "super"}}, true},
		{"an identity of a scheme that nobody knows", "31:key:k", proto.PermRead, []proto.ID{{Scheme: "key", ID: "k"}}, false},
		{"no permissions at all", "0:world:anyone", proto.PermRead, nil, false},
	} {
		if got := Allowed(parseACL(c.acl), c.perm, c.ids); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestMaskHidesWhatFollowsAColon(t *testing.T) {
	for in, want := range map[string]string{
		"u:hash": "u:x", "u": "u", "u:a:b": "u:x", ":": ":x", "a:b\nc:d\ne": "a:x\nc:x\ne", "a:b\u2028c": "a:x\u2028c", "": "",
	} {
		if got := mask(proto.ID{Scheme: "digest", ID: in}).ID; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := mask(proto.ID{Scheme: "sasl", ID: "a:b"}).ID; got != "a:b" {
		t.Errorf("sasl id became %q", got)
	}
}

func TestNamesThatX509EntriesMayHave(t *testing.T) {
	// What Java 17's X500Principal says.
	for in, want := range map[string]bool{
		`CN=a`: true, `CN=a,O=b`: true, `CN=a, O=b; C=de`: true, `cn=a+uid=b`: true, `CN=a\,b`: true, `CN="a,b",O=c`: true,
		`1.2.3=x`: true, `OID.1.2.3=x`: true, `oid.1.2.3=x`: true, ``: true, ` `: false, `CN=`: true, `a`: false,
		`XX=a`: false, `CN=a,`: false, `,CN=a`: false, `=a`: false, `CN`: false, `1=x`: false, `CN=a\`: false,
		`CN=a=b`: true, `CN="a`: false, `CN=a"b`: false, `CN=#04`: false, `CN=#0402ab`: false, `CN=#zz`: false,
		`CN=a+`: false, `CN=a,,O=b`: false, `CN =a`: true, `C N=a`: false, `3.2.3=x`: false, `1.40.3=x`: false,
		`2.999=x`: true, `1.2.=x`: false, `CN=a;`: false, `E=a`: false, `EMAIL=a`: true, `DNQ=1`: true,
		`SERIALNUMBER=1`: true, `S=a`: true, `IP=1`: true, `T=1`: true, `TITLE=a`: false, `GN=a`: false, `SN=a`: false,
		`CN=<a>`: false, `CN=a\zb`: false, `CN=a\4`: false, `CN=é`: true, "CN=a\nb": true, `OID.CN=a`: false,
		`0.9.2342.19200300.100.1.1=u`: true, `CN=a,O`: false, `CN=" a"x`: false,
	} {
		if got := validDN(in); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}
