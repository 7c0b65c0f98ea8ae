package state

import (
	"fmt"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// BenchmarkFreeze is how long writes stand still for a snapshot.
func BenchmarkFreeze(b *testing.B) {
	for _, c := range []struct{ nodes, sessions int }{{1_000_000, 100}, {10_000, 100_000}} {
		b.Run(fmt.Sprintf("%d nodes and %d sessions", c.nodes, c.sessions), func(b *testing.B) {
			m := newMachine(b)
			a := newClient(1, 1)
			m.entry(a.create())
			for i := range c.sessions {
				m.entry(newClient(proto.SessionID(1000+i*7919%c.sessions), uint64(i)).create())
			}
			for i := range c.nodes / 1000 {
				m.entry(a.make(fmt.Sprintf("/d%d", i), 0))
				commands := make([][]byte, 1000)
				for j := range commands {
					commands[j] = a.make(fmt.Sprintf("/d%d/n", i), proto.CreatePersistentSequential)
				}
				m.entry(commands...)
			}
			m.hook.lines = nil
			b.ReportAllocs()
			for b.Loop() {
				_, release := m.Freeze()
				release()
			}
		})
	}
}

// BenchmarkApply is a write's share of the state lock.
func BenchmarkApply(b *testing.B) {
	m := newMachine(b)
	a := newClient(1, 1)
	m.entry(a.create(), a.make("/a", 0))
	body := setBody("/a", string(make([]byte, 1024)))
	b.ReportAllocs()
	for b.Loop() {
		m.entry(a.command(proto.OpSetData, body))
		m.hook.lines = m.hook.lines[:0]
	}
}

func BenchmarkReadGetData(b *testing.B) {
	m := newMachine(b)
	a := newClient(1, 1)
	m.entry(a.create(), a.make("/a", 0))
	m.entry(a.command(proto.OpSetData, setBody("/a", string(make([]byte, 1024)))))
	r := ReadRequest{Header: proto.RequestHeader{Type: proto.OpGetData}, Body: watchBody("/a", false), Identities: anyone}
	asker := &deaf{}
	var scratch []byte
	b.ReportAllocs()
	for b.Loop() {
		_, scratch = m.Read(asker, &r, scratch)
	}
}

// BenchmarkReadsBesideEachOther is what readers on as many processors as there
// are (-cpu) keep each other waiting at the state lock, alone and while entries
// of a hundred writes are applied: a thousand entries a second. Waiting is the
// time in which a goroutine stood at a lock.
func BenchmarkReadsBesideEachOther(b *testing.B) {
	for _, writes := range []bool{false, true} {
		for _, readers := range []int{1, 32} {
			b.Run(fmt.Sprintf("%d readers for each processor, writes %t", readers, writes), func(b *testing.B) {
				m := newMachine(b)
				a := newClient(1, 1)
				m.entry(a.create(), a.make("/a", 0))
				m.entry(a.command(proto.OpSetData, setBody("/a", string(make([]byte, 1024)))))
				stop := make(chan struct{})
				var writer sync.WaitGroup
				writer.Go(func() { writeAtTimes(m, a, writes, stop) })
				waited := lockWait()
				b.SetParallelism(readers)
				var sessions atomic.Int64
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					r := ReadRequest{Header: proto.RequestHeader{Type: proto.OpGetData}, Body: watchBody("/a", false), Identities: anyone}
					asker := &deaf{outbox{session: proto.SessionID(sessions.Add(1))}}
					var scratch []byte
					for pb.Next() {
						_, scratch = m.Read(asker, &r, scratch)
					}
				})
				b.StopTimer()
				b.ReportMetric((lockWait()-waited)*1e9/float64(b.N), "wait-ns/op")
				close(stop)
				writer.Wait()
			})
		}
	}
}

func writeAtTimes(m *machine, a *client, writes bool, stop chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	body := setBody("/a", string(make([]byte, 1024)))
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if !writes {
			continue
		}
		commands := make([][]byte, 100)
		for i := range commands {
			commands[i] = a.command(proto.OpSetData, body)
		}
		m.entry(commands...)
		m.hook.lines = m.hook.lines[:0]
	}
}

// lockWait is how many seconds goroutines have waited for locks since the start.
func lockWait() float64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}

// deaf is an Asker that takes replies and keeps nothing.
type deaf struct{ outbox }

func (*deaf) Push([]byte) {}

// Reads are most of what a server does: beside its path, which a watch may keep,
// one takes no memory.
func TestAReadAllocatesItsPathOnly(t *testing.T) {
	m := newMachine(t)
	a := newClient(1, 1)
	m.entry(a.create(), a.make("/a", 0))
	asker := &deaf{}
	var scratch []byte
	for _, op := range []proto.OpCode{proto.OpGetData, proto.OpExists, proto.OpGetChildren2} {
		r := ReadRequest{Header: proto.RequestHeader{Type: op}, Body: watchBody("/a", false), Identities: anyone}
		if allocs := testing.AllocsPerRun(1000, func() { _, scratch = m.Read(asker, &r, scratch) }); allocs > 1 {
			t.Errorf("%v allocates %v times", op, allocs)
		}
	}
}
