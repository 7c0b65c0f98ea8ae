package consensus

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/hashicorp/raft"
)

/*
Open decides whether this server may start on what lies on its disk. Four
witnesses are kept, and each is compared with the others before anything that
could remove evidence is allowed:

	stable.db   who this server is, which store holds the log, the floor
	synced      the last entry known to be synced (mark)
	snapshots/  each with checksums
	log-…/      each entry with a checksum

The order: lock, identity, snapshots, mark, log; compare; restore the newest
whole snapshot; read every entry behind it (Raft does, and our log store checks
each); only then remove left-overs, start, and for a lone voter campaign.
*/

// Open starts a node. On an empty data directory the server forms an ensemble
// of itself; on an existing one it never does so again. When Open returns, the
// newest snapshot has been restored and Raft runs; the entries behind it are
// applied by Raft's fsm goroutine, and Events.Leading(true) says that all are.
func Open(cfg Config, sm StateMachine, events Events) (_ *Node, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	// bbolt reads mapped memory; a fault there is to be an error, not a crash.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	cfg.Observe.now = cfg.Now
	n := newNode(cfg, sm, events)
	defer close(n.opened)
	defer func() {
		if err != nil {
			n.closePort()
			_ = n.closeFiles()
		}
	}()
	if err := n.lockData(); err != nil {
		return nil, err
	}
	if err := n.openFiles(); err != nil {
		return nil, err
	}
	if n.isElsewhere() {
		if err := n.resettle(); err != nil {
			return nil, err
		}
	}
	if err := n.startRaft(); err != nil {
		return nil, err
	}
	return n, nil
}

// lockData makes this node the only user of its data.
func (n *Node) lockData() (err error) {
	if n.cfg.Memory == nil {
		n.locks, err = n.cfg.layout().lock()
		return err
	}
	err = n.cfg.Memory.take()
	n.holdsMemory = err == nil
	return err
}

// newNode makes a node that holds nothing yet.
func newNode(cfg Config, sm StateMachine, events Events) *Node {
	n := &Node{
		cfg: cfg, events: events, logger: cfg.Logger.With("room", "consensus"),
		opened: make(chan struct{}), raftSet: make(chan struct{}), notes: newCommitNotes(), leaderMoved: make(chan struct{}, 1),
		probed: make(chan struct{}, 1), wantedMoved: make(chan struct{}, 1), streamsMoved: make(chan struct{}, 1), wanted: newWanted(cfg.Peers),
		process: newProcess(),
		stop:    make(chan struct{}),
		failed:  make(chan struct{}),
		down:    make(chan struct{}),
	}
	n.disk = &disk{stop: n.stop, now: cfg.Now, changed: n.diskChanged, broken: n.fail}
	n.batcher = newBatcher(cfg, n.stop)
	if events != nil {
		n.batcher.unknown = events.FateUnknown
	}
	n.trigger = newSnapshotTrigger(cfg)
	n.retention = &retention{now: cfg.Now, sent: n.cfg.Observe.snapshotSent, logger: n.logger, transfers: map[raft.ServerID]*transfer{},
		spacious: func() bool { return cfg.Memory != nil || hasSpareRoom(cfg.layout().logRoot) }}
	n.fsm = &fsm{sm: sm, broken: n.fail, count: n.trigger.add, applied: n.tellCommit, observe: &n.cfg.Observe, logger: n.logger, stop: n.stop,
		spoiled:   func(err error) { n.snapshots.setAside(err) },
		synced:    func(index uint64) error { return n.log.awaitSync(index) },
		restoring: func() uint64 { return n.snapshots.openedIndex() }}
	return n
}

