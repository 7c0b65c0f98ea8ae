package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/zktest"
)

// sockets and files of this process, as the kernel lists them.
func descriptors(t testing.TB) int {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && (strings.HasPrefix(target, "socket:") || strings.HasPrefix(target, os.TempDir())) {
			n++
		}
	}
	return n
}

// TestFiftyServersAtOnceRestartedTwentyTimes stands for CURATOR-535 and its
// kind: ports that were picked and then stolen, a fixed port that clashes,
// goroutines and files that pile up.
func TestFiftyServersAtOnceRestartedTwentyTimes(t *testing.T) {
	// Apache's admin port is taken, by us or by somebody else.
	if l, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil {
		defer l.Close()
	}
	before := descriptors(t)
	leaks(t)
	servers, restarts := 50, 20
	if underRace {
		restarts = 3 // the whole number runs without the detector
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	seen := map[string]bool{}
	var mu sync.Mutex
	for i := range servers {
		all.Go(func() {
			var opts []zktest.Option
			if i%10 == 0 {
				opts = append(opts, zktest.OnDisk(filepath.Join(dir, fmt.Sprint(i))))
			}
			addr, err := manyLives(restarts, opts)
			if err != nil {
				t.Errorf("server %d: %v", i, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[addr] {
				t.Errorf("two servers have the address %s", addr)
			}
			seen[addr] = true
		})
	}
	all.Wait()
	until(t, "sockets and files are closed", func() bool { return descriptors(t) <= before })
}

// manyLives starts a server, restarts it again and again, writes in each life
// and finds at the end what every life has written.
func manyLives(restarts int, opts []zktest.Option) (addr string, err error) {
	srv, err := zktest.Start(opts...)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	addr = srv.Addr()
	for life := range restarts + 1 {
		if err := write(srv, fmt.Sprintf("/life-%d", life)); err != nil {
			return addr, fmt.Errorf("life %d: %w", life, err)
		}
		if life == restarts {
			break
		}
		if err := srv.Kill(); err != nil {
			return addr, err
		}
		if err := srv.Restart(); err != nil {
			return addr, fmt.Errorf("restart %d: %w", life+1, err)
		}
		if srv.Addr() != addr {
			return addr, fmt.Errorf("the address became %s", srv.Addr())
		}
	}
	st, err := srv.State()
	if err != nil {
		return addr, err
	}
	for life := range restarts + 1 {
		if !nodeThere(st, fmt.Sprintf("/life-%d", life)) {
			return addr, fmt.Errorf("what life %d wrote is gone", life)
		}
	}
	return addr, nil
}

func write(srv *zktest.Server, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := client.Dial(ctx, srv.Addr(), client.Options{Timeout: time.Minute})
	if err != nil {
		return err
	}
	_, err = conn.Create(ctx, path, nil, 0)
	return errors.Join(err, conn.Close(ctx))
}

func TestADirectoryOfItsOwnIsRemoved(t *testing.T) {
	leaks(t)
	t.Setenv("TMPDIR", t.TempDir())
	srv := zktest.NewServer(t, zktest.OnDisk(""))
	conn, _ := connect(t, 10*time.Second, srv.Addr())
	create(t, conn, "/a", "", 0)
	if entries, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(entries) != 1 {
		t.Fatalf("while it runs: %v (%v)", entries, err)
	}
	must(t, srv.Stop())
	if entries, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}
