package server

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/auth"
	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/watch"
)

var (
	// ErrListen is returned by Start when the client port cannot be opened.
	ErrListen = errors.New("server: the client port cannot be opened")
	// ErrData is returned by Start when the data directory cannot be used as it
	// is: locked, corrupt, or another server's. The text says what to do.
	ErrData = errors.New("server: the data directory cannot be used")
)

// Options are what a Server needs beside the operator's configuration.
type Options struct {
	Config *config.Config
	// Build is what the words srvr, stat and envi say. Default: what the Go tool
	// recorded in the program.
	Build admin.Build
	// Logger receives what the server has to say. Default: slog.Default().
	Logger *slog.Logger
	// Clock is the server's time. Default: the machine's.
	Clock Clock
	// OutboxMaxBytes is how much may wait for one client that does not read
	// before its connection is closed. Default 256 MiB, and at least room for
	// four largest replies.
	OutboxMaxBytes int
	// OutboxesMaxBytes is how much may wait for all clients together before
	// those that are furthest behind are closed. Default 512 MiB, and at least
	// OutboxMaxBytes.
	OutboxesMaxBytes int64
	// Embedding is for servers inside tests.
	Embedding Embedding
}

const (
	// defaultOutboxMaxBytes is the default of Options.OutboxMaxBytes.
	defaultOutboxMaxBytes = 256 << 20
	// defaultOutboxesMaxBytes is the default of Options.OutboxesMaxBytes.
	defaultOutboxesMaxBytes = 512 << 20
)

// standaloneID is the server id of a server alone. Apache's standalone server
// uses 1 in the session ids that it makes.
const standaloneID = 1

// Server is one running server.
type Server struct {
	config    *config.Config
	logger    *slog.Logger
	clock     Clock
	embedding Embedding
	serverID  int32
	// distributed is false for a server alone; gate, leaderID and reports
	// matter only where it is true.
	distributed bool
	gate        *gate
	leaderID    atomic.Int64 // −1 when none is known
	// members is the membership in force, as this server knows it.
	members         atomic.Pointer[proto.Membership]
	membershipMoved chan struct{} // capacity 1
	reconfigMoved   chan struct{} // capacity 1: the same, for the leader's duty
	wanted          *wanted
	local           *localSessions

	leadingSince   atomic.Int64  // monotonic time when it began to, ns
	leading        atomic.Bool   // this server leads and has applied all of the log
	reigns         atomic.Uint64 // how often this server has begun to lead
	leadingChanged chan struct{} // capacity 1
	started        time.Time

	metrics         *serverMetrics
	logMetrics      *logMetrics
	ensembleMetrics *ensembleMetrics
	slowSyncs       *slowSyncs
	largeReplies    *largeReplies
	registry        *metrics.Registry
	closings        *closings
	auth            *auth.Authenticator
	words           *admin.Admin
	channel         *admin.Channel
	connectThrottle *connectThrottle
	requestThrottle *requestThrottle
	leaderClock     *leaderClock
	duties          *duties
	heard           *heard
	divergence      *divergence
	peerListen      string // where the other servers connect; followMembership's own once it runs
	pathCounts      pathCounts
	// changeAskedBy tells whether the change of the membership under way was
	// asked for by a connection, which waits for its end.
	changeAskedBy func(proto.Origin) bool

	state   *state.Machine
	hook    *hook
	tracker *session.Tracker
	node    *consensus.Node

	listener       atomic.Pointer[net.Listener] // set before Start returns; a reconfig may move it
	conns          *registry
	lastConn       atomic.Uint64
	outboxMaxBytes int
	outboxes       outboxes
	// costlyReads is held by costly reads while they run: as many as there are
	// processors. More at once would be no faster, would hold more memory, and
	// would keep everything else from its turn.
	costlyReads chan struct{}
	// multiReadMaxBytes is 64 MiB, and at least room for four largest nodes.
	multiReadMaxBytes int
	lastSession       atomic.Int64
	outstanding       atomic.Int64 // requests in work, of all connections
	writes            writeBytes

	serving atomic.Bool // the serving gate
	// restoring is set while a snapshot is read in: there is no state meanwhile.
	restoring atomic.Bool
	readOnly  atomic.Bool    // read-only mode, only while the gate is closed
	opened    chan struct{}  // closed when Start has set node
	ready     chan struct{}  // closed when the gate first opens
	readyOne  sync.Once      // guards ready
	stopped   chan struct{}  // closed by Stop
	stopOnce  sync.Once      // guards stopped
	running   sync.WaitGroup // accept loop and read loops
	parking   *parking       // where idle connections wait; nil where they wait each by itself
}

