package zktest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/zooraft/zooraft/zktest"
)

// The clients here are the Go client that most programs use.

// limit is how long a test waits for something to happen. It measures nothing.
const limit = 60 * time.Second

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// dial opens a session. The client's own channel drops what comes while it holds
// six events, so that a reader who is held up would wait for ever; this one has
// room for all.
func dial(timeout time.Duration, addrs ...string) (*zk.Conn, <-chan zk.Event, error) {
	events := make(chan zk.Event, 10_000)
	conn, _, err := zk.Connect(addrs, timeout, zk.WithLogger(quiet{}), zk.WithEventCallback(func(e zk.Event) { events <- e }))
	return conn, events, err
}

// connect opens a session that is closed with the test, and waits for it.
func connect(t testing.TB, timeout time.Duration, addrs ...string) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events, err := dial(timeout, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	await(t, events, zk.StateHasSession)
	return conn, events
}

// await waits for a state of the connection.
func await(t testing.TB, events <-chan zk.Event, state zk.State) {
	t.Helper()
	deadline := time.After(limit)
	for {
		select {
		case e := <-events:
			if e.Type == zk.EventSession && e.State == state {
				return
			}
		case <-deadline:
			t.Fatalf("the connection did not reach %v", state)
		}
	}
}

func create(t testing.TB, conn *zk.Conn, path, data string, flags int32) {
	t.Helper()
	if _, err := conn.Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leaks fails the test if a goroutine is left when all its servers and clients
// are stopped. It must be called first.
func leaks(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func TestAServerIsReadyWhenTheCallReturns(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, _ := connect(t, time.Second, srv.Addr())
	create(t, conn, "/a", "data", 0)
	data, stat, err := conn.Get("/a")
	if err != nil || string(data) != "data" || stat.Version != 0 {
		t.Errorf("got %q, %+v, %v", data, stat, err)
	}
}

func TestThreeServersAreReadyWhenTheCallReturns(t *testing.T) {
	leaks(t)
	ens := zktest.NewEnsemble(t, 3)
	for i, addr := range ens.Addrs() {
		conn, _ := connect(t, 10*time.Second, addr)
		create(t, conn, "/a"+string(rune('0'+i)), "data", 0)
		if _, err := conn.Sync("/"); err != nil {
			t.Fatal(err)
		}
		names, _, err := conn.Children("/")
		if err != nil || len(names) != i+2 {
			t.Errorf("server %d has %v (%v)", i+1, names, err)
		}
	}
}

// Three servers are ready in milliseconds because the first leader is not waited
// for: a timeout that nobody here has the patience for does not matter. Votes may
// split on a busy machine, which then takes that timeout; not again and again.
func TestTheFirstLeaderIsElectedWithoutWaitingForATimeout(t *testing.T) {
	leaks(t)
	var errs error
	for range 3 {
		ens, err := zktest.StartEnsemble(3, zktest.ElectionTimeout(time.Minute))
		if err == nil {
			must(t, ens.Stop())
			return
		}
		errs = errors.Join(errs, err)
	}
	t.Error(errs)
}

func TestAKilledServerComesBackWithAddressSessionsAndData(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{"in memory": nil, "on disk": {zktest.OnDisk("")}} {
		t.Run(name, func(t *testing.T) {
			leaks(t)
			srv := zktest.NewServer(t, opts...)
			addr := srv.Addr()
			conn, events := connect(t, 30*time.Second, addr)
			create(t, conn, "/a", "data", zk.FlagEphemeral)
			session := conn.SessionID()
			must(t, srv.Kill())
			await(t, events, zk.StateDisconnected)
			must(t, srv.Restart())
			await(t, events, zk.StateHasSession)
			if srv.Addr() != addr || conn.SessionID() != session {
				t.Errorf("address %s, session %#x; before %s, %#x", srv.Addr(), conn.SessionID(), addr, session)
			}
			if data, _, err := conn.Get("/a"); err != nil || string(data) != "data" {
				t.Errorf("got %q, %v", data, err)
			}
		})
	}
}

// The benchmarks stand for two demands: a server alone serves within 50 ms, and
// three within 500 ms. Beside the mean they report the slowest start of all.

func BenchmarkStartOfOneServer(b *testing.B)    { benchmarkStart(b, 1) }
func BenchmarkStartOfThreeServers(b *testing.B) { benchmarkStart(b, 3) }

func benchmarkStart(b *testing.B, servers int) {
	var slowest time.Duration
	for b.Loop() {
		begun := time.Now()
		ens, err := zktest.StartEnsemble(servers)
		if err != nil {
			b.Fatal(err)
		}
		slowest = max(slowest, time.Since(begun))
		b.StopTimer()
		must(b, ens.Stop())
		b.StartTimer()
	}
	b.ReportMetric(slowest.Seconds()*1000, "slowest-ms")
}