// openFiles opens the stores and compares the witnesses.
func (n *Node) openFiles() error {
	l := n.cfg.layout()
	if err := n.openIdentity(l); err != nil {
		return err
	}
	if err := n.openSnapshots(l); err != nil {
		return err
	}
	m, err := n.openMark(l)
	if err != nil {
		return err
	}
	acknowledged, _ := m.get()
	opener := n.cfg.openEngine(newRaftLogger(n.logger, "log"))
	eng, err := opener(!n.id.Formed, acknowledged)
	if err != nil {
		_ = m.close(0)
		return err
	}
	n.log = &logStore{
		logger: n.logger, open: opener, cache: newLogCache(n.cfg.cacheBytes()), mark: m,
		keepFrom: n.snapshots.keepFrom, cut: n.retention.cut, covered: n.snapshots.newestIndex, grown: n.notes.grown, disk: n.disk,
		applied: n.fsm.done.Load, broken: n.fail,
		observe:  &n.cfg.Observe,
		interval: n.cfg.DiskProbeInterval, fs: n.cfg.FS, probeDir: l.logRoot, eng: eng,
	}
	if n.cfg.LogStore == LogStoreWAL && !n.cfg.alone() {
		n.log.beside, n.log.unsynced = n.storesBeside, newUnsynced(n.log.store)
	}
	n.log.noteFirst(eng)
	if err := n.compareWitnesses(); err != nil {
		return err
	}
	if err := eng.confirm(); err != nil {
		return err
	}
	return n.finishFounding()
}

func (n *Node) openSnapshots(l layout) error {
	if n.cfg.Memory != nil {
		n.snapshots = n.cfg.Memory.snapshots
		return nil
	}
	s, err := openSnapshots(l.snapshots(), n.cfg.SnapRetainCount, n.cfg.SnapSyncBytes, n.logger, n.cfg.Now)
	if err != nil {
		return err
	}
	s.saved, s.stop, s.observe = n.snapshotSaved, n.stop, &n.cfg.Observe
	n.snapshots = s
	return nil
}

// openIdentity opens the stable store, creating it in an empty directory, and
// compares it with the configuration.
func (n *Node) openIdentity(l layout) error {
	if n.cfg.Memory != nil {
		return n.openMemoryIdentity()
	}
	other := LogStoreBolt
	if n.cfg.LogStore == LogStoreBolt {
		other = LogStoreWAL
	}
	if !exists(l.stable()) {
		for _, dir := range []string{l.snapshots(), l.log(LogStoreWAL), l.log(LogStoreBolt)} {
			if holdsFiles(dir) {
				return fmt.Errorf("%w: %s is missing but %s is not empty; restore it from the same backup, or move %s away to start empty",
					ErrLess, l.stable(), dir, l.root)
			}
		}
		if err := createStable(l.stable(), n.newIdentity()); err != nil {
			return err
		}
	}
	stable, err := openStable(l.stable(), n.disk)
	if err != nil {
		return err
	}
	n.stable = stable
	n.id = stable.identity()
	if n.id.ServerID != n.cfg.ServerID && !n.resettles(n.id) {
		return fmt.Errorf("%w: %s was written by server %d, this is server %d", ErrIdentityMismatch, l.root, n.id.ServerID, n.cfg.ServerID)
	}
	if !n.id.Formed {
		return n.clearUnformed(l)
	}
	if n.id.LogStore != n.cfg.LogStore {
		return fmt.Errorf("%w: %s holds its log in store %q, the configuration says %q; run 'zooraft move-log' to move it, or set raftLogStore=%s",
			ErrLogStoreMismatch, l.root, n.id.LogStore, n.cfg.LogStore, n.id.LogStore)
	}
	if dir := l.log(n.id.LogStore); !holdsFiles(dir) && n.id.FloorIndex > 0 {
		return fmt.Errorf("%w: the log %s is missing or empty (it was in %s); check dataLogDir and its mount, or restore it", ErrLess, dir, n.id.LogDir)
	}
	if holdsFiles(l.log(other)) {
		n.logger.Warn("a log in the other log store is left over and not used", "dir", l.log(other))
	}
	return nil
}