// Start opens the client port and the data, and begins to serve. It returns
// when the port is open and the data are loaded; clients are served once
// Ready is closed, usually at the same time. While the data are loaded, words
// and the admin channel are answered already, and clients turned away.
func Start(o Options) (*Server, error) {
	s, err := build(o)
	if err != nil {
		return nil, err
	}
	if err := s.appear(); err != nil {
		return nil, err
	}
	if s.node, err = consensus.Open(s.consensusConfig(), machine{s.state, s}, s.hook); err != nil {
		return nil, errors.Join(dataError(err), s.abandon())
	}
	close(s.opened)
	s.running.Add(1)
	go s.lead()
	if s.distributed {
		s.logger.Info("the election ports of the server lines are not used: elections go over the quorum ports")
		s.awaitReadOnly()
		s.running.Add(3)
		if s.config.Session.Local {
			s.running.Add(1)
			go s.local.expire()
		}
		go s.followMembership()
		go s.heard.report()
		go s.heard.confirm()
	}
	return s, nil
}

// appear opens the client port and the admin channel.
func (s *Server) appear() error {
	if err := s.listen(); err != nil {
		return err
	}
	s.openChannel()
	s.openParking()
	s.running.Add(1)
	go s.accept(*s.listener.Load())
	return nil
}

// abandon undoes a start that could not open the data.
func (s *Server) abandon() error {
	close(s.stopped)
	_ = (*s.listener.Load()).Close() // ends the accept loop
	s.closeConnections()
	var err error
	if s.channel != nil {
		err = s.channel.Close()
	}
	s.closeParking()
	s.running.Wait()
	return err
}

// closeConnections closes those that are there.
func (s *Server) closeConnections() {
	for _, c := range s.conns.all() {
		c.close(reasonStopping, "")
	}
}

