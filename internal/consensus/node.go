package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Node is one running server of an ensemble. All methods may be called from
// any goroutine.
type Node struct {
	cfg    Config
	events Events
	logger *slog.Logger
	id     identity // as it was at Open

	raft      *raft.Raft
	raftSet   chan struct{}  // closed when raft is set
	transport raft.Transport // lone or network
	lone      *loneTransport // of a server alone
	network   *network       // of an ensemble; port, route and followers belong to it
	port      *peerPort
	route     route
	followers followers
	refusals  refusals
	notes     *commitNotes
	fsm       *fsm
	batcher   *batcher
	log       *logStore
	stable    *stableStore
	snapshots snapshotKeeper
	retention *retention
	disk      *disk
	trigger   *snapshotTrigger
	locks     dirLocks
	// holdsMemory says that Config.Memory is this node's; Open and Close only.
	holdsMemory bool

	opened  chan struct{} // closed when Open returns; raft is set by then, or never will be
	stop    chan struct{} // closed first: no new work, waits end
	failed  chan struct{} // closed when the node stops by itself
	down    chan struct{} // closed when Raft and our goroutines have ended
	workers sync.WaitGroup

	leaderMoved  chan struct{} // capacity 1: another server may lead
	probed       chan struct{} // capacity 1: another server has asked this one who it is
	wanted       *wanted       // the membership that the ensemble is to have
	wantedSet    atomic.Bool   // SetMembership has been called
	wantedMoved  chan struct{} // capacity 1: the wanted membership has changed
	streamsMoved chan struct{} // capacity 1: who follows or leads has changed
	asked        time.Time     // when the others were asked for a leader; manageMembers' own
	process      uint64        // drawn at Open; tells two processes with the same data apart
	forming      sync.Mutex    // held while an empty server becomes a member; taken before all others

	hurrying atomic.Bool // a goroutine shortens Raft's patience
	leading  atomic.Bool // leads and has applied all earlier terms

	stopOnce  sync.Once
	closeOnce sync.Once
	closeErr  error

	mu          sync.Mutex
	reason      error             // guarded by mu; why the node stopped by itself
	fullSince   time.Time         // guarded by mu; zero while there is space
	waiting     string            // guarded by mu; what an unformed server waits for
	cluster     string            // guarded by mu; the ensemble that this server has become a member of since it was opened
	answered    map[string]string // guarded by mu; which of a server's several addresses last answered, by all of them
	ownLines    map[string]string // guarded by mu; where servers say that they listen, by Raft id
	differences map[int]string    // guarded by mu; by the number of the other end of a stream
	linesSaid   map[int]string    // guarded by mu; what was last logged of them
	twin        string            // guarded by mu; why the leader refuses this process, empty if it does not
	twinSince   time.Time         // guarded by mu; since when it does, without a break
	foreign     string            // guarded by mu; how the others' data are those of another ensemble
	minority    string            // guarded by mu; why there can be no leader
	removed     bool              // guarded by mu; the others say that this server is no member
	outdated    string            // guarded by mu; why this build cannot be a member of its ensemble any more
	// memberWait is what keeps a leader from the next change of the membership.
	memberWait string      // guarded by mu
	patience   *time.Timer // guarded by mu; runs while the disk is full
}

// Propose queues a command for the log. It never blocks. The node keeps the
// slice, so it must not be changed afterwards. Commands of one caller are
// ordered as it calls. After nil the command is applied, or its token is named
// in Events.FateUnknown; an error means that it is not and will not be in the log.
func (n *Node) Propose(token uint64, command []byte) error {
	err := n.batcher.propose(proposal{token: token, command: command})
	if err != ErrNotLeader {
		return err
	}
	if s := n.route.get(); s != nil {
		if s.send(framePropose, u64(token), command) == nil {
			return nil
		}
	}
	return ErrNotLeader
}

