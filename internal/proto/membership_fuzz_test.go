package proto

import "testing"

// The texts of a reconfig come from clients, and are read while the log is
// applied: any text is judged, and what is accepted reads back as itself.
func FuzzMembership(f *testing.F) {
	const one = "server.1=a:2888:3888:participant;127.0.0.1:2181"
	f.Add(one+"\nversion=10", "server.2=[::1]:1:2:observer;3", "1,2")
	f.Add(one, "server.1=b:1:2;3", "")
	f.Add("", "server.=:::;", ",")
	f.Fuzz(func(t *testing.T, current, joining, leaving string) {
		m, err := ParseMembership(current)
		if err != nil {
			return
		}
		for _, change := range []func() (Membership, error){
			func() (Membership, error) { return m, nil },
			func() (Membership, error) { return m.Change(joining, leaving, true) },
			func() (Membership, error) { return m.Replace(joining, true) },
		} {
			next, err := change()
			if err != nil {
				continue
			}
			again, err := ParseMembership(next.String())
			if err != nil || again.String() != next.String() {
				t.Fatalf("%q became %q, %v", next.String(), again.String(), err)
			}
		}
	})
}
