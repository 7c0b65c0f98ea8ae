package zktest_test

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/zktest"
)

// enqueue is somebody's code: it puts a job into a queue and tries again when
// the connection breaks.
func enqueue(conn *zk.Conn, data []byte) error {
	for {
		_, err := conn.Create("/jobs/job-", data, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) {
			continue // the mistake: the job may be there already
		}
		return err
	}
}

// The case that nobody tests: the write is done, and the answer is lost.
func ExampleLoseReply() {
	srv := startServer()
	defer srv.Stop()
	conn, _ := session(30*time.Second, srv.Addr())
	defer conn.Close()
	check(put(conn, "/jobs", "", 0))

	srv.Inject(zktest.Match{Op: "create", Path: "/jobs/*"}, zktest.LoseReply())
	check(enqueue(conn, []byte("once")))

	jobs, _, err := conn.Children("/jobs")
	check(err)
	fmt.Println(len(jobs), "jobs")
	// Output: 2 jobs
}

// A program takes a request that was sent for one that was done.
func ExampleDrop() {
	srv := startServer()
	defer srv.Stop()
	conn, _ := session(30*time.Second, srv.Addr())
	defer conn.Close()
	check(put(conn, "/orders", "", 0))

	srv.Inject(zktest.Match{Op: "create", Path: "/orders/*"}, zktest.Drop())
	_ = put(conn, "/orders/1", "a book", 0) // the mistake: nobody looks at the error

	st, err := srv.State()
	check(err)
	_, saved := st.Node("/orders/1")
	fmt.Println("saved:", saved)
	// Output: saved: false
}

// Two writes that belong together are not one: what happens when the second is
// refused?
func ExampleFail() {
	srv := startServer()
	defer srv.Stop()
	conn, _ := session(30*time.Second, srv.Addr())
	defer conn.Close()
	check(put(conn, "/from", "100", 0))
	check(put(conn, "/to", "0", 0))

	const noAuth = -102 // as in ZooKeeper's KeeperException.Code
	srv.Inject(zktest.Match{Op: "setData", Nth: 2}, zktest.Fail(noAuth))
	_, err := conn.Set("/from", []byte("0"), -1)
	check(err)
	_, err = conn.Set("/to", []byte("100"), -1) // the mistake: this is not a multi
	fmt.Println(errors.Is(err, zk.ErrNoAuth))

	from, _, err := conn.Get("/from")
	check(err)
	to, _, err := conn.Get("/to")
	check(err)
	fmt.Printf("from %s, to %s\n", from, to)
	// Output:
	// true
	// from 0, to 0
}

// Two clients count up by reading and writing. Holding one write makes sure that
// the other falls between.
func ExampleHold() {
	srv := startServer()
	defer srv.Stop()
	one, _ := session(30*time.Second, srv.Addr())
	defer one.Close()
	two, _ := session(30*time.Second, srv.Addr())
	defer two.Close()
	check(put(one, "/counter", "0", 0))
	count := func(conn *zk.Conn) {
		data, _, err := conn.Get("/counter")
		check(err)
		n, err := strconv.Atoi(string(data))
		check(err)
		_, err = conn.Set("/counter", []byte(strconv.Itoa(n+1)), -1) // the mistake: -1 is any version
		check(err)
	}

	held := srv.Inject(zktest.Match{Op: "setData", Session: one.SessionID()}, zktest.Hold())
	done := make(chan struct{})
	go func() { defer close(done); count(one) }()
	<-held.Hit()
	count(two)
	held.Release()
	<-done

	data, _, err := one.Get("/counter")
	check(err)
	fmt.Println("counted twice:", string(data))
	// Output: counted twice: 1
}

// A program gives up after its own time, and says that nothing has happened.
func ExampleDelay() {
	srv := startServer()
	defer srv.Stop()
	conn, _ := session(30*time.Second, srv.Addr())
	defer conn.Close()
	order := func(limit time.Duration) string {
		done := make(chan error, 1)
		go func() { done <- put(conn, "/order", "a book", 0) }()
		select {
		case <-done:
			return "ordered"
		case <-time.After(limit):
			return "not ordered" // the mistake: nobody knows yet
		}
	}

	late := srv.Inject(zktest.Match{Op: "create", Path: "/order"}, zktest.Delay(time.Hour))
	fmt.Println(order(50 * time.Millisecond))
	late.Release() // an hour later, as it were
	check(srv.Wait(time.Minute, "the order", func(st zktest.State) bool { _, ok := st.Node("/order"); return ok }))
	fmt.Println("but the order is there")
	// Output:
	// not ordered
	// but the order is there
}