func (n *Node) newIdentity() identity {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	incarnation := uint64(1)
	cluster := hex.EncodeToString(b[:])
	alone := n.cfg.alone()
	if !alone {
		incarnation = newIncarnation(func(b []byte) { _, _ = rand.Read(b) })
		cluster = "" // the founders decide
	}
	return identity{
		ClusterID:   cluster,
		ServerID:    n.cfg.ServerID,
		Incarnation: incarnation,
		Alone:       &alone,
		LogStore:    n.cfg.LogStore,
		LogDir:      n.cfg.layout().log(n.cfg.LogStore),
	}
}

// clearUnformed begins anew after a first start that did not get as far as a
// durable first entry. Nothing was ever acknowledged.
func (n *Node) clearUnformed(l layout) error {
	for _, path := range []string{l.log(LogStoreWAL), l.log(LogStoreBolt), l.mark()} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	rec := n.newIdentity()
	if !n.id.alone() && !n.cfg.alone() && n.id.ServerID == n.cfg.ServerID {
		// Others may have founded with it.
		rec.Incarnation, rec.Promised = n.id.Incarnation, n.id.Promised
	}
	if err := n.stable.update(func(i *identity) { *i = rec }); err != nil {
		return err
	}
	n.id = rec
	return nil
}

func (n *Node) openMark(l layout) (*mark, error) {
	if n.cfg.Memory != nil {
		return n.cfg.Memory.mark(!n.id.Formed)
	}
	if !n.id.Formed {
		return createMark(n.cfg.FS, l.root, markName)
	}
	m, err := openMark(n.cfg.FS, l.root, markName)
	if errors.Is(err, os.ErrNotExist) {
		// One witness less. The floor, the snapshots and the checksums remain.
		n.logger.Error("the file that says how far the log was synced is missing; a torn end of the log cannot be noticed this time", "file", l.mark())
		return createMark(n.cfg.FS, l.root, markName)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; if only this file is damaged, remove it and start again", err)
	}
	return m, nil
}

// compareWitnesses refuses a log and snapshots that end before what is known
// to have been acknowledged, or do not fit together.
func (n *Node) compareWitnesses() error {
	if !n.id.Formed {
		return nil
	}
	first, err := n.log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := n.log.LastIndex()
	if err != nil {
		return err
	}
	if first > 1 {
		n.snapshots.dropBefore(first - 1)
	}
	_, newest := n.snapshots.bounds()
	end := max(last, newest)
	markIndex, markTerm := n.log.mark.get()
	where := n.cfg.layout()
	if end < n.id.FloorIndex || end < markIndex {
		return fmt.Errorf("%w: %s ends at entry %d and the newest whole snapshot at %d, but entry %d was acknowledged; restore the files from this server's disk or a backup",
			ErrLess, where.log(n.id.LogStore), last, newest, max(markIndex, n.id.FloorIndex))
	}
	if first > newest+1 {
		return fmt.Errorf("%w: the log begins at entry %d, and no whole snapshot reaches it", ErrLess, first)
	}
	for _, known := range []struct{ index, term uint64 }{{markIndex, markTerm}, {n.id.FloorIndex, n.id.FloorTerm}} {
		if known.index < first || known.index > last || known.index == 0 {
			continue
		}
		var l raft.Log
		if err := n.log.GetLog(known.index, &l); err != nil {
			return fmt.Errorf("%s: %w", where.log(n.id.LogStore), err)
		}
		if l.Term != known.term {
			return fmt.Errorf("%w: entry %d has term %d, acknowledged was one of term %d", ErrLess, known.index, l.Term, known.term)
		}
	}
	term, err := n.stable.GetUint64(currentTermKey)
	if err != nil && !errors.Is(err, errKeyNotFound) || term < markTerm {
		return fmt.Errorf("%w: %s knows term %d, but an entry of term %d was acknowledged", ErrLess, where.stable(), term, markTerm)
	}
	return nil
}

