package proto

import "testing"

// What a reconfig may put into /zookeeper/config is read again as the same
// members: a host name cannot smuggle in another line.
func TestAHostNameCannotBeTakenForAnotherMember(t *testing.T) {
	var m Membership
	for _, joining := range []string{
		"server.4=a\nserver.9=b:1:2;3", "server.4=a b:1:2;3", "server.4=a|b:1:2;3", "server.4=[[a]:1:2;3",
		"server.4=a:1:2;b\nc:3", "server.4=a]b:1:2;3",
	} {
		if next, err := m.Change(joining, NullString, false); err == nil {
			t.Errorf("%q became %q", joining, next)
		}
	}
	for _, joining := range []string{"server.4=[::1]:1:2:observer;[::2]:3", "4=host.example:1:2;3", "server.4=:1:2;3"} {
		next, err := m.Change(joining, NullString, false)
		if err != nil {
			t.Errorf("%q: %v", joining, err)
			continue
		}
		if again, err := ParseMembership(next.String()); err != nil || again.String() != next.String() {
			t.Errorf("%q became %q and then %q, %v", joining, next, again, err)
		}
	}
}
