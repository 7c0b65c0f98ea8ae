package server

import (
	"slices"
	"syscall"
)

/*
How what an entry has put into outboxes gets to the sockets. One change may have
ten thousand watchers, and a goroutine for each of them costs more than the little
that the operating system leaves to save: stack, scheduling, and on a busy machine
the caches. So connections are handed over by batches to goroutines that write to
one socket after the other without waiting for any. One that does not take all of
it at once gets a goroutine of its own (outbox.nudge).

The other way round, the reply to a lone write is written by the goroutine that has
applied it: its client waits for nothing else, and starting another goroutine, on a
processor that may sleep, takes as long as the write. With more than one connection
in an entry there are more entries behind it, and the goroutine that applies is not
kept from them.

A full batch is handed over while the entry is still being applied, so that a
second processor writes while the first one finds the next watchers. Each
connection is handed over early once for each entry, and else at its end: ten
changes in one entry are two writes to each of their common watchers, not ten.
*/

// batchConns is the largest number of connections that one goroutine writes to.
// Source: 64 writes take some 0.4 ms, about a thousand times as long as it takes to
// start the goroutine.
const batchConns = 64

// promptWriter writes to sockets without waiting for them. One goroutine uses it.
type promptWriter struct {
	buf  []byte
	n    int              // written
	call func(fd uintptr) // send, made once
}

func newPromptWriter() *promptWriter {
	w := &promptWriter{}
	w.call = w.send
	return w
}

// write returns how many bytes of b the socket has taken, which no other goroutine
// may write to at the same time.
func (w *promptWriter) write(socket syscall.RawConn, b []byte) int {
	w.buf, w.n = b, 0
	if socket.Control(w.call) != nil {
		return 0 // it is closed
	}
	return w.n
}

// markDirty remembers a connection whose outbox must be written. Only the
// goroutine that applies calls it.
func (k *hook) markDirty(c *conn) {
	if c.dirty {
		return
	}
	c.dirty = true
	if c.handed == k.entry {
		k.again = append(k.again, c)
		return
	}
	k.dirty = append(k.dirty, c)
	if len(k.dirty) < batchConns {
		return
	}
	for _, c := range k.dirty {
		c.handed = k.entry
	}
	k.dirty = k.handOver(k.dirty, batchConns)
}

// deliver ends an entry: all outboxes that it has put something into are written.
func (k *hook) deliver() {
	if len(k.dirty) == 1 && len(k.again) == 0 && k.dirty[0].out.waiting() <= outboxKeepBytes {
		c := k.dirty[0]
		c.dirty = false
		c.out.nudge(k.writer)
		clear(k.dirty)
		k.dirty = k.dirty[:0]
	}
	for _, list := range []*[]*conn{&k.dirty, &k.again} {
		n := len(*list)
		*list = k.handOver(*list, min(max(n/(2*k.processors), 1), batchConns))
	}
	k.entry++
}

// handOver has batches of that many connections written, and returns the list for
// the next ones.
func (k *hook) handOver(list []*conn, size int) []*conn {
	if size == 1 {
		for _, c := range list {
			c.dirty = false
			c.out.kick()
		}
	} else {
		for batch := range slices.Chunk(slices.Clone(list), size) {
			for _, c := range batch {
				c.dirty = false
			}
			go nudgeAll(batch)
		}
	}
	clear(list)
	return list[:0]
}

// nudgeAll is a goroutine.
func nudgeAll(batch []*conn) {
	w := newPromptWriter()
	for _, c := range batch {
		c.out.nudge(w)
	}
}
