package consensus

import (
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

/*
A follower that was away for too long gets a snapshot, and then the entries behind
it. While the snapshot is on its way, and is loaded at the other end, this leader
goes on: it takes snapshots of its own and cuts the log behind them. If that goes
faster than the transfer, the entries are gone when the follower asks for them; it
is sent another snapshot, and so on without end (hashicorp/raft#212).

So the log is cut only up to where each transfer began, and then only up to what its
receiver has applied, until that is as far as the newest snapshot. A receiver that
stands still is given up in the end, and so are all when the disk gets short: a leader
whose disk is full is worse than a follower that is sent another snapshot.

The rejected way is to take no snapshots meanwhile: it grows the log of every server
by as much, and a restart has to replay it.
*/
type retention struct {
	now      func() time.Time
	sent     func(took time.Duration) // told of each snapshot that a follower has loaded
	spacious func() bool              // the disk of the log has room for more than the log usually takes
	logger   *slog.Logger

	mu        sync.Mutex
	transfers map[raft.ServerID]*transfer // guarded by mu; by receiver
}

// transfer is a snapshot that is being sent, or was, to a server that is still behind.
type transfer struct {
	index    uint64        // the server has the entries up to it
	moved    time.Time     // when it last got on
	patience time.Duration // how long it may stand still
	loaded   bool          // it has said that it is as far as the snapshot
	held     bool          // the log has been kept for it
}

const (
	// transferPatience is how long a receiver may stand still, and a second more
	// for each loadPace bytes of the snapshot: it does not get on, as far as can be
	// seen here, while it loads what it has received.
	transferPatience = time.Minute
	loadPace         = mib
)

// begin notes that a snapshot is sent, and returns its bytes in such a way that
// progress is seen.
func (r *retention) begin(id raft.ServerID, index uint64, size int64, data io.Reader) io.Reader {
	t := &transfer{index: index, moved: r.now(), patience: transferPatience + time.Duration(size/loadPace)*time.Second}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.transfers[id] = t
	return &watched{data, func() {
		r.mu.Lock()
		t.moved = r.now()
		r.mu.Unlock()
	}}
}

// watched tells when it is read.
type watched struct {
	in   io.Reader
	read func()
}

// Read implements io.Reader.
func (w *watched) Read(b []byte) (int, error) {
	w.read()
	return w.in.Read(b)
}

// applied is told how far a server is.
func (r *retention) applied(id raft.ServerID, index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.transfers[id]; t != nil && index >= t.index {
		t.loaded = true
		if index > t.index {
			t.index, t.moved = index, r.now()
		}
	}
}

// clear forgets all: this server does not lead any more.
func (r *retention) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.transfers)
}

// cut is the entry up to which the log may be removed, if index is wanted. newest is
// the newest snapshot: who is as far as that is not behind any more.
func (r *retention) cut(index, newest uint64) uint64 {
	low, whose := r.lowest(index, newest)
	if low == index {
		return index
	}
	if !r.spacious() {
		r.logger.Warn("the disk of the log gets short: entries are removed that a server which is sent a snapshot needs; it will be sent another", "server", whose)
		return index
	}
	return low
}

// lowest is what may be removed for the receiver that is furthest behind, if that is
// less than index, and which one that is.
func (r *retention) lowest(index, newest uint64) (low uint64, whose raft.ServerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	low = index
	for id, t := range r.transfers {
		idle := r.now().Sub(t.moved)
		switch {
		case t.loaded && t.index >= newest: // one of the newest snapshot may just have begun
			delete(r.transfers, id)
			continue
		case idle > t.patience:
			delete(r.transfers, id)
			r.logger.Warn("a server that is sent a snapshot stands still; the log is not kept for it any more", "server", id, "for", idle.Round(time.Second))
			continue
		}
		// The entry at index stays too: the library tells its term with the next one.
		if t.index <= index && !t.held {
			t.held = true
			r.logger.Info("the log is kept for a server that is sent a snapshot", "server", id, "from", t.index)
		}
		if t.index <= low {
			low, whose = t.index-1, id
		}
	}
	return low, whose
}

// spareShare and spareBytes are the room that a disk must have left for the log to
// be kept for a receiver: an eighth, but no more than 8 GiB.
const (
	spareShare = 8
	spareBytes = 8 << 30
)

// hasSpareRoom tells whether there is so much room. A disk that does not say is
// taken to have it.
func hasSpareRoom(dir string) bool {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return true
	}
	block := int64(stat.Bsize)
	return int64(stat.Bavail)*block >= min(int64(stat.Blocks)*block/spareShare, spareBytes)
}
