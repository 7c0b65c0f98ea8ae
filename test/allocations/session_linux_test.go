package allocations

import (
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/zooraft/zooraft"
	"github.com/zooraft/zooraft/internal/proto"
)

// What an idle session holds of heap and stacks, the client's own socket of some
// 0.7 KB included, for it is in this process. Its kernel memory, and what the
// collector leaves free, are not counted.
func TestAnIdleSessionTakesNoMoreMemoryThanItDid(t *testing.T) {
	const (
		sessions = 2000
		most     = 3800 // bytes; some 2600 now, 7400 with a goroutine and a buffer each
	)
	config := zooraft.DefaultConfig(filepath.Join(t.TempDir(), "data"))
	config.Listen.MaxConnectionsPerHost = 0
	s, err := zooraft.Start(t.Context(), config, zooraft.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := proto.ConnectRequest{TimeoutMillis: 40000, Password: make([]byte, proto.PasswordLen), HasReadOnly: true}
	frame := proto.EndFrame(request.Append(proto.BeginFrame(nil)), 0)
	open := func(n int) (clients []net.Conn) {
		for range n {
			c, err := net.Dial("tcp", s.Addresses().Client.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			clients = append(clients, c)
			if _, err := c.Write(frame); err != nil {
				t.Fatal(err)
			}
			if _, err := proto.ReadFrame(c, nil, 1<<10); err != nil {
				t.Fatal(err)
			}
		}
		return clients
	}
	keep := open(100) // what the first ones alone cost is no matter of their number
	goroutines, before := runtime.NumGoroutine(), held()
	keep = append(keep, open(sessions)...)
	for deadline := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > goroutines+sessions/20; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines for %d sessions, %d before them", runtime.NumGoroutine(), sessions, goroutines)
		}
	}
	got := (held() - before) / sessions
	runtime.KeepAlive(keep)
	if got > most {
		t.Errorf("%d bytes for a session, at most %d before", got, most)
	} else {
		t.Logf("%d bytes for a session, of %d", got, most)
	}
}

// held is what is in use of heap and stacks after a collection.
func held() int64 {
	runtime.GC()
	runtime.GC() // the first one empties the pools, the second what was in them
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
