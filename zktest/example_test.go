package zktest_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/zktest"
)

// The examples show somebody's code with a mistake in it, and the fault that
// brings it to light. They print what goes wrong, so that they stay examples; a
// real test would demand the opposite. In a test, zktest.NewServer(t) is shorter
// than the helpers here.

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func startServer(opts ...zktest.Option) *zktest.Server {
	srv, err := zktest.Start(opts...)
	check(err)
	return srv
}

func startEnsemble(servers int) *zktest.Ensemble {
	ens, err := zktest.StartEnsemble(servers)
	check(err)
	return ens
}

// session connects and waits for the session.
func session(timeout time.Duration, addrs ...string) (*zk.Conn, <-chan zk.Event) {
	conn, events, err := dial(timeout, addrs...)
	check(err)
	happens(events, zk.StateHasSession)
	return conn, events
}

// happens waits for a state of the connection.
func happens(events <-chan zk.Event, state zk.State) {
	tooLate := time.After(limit)
	for {
		select {
		case e := <-events:
			if e.Type == zk.EventSession && e.State == state {
				return
			}
		case <-tooLate:
			panic(fmt.Sprintf("the connection did not reach %v", state))
		}
	}
}

func put(conn *zk.Conn, path, data string, flags int32) error {
	_, err := conn.Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll))
	return err
}

// A service registers itself when it starts, and never again.
func ExampleServer_ExpireSession() {
	srv := startServer()
	defer srv.Stop()
	conn, events := session(10*time.Second, srv.Addr())
	defer conn.Close()
	check(put(conn, "/me", "", zk.FlagEphemeral))

	check(srv.ExpireSession(conn.SessionID()))
	happens(events, zk.StateExpired)
	happens(events, zk.StateHasSession) // it runs on, with a new session

	there, _, err := conn.Exists("/me")
	check(err)
	fmt.Println("anybody finds it:", there)
	// Output: anybody finds it: false
}

// A worker takes every disconnect for the end of its lock, and stops in the
// middle of what nobody else may do now.
func ExampleServer_DropConnection() {
	srv := startServer()
	defer srv.Stop()
	conn, events := session(30*time.Second, srv.Addr())
	defer conn.Close()
	check(put(conn, "/lock", "", zk.FlagEphemeral))

	check(srv.DropConnection(conn.SessionID()))
	happens(events, zk.StateDisconnected)
	works := false // the mistake: the session lives, and the lock with it

	happens(events, zk.StateHasSession)
	locked, _, err := conn.Exists("/lock")
	check(err)
	fmt.Println("works:", works, "- holds the lock:", locked)
	// Output: works: false - holds the lock: true
}

// A program reads its configuration once, and does without if it cannot.
func ExampleServer_Kill() {
	srv := startServer()
	defer srv.Stop()
	conn, events := session(30*time.Second, srv.Addr())
	defer conn.Close()
	check(put(conn, "/limit", "100", 0))
	limit := func() string {
		data, _, err := conn.Get("/limit")
		if err != nil {
			return "none" // the mistake: a server that restarts makes it unlimited
		}
		return string(data)
	}

	check(srv.Kill())
	happens(events, zk.StateDisconnected)
	fmt.Println("while the server restarts:", limit())
	check(srv.Restart())
	happens(events, zk.StateHasSession)
	fmt.Println("after that:", limit())
	// Output:
	// while the server restarts: none
	// after that: 100
}

// A request handler asks ZooKeeper and forgets that it may not answer.
func ExampleServer_Pause() {
	srv := startServer()
	defer srv.Stop()
	conn, _ := session(30*time.Second, srv.Addr())
	defer conn.Close()
	answered := make(chan struct{})
	handle := func() {
		defer close(answered)
		_, _, err := conn.Get("/") // the mistake: no limit
		check(err)
	}

	srv.Pause()
	go handle()
	select {
	case <-answered:
		fmt.Println("answered")
	case <-time.After(200 * time.Millisecond):
		fmt.Println("the handler hangs")
	}
	srv.Resume()
	<-answered
	// Output: the handler hangs
}

// A registry keeps an entry with a time to live, below a container, and counts on
// both for ever.
func ExampleServer_Advance() {
	srv := startServer(zktest.ManualClock())
	defer srv.Stop()
	conn, _ := session(10*time.Second, srv.Addr())
	defer conn.Close()
	acl := zk.WorldACL(zk.PermAll)
	_, err := conn.CreateTTL("/announced", nil, zk.FlagTTL, acl, 10*time.Minute)
	check(err)
	_, err = conn.CreateContainer("/members", nil, zk.FlagContainer, acl)
	check(err)
	check(put(conn, "/members/first", "", 0))
	check(conn.Delete("/members/first", -1))

	check(srv.Advance(11 * time.Minute)) // takes no time

	announced, _, err := conn.Exists("/announced")
	check(err)
	fmt.Println("announced:", announced)
	fmt.Println("next member:", put(conn, "/members/second", "", 0))
	// Output:
	// announced: false
	// next member: zk: node does not exist
}

// A scheduler watches each job and never lets go of a watch.
func ExampleServer_State() {
	srv := startServer()
	defer srv.Stop()
	conn, _ := session(10*time.Second, srv.Addr())
	defer conn.Close()
	run := func(job string) {
		_, _, _, err := conn.ExistsW("/cancel/" + job) // the mistake: it outlives the job
		check(err)
	}
	for i := range 3 {
		run(fmt.Sprint("job-", i))
	}

	st, err := srv.State()
	check(err)
	for _, w := range st.Watches {
		fmt.Println(w.Kind, w.Path)
	}
	// Output:
	// data /cancel/job-0
	// data /cancel/job-1
	// data /cancel/job-2
}

// A test waits for a worker by sleeping, and fails on a busy machine. Waiting for
// the state does not; and if it never comes, the error shows what there is.
func ExampleServer_Wait() {
	srv := startServer()
	defer srv.Stop()
	registered := func(st zktest.State) bool {
		_, ok := st.Node("/workers/1")
		return ok
	}
	conn, _ := session(10*time.Second, srv.Addr())
	defer conn.Close()
	worker := make(chan struct{})
	go func() {
		defer close(worker)
		check(put(conn, "/workers", "", 0))
		check(put(conn, "/workers/1", "", zk.FlagEphemeral))
	}()
	fmt.Println(srv.Wait(time.Minute, "a worker has registered", registered))
	<-worker
	check(srv.ExpireSession(conn.SessionID()))
	err := srv.Wait(10*time.Millisecond, "a worker has registered", registered)
	fmt.Println(errors.Is(err, zktest.ErrTimeout))
	// Output:
	// <nil>
	// true
}
