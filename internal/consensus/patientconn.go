package consensus

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

/*
patientConn is a connection whose deadlines are for progress. Who writes a message
sets one deadline for all of it, however long it is: Raft's library writes up to 64
entries, 32 MiB and more, to a follower that catches up, and one entry can be that long
too. Over a way that is too slow for so much in that time the same message would be
begun again and again: the follower would never catch up, and if a majority is behind
such a way nothing would be written any more. So each part that gets through is given
its own time; a connection on which nothing moves ends as before.

A deadline is only ever moved back. The rejected ways are a timeout by the length of
the message, which the library has for snapshots only, and messages of less, of which a
single long entry has no part.
*/
type patientConn struct {
	net.Conn
	now func() time.Time

	// writeBy is the deadline of writes and readBy that of reads, in Unix
	// nanoseconds, where both were set together: an answer is waited for from the
	// end of its question on. 0 for none.
	writeBy, readBy atomic.Int64
}

const (
	// progressBytes is how much has to get through in progressTime: 128 KiB, or
	// 210 kbit/s.
	progressBytes = 128 * kib
	progressTime  = raftRPCTimeout
)

func newPatientConn(c net.Conn) *patientConn { return &patientConn{Conn: c, now: time.Now} }

// nanos is a time as a number, 0 for none.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// SetDeadline implements net.Conn.
func (c *patientConn) SetDeadline(t time.Time) error {
	c.writeBy.Store(nanos(t))
	c.readBy.Store(nanos(t))
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *patientConn) SetWriteDeadline(t time.Time) error {
	c.writeBy.Store(nanos(t))
	return c.Conn.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *patientConn) SetReadDeadline(t time.Time) error {
	c.readBy.Store(0)
	return c.Conn.SetReadDeadline(t)
}

// Write implements net.Conn.
func (c *patientConn) Write(b []byte) (written int, err error) {
	for {
		if err := moveBack(&c.writeBy, c.now(), c.Conn.SetWriteDeadline); err != nil {
			return written, err
		}
		part := b[written:min(len(b), written+progressBytes)]
		n, err := c.Conn.Write(part)
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}

// Read implements net.Conn.
func (c *patientConn) Read(b []byte) (int, error) {
	if err := moveBack(&c.readBy, c.now(), c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// moveBack sets a deadline of progressTime from now, if that is later than the one
// there is by a part that is worth the call.
func moveBack(by *atomic.Int64, now time.Time, set func(time.Time) error) error {
	former, next := by.Load(), now.Add(progressTime)
	if former == 0 || next.UnixNano()-former < int64(progressTime/8) || !by.CompareAndSwap(former, next.UnixNano()) {
		return nil
	}
	return set(next)
}

// readParts is io.ReadFull with a deadline for each part.
func readParts(conn net.Conn, r io.Reader, b []byte, within time.Duration) error {
	for read := 0; read < len(b); {
		_ = conn.SetReadDeadline(time.Now().Add(within)) // fails only on a closed socket, as the read will
		n, err := io.ReadFull(r, b[read:min(len(b), read+progressBytes)])
		if read += n; err != nil {
			return err
		}
	}
	return nil
}
