package zktest_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/zktest"
)

// Somebody's leader election: who has made the node leads, until he gives it back.
type candidate struct {
	conn  *zk.Conn
	leads bool // the mistake: nobody takes it away when the session is over
}

func (c *candidate) run() {
	for !c.leads {
		switch err := put(c.conn, "/leader", "", zk.FlagEphemeral); {
		case err == nil:
			c.leads = true
		case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrNoServer):
			<-time.After(10 * time.Millisecond)
		default:
			panic(err)
		}
	}
}

// While the network is cut, the session of the one ends on the other side.
func ExampleEnsemble_Partition() {
	ens := startEnsemble(3)
	defer ens.Stop()
	alone := ens.Leader()
	rest := others(ens, alone)
	a, _ := session(time.Second, alone.Addr())
	defer a.Close()
	b, _ := session(30*time.Second, rest[0].Addr(), rest[1].Addr())
	defer b.Close()
	one, two := &candidate{conn: a}, &candidate{conn: b}
	one.run()

	ens.Partition([]*zktest.Server{alone}, rest)
	two.run()

	fmt.Println("leads:", one.leads, "- leads:", two.leads)
	ens.Heal()
	// Output: leads: true - leads: true
}

// A program looks up which server leads, and stays with that one.
func ExampleEnsemble_MoveLeader() {
	ens := startEnsemble(3)
	defer ens.Stop()
	old := ens.Leader()
	loyal, _ := session(30*time.Second, old.Addr()) // the mistake
	defer loyal.Close()
	free, _ := session(30*time.Second, ens.Addrs()...)
	defer free.Close()

	check(ens.MoveLeader(others(ens, old)[0]))
	check(old.Kill()) // an upgrade, one server after another

	err := put(loyal, "/by-the-loyal", "", 0)
	fmt.Println("loyal:", errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer))
	err = put(free, "/by-the-free", "", 0)
	for errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) {
		err = put(free, "/by-the-free", "", 0)
	}
	fmt.Println("free:", err == nil || errors.Is(err, zk.ErrNodeExists))
	// Output:
	// loyal: true
	// free: true
}
