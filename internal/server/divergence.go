package server

import (
	"fmt"
	"sync"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

// divergence compares replicas. Each follower tells the leader, with its report
// of sessions, the newest tree digest that it keeps, its command level and the
// hash of its session table then; the leader looks up its own at the same zxid.
// A difference can only come from a fault of this program or of a machine, and
// nobody can say which of the two is right: so both servers say it loudly and
// for good, and go on. An operator decides.
type divergence struct {
	server *Server

	mu    sync.Mutex
	found string // guarded by mu; the first difference, empty for none
}

// reason is why this server's health is red, or empty.
func (d *divergence) reason() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found
}

// newest is the message about the newest digest kept; nil if there is none.
func (d *divergence) newest() (message []byte) {
	d.server.state.View(func(v state.View) {
		if n := len(v.Digests); n > 0 {
			at := v.Digests[n-1]
			message = proto.AppendLong(proto.AppendLong([]byte{messageDigest}, int64(at.Zxid)), int64(at.Digest))
			message = proto.AppendLong(proto.AppendLong(message, int64(at.Level)), int64(at.Sessions))
		}
	})
	return message
}

// compare looks at another server's digest, and tells it of a difference.
// Without sessions it has not said their hash.
func (d *divergence) compare(from int, told state.DigestAt, sessions bool) {
	var own state.DigestAt
	known := false
	d.server.state.View(func(v state.View) {
		for i := len(v.Digests) - 1; i >= 0 && v.Digests[i].Zxid >= told.Zxid; i-- {
			if v.Digests[i].Zxid == told.Zxid {
				own, known = v.Digests[i], true
			}
		}
	})
	if !sessions {
		told.Sessions = own.Sessions
	}
	if !known || own == told {
		return
	}
	d.report(fmt.Sprintf("the states of server %d and server %d differ at zxid %v: digests %x and %x, command levels %d and %d, hashes of sessions %x and %x",
		d.server.serverID, from, told.Zxid, own.Digest, told.Digest, own.Level, told.Level, own.Sessions, told.Sessions))
	d.server.node.Broadcast(append(proto.AppendLong([]byte{messageDiffers}, int64(from)), d.reason()...))
}

// report keeps the first difference, and says it.
func (d *divergence) report(text string) {
	d.server.metrics.digestMismatches.Inc()
	d.mu.Lock()
	first := d.found == ""
	if first {
		d.found = text
	}
	d.mu.Unlock()
	if first {
		d.server.logger.Error("the replicas have diverged; compare their data before you trust either", "difference", text)
	}
}