// startRaft forms the ensemble if need be and starts Raft and our goroutines.
func (n *Node) startRaft() error {
	id := raft.ServerID(n.id.raftID())
	config := n.cfg.raftConfig(id)
	config.Logger = newRaftLogger(n.logger, "raft")
	if err := n.openTransport(config); err != nil {
		return err
	}
	r, err := n.newRaft(config)
	if err != nil && n.log.first.Load() == 1 && n.snapshots.allSetAside() {
		n.logger.Error("no snapshot can be restored; the whole log is replayed instead")
		r, err = n.newRaft(config)
	}
	if reason := n.Err(); err != nil && reason != nil {
		return reason // the library only says that there is no snapshot
	}
	if err != nil && n.snapshots.allSetAside() {
		return fmt.Errorf("%w: no snapshot in %s can be restored and the log begins at entry %d; restore the files from a backup: %w",
			ErrCorrupt, n.cfg.layout().snapshots(), n.log.first.Load(), err)
	}
	if err != nil {
		return err
	}
	n.raft = r
	close(n.raftSet)
	n.log.patient.Store(true)
	n.stable.patient.Store(true)
	n.batcher.apply = func(data []byte) raft.Future { return n.cfg.applyUnlessRefused(r, data) }
	n.batcher.barrier = func() raft.Future { return r.Barrier(0) }
	n.workers.Add(3)
	go func() { defer n.workers.Done(); n.batcher.reap() }()
	go n.watchLeadership()
	go n.takeSnapshots()
	if n.cfg.alone() {
		if servers := r.GetConfiguration().Configuration().Servers; len(servers) == 1 && servers[0].ID == id {
			n.lone.campaign()
		}
		return nil
	}
	return n.startEnsemble()
}

// openTransport makes the transport: one that reaches nobody for a server
// alone, which also forms its ensemble of one at the first start; else the
// peer port.
func (n *Node) openTransport(config *raft.Config) (err error) {
	if !n.cfg.alone() {
		if n.port, err = n.openPeerPort(); err != nil {
			return fmt.Errorf("open the peer port: %w", err)
		}
		n.network = n.newNetwork()
		n.transport = n.network
		return nil
	}
	n.lone = newLoneTransport(raft.ServerAddress(n.id.raftID()))
	n.transport = n.lone
	if !n.id.Formed {
		if err := n.form(config); err != nil {
			return fmt.Errorf("form the ensemble: %w", err)
		}
	}
	return nil
}

// startEnsemble starts what only an ensemble of several servers has.
func (n *Node) startEnsemble() error {
	n.workers.Add(6 + len(n.port.listeners))
	go n.takeNotes()
	go n.forward(n.network)
	for _, l := range n.port.listeners { // nobody moves them before Open returns
		go n.port.accept(l)
	}
	go n.watchLeader()
	go n.followLeader()
	go n.keepStreams()
	go n.manageMembers()
	n.workers.Add(1)
	if n.id.Formed {
		go n.resume()
	} else {
		go n.found()
	}
	return nil
}

// form writes the first entry, the configuration of a lone voter.
func (n *Node) form(config *raft.Config) error {
	servers := raft.Configuration{Servers: []raft.Server{{ID: config.LocalID, Address: n.lone.LocalAddr()}}}
	if err := raft.BootstrapCluster(config, n.log, n.stable, n.snapshots, n.lone, servers); err != nil {
		return err
	}
	err := n.stable.update(func(i *identity) { i.Formed, i.FloorIndex, i.FloorTerm = true, 1, 1 })
	n.id = n.stable.identity()
	return err
}

// newRaft starts the library. It reads every entry behind the restored snapshot
// and panics when one cannot be read, which here means a refusal.
func (n *Node) newRaft(config *raft.Config) (r *raft.Raft, err error) {
	defer func() {
		if p := recover(); p != nil {
			cause, ok := p.(error)
			if !ok {
				cause = fmt.Errorf("%v", p)
			}
			r, err = nil, fmt.Errorf("%w: the log cannot be read to its end; restore it from this server's disk or a backup: %w", ErrCorrupt, cause)
		}
	}()
	return raft.NewRaft(config, n.fsm, n.log, n.stable, n.snapshots, n.transport)
}
