package server

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkTheFloorOfALoneWrite is what no server can do without: a client sends a
// setData of 1 KiB and waits; one goroutine reads it, appends it to a file that has
// its blocks, syncs, and answers. Both are in one process, so nothing is parsed,
// ordered, applied or handed to anybody.
func BenchmarkTheFloorOfALoneWrite(b *testing.B) {
	const request, entry, reply, size = 1100, 1134, 88, 64 << 20
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	served := make(chan error, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			served <- err
			return
		}
		defer c.Close()
		in, at := make([]byte, entry), int64(0)
		for {
			if _, err := io.ReadFull(c, in[:request]); err != nil {
				served <- nil // the client has gone
				return
			}
			if _, err = f.WriteAt(in, at); err == nil {
				err = syscall.Fdatasync(int(f.Fd()))
			}
			if err == nil {
				_, err = c.Write(in[:reply])
			}
			if err != nil {
				served <- err
				return
			}
			if at += entry; at > size-entry {
				at = 0
			}
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	out := make([]byte, request)
	for b.Loop() {
		if _, err := c.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, out[:reply]); err != nil {
			b.Fatal(err)
		}
	}
	_ = c.Close()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTheFloorOfAFanOut is what no server can do without: a write of an event's
// bytes to each of 9000 sockets, by one and by two goroutines, and (read-ns/event)
// what the clients then need to read them.
func BenchmarkTheFloorOfAFanOut(b *testing.B) {
	const sockets = 9000
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var ours [sockets]syscall.RawConn
	var theirs [sockets]net.Conn
	for i := range sockets {
		if theirs[i], err = net.Dial("tcp", ln.Addr().String()); err != nil {
			b.Fatal(err)
		}
		c, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _, _ = c.Close(), theirs[i].Close() }()
		if ours[i], err = c.(*net.TCPConn).SyscallConn(); err != nil {
			b.Fatal(err)
		}
	}
	event, in := make([]byte, 80), make([]byte, 512)
	for _, writers := range []int{1, 2} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			var reading time.Duration
			for b.Loop() {
				var all sync.WaitGroup
				for w := range writers {
					all.Go(func() {
						out := newPromptWriter()
						for i := w; i < sockets; i += writers {
							out.write(ours[i], event)
						}
					})
				}
				all.Wait()
				b.StopTimer()
				begin := time.Now()
				for _, c := range theirs {
					if _, err := c.Read(in); err != nil {
						b.Fatal(err)
					}
				}
				reading += time.Since(begin)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sockets, "ns/event")
			b.ReportMetric(float64(reading.Nanoseconds())/float64(b.N)/sockets, "read-ns/event")
		})
	}
}