// build makes a server that has not touched the outside world.
func build(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Clock = o.Clock.Filled()
	if o.Build == (admin.Build{}) {
		o.Build = admin.CurrentBuild("")
	}
	if o.OutboxMaxBytes == 0 {
		o.OutboxMaxBytes = defaultOutboxMaxBytes
	}
	if o.OutboxesMaxBytes == 0 {
		o.OutboxesMaxBytes = defaultOutboxesMaxBytes
	}
	c := o.Config
	authenticator, err := auth.New(auth.Config{
		DigestEnabled: c.Security.DigestEnabled, DigestAlgorithm: c.Security.DigestAlgorithm,
		SuperDigest: c.Security.SuperDigest,
	})
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: c, outboxMaxBytes: max(o.OutboxMaxBytes, 4*c.Limits.MaxFrame),
		logger: o.Logger, clock: o.Clock, embedding: o.Embedding, serverID: standaloneID, started: o.Clock.Wall(),
		registry: metrics.NewRegistry(), auth: authenticator, multiReadMaxBytes: max(64<<20, 4*c.Limits.MaxFrame),
		costlyReads: make(chan struct{}, runtime.GOMAXPROCS(0)),
		conns:       newRegistry(connectionsFor(openFilesMax())), tracker: session.NewTracker(c.Session.TickTime),
		leaderClock:    &leaderClock{clock: o.Clock},
		leadingChanged: make(chan struct{}, 1), membershipMoved: make(chan struct{}, 1), reconfigMoved: make(chan struct{}, 1),
		opened: make(chan struct{}), ready: make(chan struct{}), stopped: make(chan struct{}),
	}
	if own, ok := ownMember(c); ok {
		s.distributed, s.serverID = true, int32(own.ID)
	}
	s.members.Store(configured(&c.Ensemble))
	s.wanted = &wanted{server: s}
	s.local = newLocalSessions(s)
	s.gate = &gate{server: s}
	if s.distributed {
		s.gate.patience = s.patience()
	}
	s.leaderID.Store(-1)
	s.outboxes.bytes = metrics.NewSpread()
	s.outboxes.maxBytes = max(o.OutboxesMaxBytes, int64(s.outboxMaxBytes))
	s.metrics = newServerMetrics(s.registry)
	s.logMetrics = newLogMetrics(s.registry)
	s.ensembleMetrics = newEnsembleMetrics(s.registry, s.clock.Monotonic, s.distributed)
	s.largeReplies = newLargeReplies(s.registry, s.logger, s.clock.Monotonic)
	s.slowSyncs = newSlowSyncs(s.registry, s.logger, s.clock.Monotonic, c.Storage.FsyncWarningThreshold)
	s.closings = newClosings(s.logger, s.clock.Monotonic, s.metrics.closed)
	s.connectThrottle = newConnectThrottle(c.Throttle, s.distributed && c.Session.Local, s.clock.Monotonic, s.metrics.tokenDeficit.Observe)
	s.requestThrottle = &requestThrottle{server: s}
	s.duties = &duties{server: s}
	s.heard = newHeard(s)
	s.divergence = &divergence{server: s}
	s.hook = &hook{Server: s, entry: 1, processors: runtime.GOMAXPROCS(0), writer: newPromptWriter()}
	s.state = state.New(s.hook, watch.New(watch.NewMetrics(s.registry)))
	s.prepareLevel()
	s.showLogAge()
	s.changeAskedBy = s.changeIsOf
	s.state.CountTraffic(newTraffic(s.registry))
	s.lastConn.Store(rand.Uint64() | 1)
	s.lastSession.Store(firstSession(s.serverID, s.clock.Wall()))
	s.words = admin.New(admin.Config{Allows: c.Words.Allows, Build: o.Build}, (*report)(s), s.registry)
	return s, nil
}

// packedLog returns the defaults for a data directory, with commands packed in
// the log: whoever opens one has to begin with it.
func packedLog(dataDir string) consensus.Config {
	c := consensus.DefaultConfig(dataDir)
	c.Pack, c.Unpack = proto.PackCommand, proto.UnpackCommand
	return c
}

// consensusConfig hands the operator's storage settings on.
func (s *Server) consensusConfig() consensus.Config {
	st := &s.config.Storage
	c := packedLog(st.DataDir)
	c.LogDir = st.LogDir
	c.LogStore = string(st.LogStore)
	c.SnapCount = st.SnapCount
	c.SnapSizeLimitBytes = st.SnapSizeLimit
	c.SnapRetainCount = st.SnapRetainCount
	if st.PreAllocSize > 0 {
		c.SegmentBytes = int(min(max(st.PreAllocSize, 256<<10), 1<<30))
	}
	c.Logger = s.logger
	c.Stamp = s.stamp
	c.CommandLevels = s.levels
	c.Observe = s.logMetrics.observer(s.slowSyncs, s.ensembleMetrics)
	s.peers(&c)
	s.embedding.adapt(&c)
	return c
}

