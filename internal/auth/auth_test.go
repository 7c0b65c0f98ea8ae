package auth

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

func newAuthenticator(t *testing.T, change func(*Config)) *Authenticator {
	t.Helper()
	c := DefaultConfig()
	if change != nil {
		change(&c)
	}
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ip ACLs compare text, so the text must be the one that Java prints.
func TestAConnectionHasItsAddressAsJavaPrintsIt(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "10.1.2.3": "10.1.2.3", "::1": "0:0:0:0:0:0:0:1", "::": "0:0:0:0:0:0:0:0",
		"::ffff:1.2.3.4": "1.2.3.4", "fe80::1": "fe80:0:0:0:0:0:0:1", "2001:db8::ff00:42:8329": "2001:db8:0:0:0:ff00:42:8329",
		"2001:0DB8::000a": "2001:db8:0:0:0:0:0:a", "fe80::1%eth0": "fe80:0:0:0:0:0:0:1%eth0",
	} {
		if got := Connection(netip.MustParseAddr(addr)); got != (proto.ID{Scheme: "ip", ID: want}) {
			t.Errorf("%s: %+v, want %s", addr, got, want)
		}
	}
}

func TestAuthPacketsProveWhatTheyProveOnTheRealServer(t *testing.T) {
	here := proto.ID{Scheme: "ip", ID: "10.0.0.1"}
	ben := proto.ID{Scheme: "digest", ID: "ben:PC0ZklqkbevtIFBcBaL/OQ9DLeA="}
	root := proto.ID{Scheme: "digest", ID: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}
	super := func(c *Config) { c.SuperDigest = root.ID }
	off := func(c *Config) { c.DigestEnabled = false }
	for _, c := range []struct {
		name   string
		config func(*Config)
		packet proto.AuthPacket
		want   []proto.ID
	}{
		{"digest", nil, proto.AuthPacket{Scheme: "digest", Auth: []byte("ben:secret")}, []proto.ID{ben}},
		{"the packet's type is not looked at", nil, proto.AuthPacket{Type: 9, Scheme: "digest", Auth: []byte("ben:secret")}, []proto.ID{ben}},
		{"digest with null credentials", nil, proto.AuthPacket{Scheme: "digest"}, nil},
		{"digest with empty credentials", nil, proto.AuthPacket{Scheme: "digest", Auth: []byte{}},
			[]proto.ID{{Scheme: "digest", ID: ":2jmj7l5rSw0yVb/vlWAYkK/YBwk="}}},
		{"digest that is switched off", off, proto.AuthPacket{Scheme: "digest", Auth: []byte("ben:secret")}, nil},
		{"super", super, proto.AuthPacket{Scheme: "digest", Auth: []byte("super:test")}, []proto.ID{SuperID, root}},
		{"another password for super", super, proto.AuthPacket{Scheme: "digest", Auth: []byte("super:tesT")},
			[]proto.ID{{Scheme: "digest", ID: newAuthenticator(t, nil).Digest([]byte("super:tesT"))}}},
		{"super without a configured digest", nil, proto.AuthPacket{Scheme: "digest", Auth: []byte("super:test")}, []proto.ID{root}},
		{"super needs no such name", func(c *Config) { c.SuperDigest = ben.ID }, proto.AuthPacket{Scheme: "digest", Auth: []byte("ben:secret")},
			[]proto.ID{SuperID, ben}},
		{"ip", nil, proto.AuthPacket{Scheme: "ip", Auth: []byte("1.2.3.4")}, []proto.ID{here}},
		{"ip with null credentials", nil, proto.AuthPacket{Scheme: "ip"}, []proto.ID{here}},
		{"world", nil, proto.AuthPacket{Scheme: "world", Auth: []byte("anyone")}, nil},
		{"super as a scheme", super, proto.AuthPacket{Scheme: "super", Auth: []byte("super:test")}, nil},
		{"a scheme that is none", nil, proto.AuthPacket{Scheme: "none", Auth: []byte("x")}, nil},
		{"a null scheme", nil, proto.AuthPacket{Scheme: proto.NullString, Auth: []byte("x")}, nil},
		{"schemes are told apart by case", nil, proto.AuthPacket{Scheme: "Digest", Auth: []byte("ben:secret")}, nil},
	} {
		if got := newAuthenticator(t, c.config).Authenticate(c.packet, here); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Identities add up; the list that requests under way have is never changed.
func TestIdentitiesAddUpWithoutTouchingTheOldList(t *testing.T) {
	a, b, c := proto.ID{Scheme: "ip", ID: "::1"}, proto.ID{Scheme: "digest", ID: "u:h"}, proto.ID{Scheme: "digest", ID: "v:h"}
	first := make([]proto.ID, 1, 8)
	first[0] = a
	second, third := Add(first, b), Add(first, c)
	if !slices.Equal(first, []proto.ID{a}) || !slices.Equal(second, []proto.ID{a, b}) || !slices.Equal(third, []proto.ID{a, c}) {
		t.Errorf("%v, %v, %v", first, second, third)
	}
	if got := Add(second, b, a, c, c); !slices.Equal(got, []proto.ID{a, b, c}) {
		t.Errorf("with doubles: %v", got)
	}
}
