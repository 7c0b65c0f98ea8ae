// Command failover uses the Go client's lock, and writes, on an ensemble whose
// leader is killed again and again. It works until its input ends, prints
// "progress" whenever each worker has done something since the last time, and
// then a verdict for each check.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// sessionTimeout is short enough that what a broken-off attempt for the lock
// leaves behind goes away soon: the recipe does not clean up after an error.
const sessionTimeout = 10 * time.Second

// patience bounds the reads at the end.
const patience = time.Minute

var (
	addresses = strings.Split(os.Args[1], ",")
	everyone  = zk.WorldACL(zk.PermAll)
	stopping  atomic.Bool
	broken    atomic.Pointer[string]
	inside    atomic.Int32
	counter   int // guarded by the ensemble's lock
	sections  atomic.Int64
)

type silent struct{}

func (silent) Printf(string, ...any) {}

func main() {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stopping.Store(true)
	}()
	var made []string
	workers := []func(*zk.Conn) error{locked, locked, locked, func(conn *zk.Conn) error {
		path := fmt.Sprintf("/gozk-made-%d", len(made))
		if _, err := conn.Create(path, []byte(path), 0, everyone); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		made = append(made, path)
		return nil
	}}
	done := make([]atomic.Int64, len(workers))
	var running sync.WaitGroup
	for i, work := range workers {
		running.Go(func() { repeat(work, &done[i]) })
	}
	running.Go(func() { tell(done) })
	running.Wait()
	verdict("the lock is held by one at a time", held())
	verdict("what was acknowledged is there", there(made))
}

// repeat works on a connection, and on a fresh one after each error.
func repeat(work func(*zk.Conn) error, done *atomic.Int64) {
	for !stopping.Load() {
		conn, _, err := zk.Connect(addresses, sessionTimeout, zk.WithLogger(silent{}))
		if err != nil { // the addresses are none
			panic(err)
		}
		for err == nil && !stopping.Load() {
			if err = work(conn); err == nil {
				done.Add(1)
			}
		}
		conn.Close()
	}
}

// tell prints progress when every worker has done something.
func tell(done []atomic.Int64) {
	last := make([]int64, len(done))
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for range look.C {
		if stopping.Load() {
			return
		}
		all := true
		for i := range done {
			all = all && done[i].Load() > last[i]
		}
		if all {
			fmt.Println("progress")
			for i := range done {
				last[i] = done[i].Load()
			}
		}
	}
}

// locked adds one under the lock, in two steps.
func locked(conn *zk.Conn) error {
	lock := zk.NewLock(conn, "/gozk-lock", everyone)
	if err := lock.Lock(); err != nil {
		return err
	}
	if n := inside.Add(1); n != 1 {
		text := fmt.Sprintf("%d held it at once", n)
		broken.CompareAndSwap(nil, &text)
	}
	before := counter
	<-time.After(time.Millisecond) // so that two holders would meet
	counter = before + 1
	sections.Add(1)
	inside.Add(-1)
	return lock.Unlock()
}

func held() string {
	if text := broken.Load(); text != nil {
		return *text
	}
	if int64(counter) != sections.Load() {
		return fmt.Sprintf("%d sections counted to %d", sections.Load(), counter)
	}
	return ""
}

// there looks for each path, patiently.
func there(made []string) string {
	conn, _, err := zk.Connect(addresses, sessionTimeout, zk.WithLogger(silent{}))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	late := time.Now().Add(patience)
	for i := 0; i < len(made); {
		data, _, err := conn.Get(made[i])
		switch {
		case err == nil && string(data) == made[i]:
			i++
		case err == nil || errors.Is(err, zk.ErrNoNode) || time.Now().After(late):
			return fmt.Sprintf("%s of %d: %q, %v", made[i], len(made), data, err)
		}
	}
	if len(made) == 0 {
		return "nothing was made"
	}
	return ""
}

func verdict(name, wrong string) {
	if wrong == "" {
		fmt.Println("PASS", name)
	} else {
		fmt.Printf("FAIL %s: %s\n", name, wrong)
	}
}