// Barrier returns when everything that was proposed here before it, and every
// entry of earlier terms, has been applied. It needs leadership.
func (n *Node) Barrier(ctx context.Context) error {
	done := make(chan error, 1)
	if err := n.batcher.propose(proposal{done: done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return translate(err)
	case <-ctx.Done():
		return ctx.Err()
	case <-n.stop:
		return ErrStopped
	}
}

// Snapshot takes a snapshot now and returns when it is durable. Without any
// applied entry there is nothing to take, which is not an error.
func (n *Node) Snapshot() error {
	err := n.raft.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	if err == nil {
		n.trigger.reset()
	}
	return translate(err)
}

// translate replaces the library's errors that callers would have to know.
func translate(err error) error {
	switch {
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrStopped
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrAbortedByRestore):
		return ErrNotLeader
	}
	return err
}

// Failed is closed when the node stops by itself; Err then gives the reason.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err is why the node stopped by itself, or nil.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reason
}

// fail stops the node for good. It does not block, because it is called from
// within Raft's goroutines.
func (n *Node) fail(reason error) {
	n.mu.Lock()
	first := n.reason == nil
	if first {
		n.reason = reason
	}
	n.mu.Unlock()
	if first {
		n.logger.Error("the node stops", "reason", reason)
		n.batcher.refuse()
		close(n.failed)
		go func() {
			<-n.opened
			n.shutdown()
		}()
	}
}

// shutdown ends Raft and our goroutines; down is closed when they have ended,
// which a hung disk can delay for ever.
func (n *Node) shutdown() {
	n.stopOnce.Do(func() {
		close(n.stop)
		n.batcher.shut()
		n.closePort()
		go func() {
			// Futures first: the library never resolves one that still waits
			// in its channel when it is shut down.
			n.workers.Wait()
			if n.raft == nil {
				close(n.down)
				return
			}
			_ = n.raft.Shutdown().Error()
			close(n.down)
		}()
	})
}

// closePort stops to listen for peers, and breaks their connections.
func (n *Node) closePort() {
	if n.port != nil {
		_ = n.network.Close() // first, so that the library does not complain of the port
		n.port.close()
	}
}

// Close stops the node and closes its files, within CloseTimeout. If a disk
// call does not return in that time the node is abandoned: Close returns
// ErrCloseTimeout, and the data directory stays locked until the call has
// returned or the process has ended, because it may still reach the disk.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		n.handOver()
		n.shutdown()
		closed := make(chan struct{})
		var err error
		go func() {
			defer close(closed)
			<-n.down
			err = n.closeFiles()
		}()
		if !waitClosed(closed, n.cfg.CloseTimeout) {
			n.closeErr = ErrCloseTimeout
			return
		}
		n.closeErr = err
	})
	return n.closeErr
}

// handOver gives leadership to another server before this one stops, so that
// nobody has to wait for an election. It takes no longer than one.
func (n *Node) handOver() {
	if n.cfg.alone() || !n.leading.Load() || n.Err() != nil || n.disk.state() != DiskOK {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := n.raft.LeadershipTransfer().Error(); err != nil {
			n.logger.Info("no other server could take over before this one stops", "error", err)
		}
	}()
	waitClosed(done, n.cfg.ElectionTimeout)
}

func (n *Node) closeFiles() error {
	n.mu.Lock()
	if n.patience != nil {
		n.patience.Stop()
	}
	n.mu.Unlock()
	var errs []error
	if n.log != nil {
		errs = append(errs, n.log.close())
	}
	if n.stable != nil {
		errs = append(errs, n.stable.close())
	}
	n.locks.close()
	if n.holdsMemory {
		n.cfg.Memory.giveBack()
	}
	return errors.Join(errs...)
}

// diskChanged is told by the disk when it fills and when there is space again.
func (n *Node) diskChanged(full bool) {
	n.batcher.setDiskFull(full)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !full {
		if n.patience != nil {
			n.patience.Stop()
		}
		n.logger.Warn("the disk of the log has space again; writes go on", "after", n.cfg.Now().Sub(n.fullSince))
		n.fullSince = time.Time{}
		return
	}
	then := "reads go on"
	if !n.cfg.alone() {
		then = "clients are left to the other servers soon"
	}
	n.logger.Error("the disk of the log is full: writes are refused, "+then, "dir", n.cfg.layout().logRoot)
	n.fullSince = n.cfg.Now()
	n.patience = time.AfterFunc(n.cfg.DiskFullPatience, n.batcher.giveUpIfFull)
}

