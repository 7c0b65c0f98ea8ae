package server

import "sync/atomic"

// writesMaxBytes is how much of commands may be on its way from this server to the log
// before others wait: 8 MiB, eight times what is on the leader's disk at one time. The
// last one may reach beyond it, up to twice as much. A stream to the leader holds 64
// MiB; when it is full it breaks, and with it every connection that has a write on its
// way. And what this server has heard of its sessions goes the same way, behind them:
// over 3 MB/s it is 3 s late.
const writesMaxBytes = 8 << 20

// writeBytes bounds the bytes of commands that have been proposed and not applied, of
// all connections. Their number is bounded by globalOutstandingLimit, of which each
// connection may have one more, of up to jute.maxbuffer.
type writeBytes struct{ sum atomic.Int64 }

// admit counts a command as on its way, if there is room. One that is larger than all
// the room has to be alone.
func (w *writeBytes) admit(bytes int) bool {
	for {
		sum := w.sum.Load()
		if sum != 0 && (sum >= writesMaxBytes || sum+int64(bytes) > 2*writesMaxBytes) {
			return false
		}
		if w.sum.CompareAndSwap(sum, sum+int64(bytes)) {
			return true
		}
	}
}

func (w *writeBytes) release(bytes int) { w.sum.Add(-int64(bytes)) }

// admitWrite waits until the connection's last write, which is in its queue, may be
// proposed. It returns false if the connection is closed meanwhile.
func (c *conn) admitWrite(p *pending, bytes int) bool {
	w := &c.server.writes
	for waits := false; !w.admit(bytes); waits = true {
		if !waits {
			c.out.flush()
		}
		if c.Gone() || !c.server.pause(queueFullPause) {
			return false
		}
	}
	if !c.queue.admit(bytes) {
		w.release(bytes)
		return false
	}
	p.admitted = bytes
	return true
}
