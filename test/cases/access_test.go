package cases

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// hashes of user u with password secret, and user v with password other.
const (
	userU = "u:8xJeoMakDQaA8NkfWetBIBym4mk="
	userV = "v:wmLhBk5G9gWCMec1YI0wYl/+B2U="
)

func (s *session) acl(path string) []proto.ACL {
	s.t.Helper()
	return s.want(proto.ErrOK, proto.OpGetACL, proto.AppendString(nil, path)).ACLs()
}

// Case 40: an entry for everybody beside others is kept, in its place.
func TestAnEntryForEverybodyBesideOthersIsKept(t *testing.T) {
	lists := map[string][]proto.ACL{
		"world, auth":                   {world(proto.PermAll), authACL(proto.PermRead)},
		"world, digest":                 {world(proto.PermAll), digestACL(userU, proto.PermRead)},
		"world without admin, digest":   {world(proto.PermRead | proto.PermWrite), digestACL(userU, proto.PermAll)},
		"digest first, then everybody":  {digestACL(userU, proto.PermAll), world(proto.PermRead)},
		"the same entry a second time":  {world(proto.PermRead), digestACL(userU, proto.PermAll), world(proto.PermRead)},
		"two digests beside everybody ": {digestACL(userU, proto.PermRead), digestACL(userV, proto.PermAll), world(proto.PermWrite)},
	}
	verify := func(t *testing.T, s *peer.Server, top string, when string) {
		t.Helper()
		admin := open(t, s)
		admin.auth("super:secret")
		anybody := open(t, s)
		for name, list := range lists {
			path := fmt.Sprintf("%s/%x", top, name)
			var want []proto.ACL
			for _, a := range list {
				if a.ID.Scheme == "auth" {
					a = digestACL(userU, a.Perms)
				}
				if !slices.Contains(want, a) {
					want = append(want, a)
				}
			}
			if got := admin.acl(path); !slices.Equal(got, want) {
				t.Errorf("%s, %s: %v, want %v", when, name, got, want)
			}
			var granted int32
			for _, a := range want {
				if a.ID.Scheme == "world" {
					granted |= a.Perms
				}
			}
			code, _ := anybody.do(proto.OpGetData, readBody(path, false))
			if (code == proto.ErrOK) != (granted&proto.PermRead != 0) {
				t.Errorf("%s, %s: anybody reads with error %d", when, name, code)
			}
			code, _ = anybody.do(proto.OpSetData, setBody(path, nil, -1))
			if (code == proto.ErrOK) != (granted&proto.PermWrite != 0) {
				t.Errorf("%s, %s: anybody writes with error %d", when, name, code)
			}
		}
	}
	make := func(t *testing.T, s *peer.Server) string {
		t.Helper()
		c := open(t, s)
		top := c.top()
		c.auth("u:secret")
		for name, list := range lists {
			c.createWith(list, fmt.Sprintf("%s/%x", top, name))
		}
		return top
	}
	both(t, func(t *testing.T, s *peer.Server) { verify(t, s, make(t, s), "at once") })
	t.Run("after a restart", func(t *testing.T) {
		s := own(t, nil)
		top := make(t, s)
		s.Restart(t)
		verify(t, s, top, "after a restart")
	})
}

// Case 41: who may see an ACL, and its hashes.
func TestOnlyAdminsSeeTheHashesOfAnACL(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		maker := open(t, s)
		top := maker.top()
		path := top + "/p"
		list := []proto.ACL{digestACL(userU, proto.PermRead), digestACL(userV, proto.PermAdmin)}
		maker.createWith(list, path)
		masked := []proto.ACL{digestACL("u:x", proto.PermRead), digestACL("v:x", proto.PermAdmin)}

		nobody := open(t, s)
		nobody.want(proto.ErrNoAuth, proto.OpGetACL, proto.AppendString(nil, path))
		nobody.want(proto.ErrNoAuth, proto.OpExists, readBody(path, false))
		for credentials, want := range map[string][]proto.ACL{"u:secret": masked, "v:other": list, "super:secret": list} {
			c := open(t, s)
			c.auth(credentials)
			if got := c.acl(path); !slices.Equal(got, want) {
				t.Errorf("%s sees %v, want %v", credentials, got, want)
			}
		}
	})
}

// Case 43: credentials and a create that uses them may come in one packet.
func TestTheAuthSchemeSeesCredentialsSentJustBefore(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		maker := open(t, s)
		top := maker.top()
		frame := func(xid int32, op proto.OpCode, body []byte) []byte {
			b := proto.AppendInt(proto.AppendInt(proto.BeginFrame(nil), xid), int32(op))
			return proto.EndFrame(append(b, body...), 0)
		}
		credentials := func(text string) []byte {
			p := proto.AuthPacket{Scheme: "digest", Auth: []byte(text)}
			return frame(proto.XidAuth, proto.OpAuth, p.Append(nil))
		}
		for name, tc := range map[string]struct {
			users []string
			want  []proto.ACL
		}{
			"one":  {[]string{"u:secret"}, []proto.ACL{digestACL(userU, proto.PermAll)}},
			"two":  {[]string{"u:secret", "v:other"}, []proto.ACL{digestACL(userU, proto.PermAll), digestACL(userV, proto.PermAll)}},
			"none": {nil, nil},
		} {
			c := open(t, s)
			path := top + "/" + name
			var packet []byte
			for _, u := range tc.users {
				packet = append(packet, credentials(u)...)
			}
			packet = append(packet, frame(1, proto.OpCreate, createBody(proto.OpCreate, path, nil, []proto.ACL{authACL(proto.PermAll)}, 0))...)
			packet = append(packet, frame(2, proto.OpGetACL, proto.AppendString(nil, path))...)
			if err := c.conn.SendRaw(packet); err != nil {
				t.Fatal(err)
			}
			for range tc.users {
				if h, _ := c.reply(); h.Xid != proto.XidAuth || h.Err != proto.ErrOK {
					t.Fatalf("%s: auth %+v", name, h)
				}
			}
			create, _ := c.reply()
			_, d := c.reply()
			if tc.want == nil {
				if create.Err != proto.ErrInvalidACL {
					t.Errorf("%s: error %d, want %d", name, create.Err, proto.ErrInvalidACL)
				}
				continue
			}
			if got := d.ACLs(); create.Err != proto.ErrOK || !slices.Equal(got, tc.want) {
				t.Errorf("%s: error %d, ACL %v, want %v", name, create.Err, got, tc.want)
			}
		}
	})
}