// watchLeadership is a goroutine: it follows Raft's leadership. A barrier lies
// between leading and saying so, because duties need the state of all earlier
// terms; proposals are taken before it.
func (n *Node) watchLeadership() {
	defer n.workers.Done()
	var barrier chan error
	var again <-chan time.Time // a barrier is owed: the last one was refused or failed
	stalled := false
	look := n.stallTicks()
	for {
		select {
		case <-look:
			if n.disk.stalledFor(n.cfg.DiskStallLimit) != stalled {
				stalled = !stalled
				if n.cfg.alone() {
					n.saysStalled(stalled)
				} else {
					barrier, again = n.diskStalled(stalled)
				}
			}
		case <-n.stop:
			n.setLeading(false)
			return
		case leads := <-n.raft.LeaderCh():
			barrier, again = n.leads(leads && !stalled)
		case <-again:
			barrier, again = n.startBarrier()
		case err := <-barrier:
			barrier = nil
			if err == nil {
				n.setLeading(true)
			} else {
				again = time.After(barrierRetry)
			}
		}
	}
}

// leads opens or closes what a leader does, and returns the barrier to wait
// for, or when to try it, if any. Raft keeps only its latest word, so one true
// may follow another: then others may have led between.
func (n *Node) leads(leads bool) (barrier chan error, again <-chan time.Time) {
	n.setLeading(false)
	n.batcher.setLeading(leads)
	if n.cfg.alone() { // where there are others, watchLeader tells
		leader := -1
		if leads {
			leader = n.cfg.ServerID
		}
		n.events.LeaderChanged(leader)
	}
	if !leads {
		n.followers.closeAll()
		n.retention.clear()
		return nil, nil
	}
	return n.startBarrier()
}

// barrierRetry is the pause before a barrier is tried again that was refused,
// as on a full disk, while this server goes on leading.
const barrierRetry = 50 * time.Millisecond

// startBarrier queues a barrier, or tells when to try again.
func (n *Node) startBarrier() (chan error, <-chan time.Time) {
	done := make(chan error, 1)
	if err := n.batcher.propose(proposal{done: done}); err != nil {
		return nil, time.After(barrierRetry)
	}
	return done, nil
}

// LeadingTerm is the term of Raft that this server leads, 0 if it does not. The
// term is read first: a leader becomes a follower before its term changes.
func (n *Node) LeadingTerm() uint64 {
	select {
	case <-n.raftSet:
	default:
		return 0
	}
	term := n.raft.CurrentTerm()
	if n.raft.State() != raft.Leader {
		return 0
	}
	return term
}

func (n *Node) setLeading(leading bool) {
	if leading {
		n.noTwin()
	}
	if n.leading.Swap(leading) != leading {
		n.followingMoved()
		n.events.Leading(leading)
	}
}

func (n *Node) setWaiting(reason string) {
	n.mu.Lock()
	n.waiting = reason
	n.mu.Unlock()
}

// snapshotSaved raises the floor: from now on a start that cannot reach this
// entry has lost something.
func (n *Node) snapshotSaved(index, term uint64) {
	err := n.stable.update(func(i *identity) {
		if index > i.FloorIndex {
			i.FloorIndex, i.FloorTerm = index, term
		}
	})
	if err == nil {
		err = n.log.mark.sync()
	}
	if err != nil {
		n.logger.Warn("the floor could not be raised after a snapshot", "index", index, "error", err)
	}
	n.logger.Info("snapshot taken", "index", index, "term", term)
}

// String names the node in messages.
func (n *Node) String() string { return fmt.Sprintf("server %s", n.id.raftID()) }