// stamp is what the leader adds to each log entry: its time, and those of its
// switches that decide what apply does.
func (s *Server) stamp() (timeMillis int64, switches uint32) {
	for _, b := range []struct {
		on  bool
		bit uint32
	}{
		{s.config.Security.SkipACL, proto.SwitchSkipACL},
		{s.config.Security.EnforceQuota, proto.SwitchEnforceQuota},
		{s.config.Containers.ExtendedTypes, proto.SwitchExtendedTypes},
		{s.config.Ensemble.ReconfigEnabled, proto.SwitchReconfig},
		{!s.config.Security.DigestEnabled, proto.SwitchNoDigest},
		{s.distributed, proto.SwitchEnsemble},
		{s.config.Ensemble.StandaloneEnabled, proto.SwitchStandalone},
		{s.config.Ensemble.MultiAddress, proto.SwitchMultiAddress},
	} {
		if b.on {
			switches |= b.bit
		}
	}
	return s.leaderClock.now().UnixMilli(), switches
}

// dataError marks the errors of Open that an operator must settle.
func dataError(err error) error {
	for _, kind := range []error{
		consensus.ErrLocked, consensus.ErrCorrupt, consensus.ErrLess,
		consensus.ErrLogStoreMismatch, consensus.ErrIdentityMismatch, consensus.ErrNewer, consensus.ErrForgotten, consensus.ErrSuperseded,
	} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w: %w", ErrData, err)
		}
	}
	switch {
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w (the server's user must be able to write there)", ErrData, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w (nothing is lost; free some space and start again)", ErrData, err)
	}
	return err
}

// openChannel opens the local admin channel. A server without it is a server
// all the same.
func (s *Server) openChannel() {
	if s.embedding.Memory != nil {
		return // there is no directory to put it into
	}
	var err error
	if s.channel, err = s.words.Open(s.config.Storage.OwnDataDir()); err != nil {
		s.logger.Warn("the local admin channel cannot be opened; zooraft health will not work", "error", err)
	}
}

// lead is a goroutine: it starts and stops the duties, and opens and closes
// the serving gate, as this server begins and ceases to lead. It looks at what
// is the case now, so that quick changes cannot be taken in the wrong order.
func (s *Server) lead() {
	defer s.running.Done()
	reign := uint64(0)
	for {
		select {
		case <-s.stopped:
			return
		case <-s.leadingChanged:
		}
		if now := s.reigns.Load(); now != reign {
			reign = now
			s.duties.stop() // another server may have led between
		}
		if s.leading.Load() {
			s.leadingSince.Store(int64(s.clock.Monotonic()))
			s.duties.start()
			s.publishMembership()
			s.gate.setLeading(true)
		} else {
			s.duties.stop()
			s.gate.setLeading(false)
		}
	}
}

// Ready is closed once clients are served for the first time.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Failed is closed when the server has given up by itself; Err then tells why.
func (s *Server) Failed() <-chan struct{} { return s.node.Failed() }

// Err is why the server has given up, nil if it has not. ErrData is in it if
// an operator must settle something first: only a newer version of the program can
// go on with the data, or the ensemble has forgotten a part of them.
func (s *Server) Err() error {
	err := s.node.Err()
	if errors.Is(err, consensus.ErrNewer) || errors.Is(err, consensus.ErrForgotten) || errors.Is(err, consensus.ErrSuperseded) {
		return dataError(err)
	}
	return err
}

// Addr is where clients connect.
func (s *Server) Addr() net.Addr { return (*s.listener.Load()).Addr() }

// Stop closes every connection and the data. Sessions stay; they go on when
// the server starts again.
func (s *Server) Stop() error {
	var err error
	s.stopOnce.Do(func() {
		close(s.stopped)
		s.serving.Store(false)
		_ = (*s.listener.Load()).Close() // ends the accept loop
		s.closeConnections()
		s.duties.stop()
		err = s.node.Close()
		if s.channel != nil {
			err = errors.Join(err, s.channel.Close())
		}
		s.closeConnections()
		s.closeParking()
		s.running.Wait()
	})
	return err
}

// pause waits; it returns false if the server stops meanwhile.
func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.stopped:
		return false
	}
}
