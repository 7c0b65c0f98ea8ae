package server

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/tree"
	"github.com/zooraft/zooraft/internal/watch"
)

// report is the Server as room admin asks it.
type report Server

var _ admin.Server = (*report)(nil)

// Serving implements admin.Server.
func (r *report) Serving() bool {
	return (*Server)(r).serves() || r.readOnly.Load() && !r.restoring.Load()
}

// Health implements admin.Server.
func (r *report) Health() admin.Health {
	h := admin.Health{Live: true, Ready: (*Server)(r).serves(), Zxid: r.state.Zxid(), CommandLevel: int(r.state.CommandLevel())}
	if l := r.listener.Load(); l != nil {
		h.Address = (*l).Addr().String()
	}
	if !r.isOpen() {
		h.Reason = "the data are being loaded"
		return h
	}
	h.Mode = r.mode()
	status := r.node.Status()
	h.Warning = status.Differs
	_, member := r.members.Load().Get(int64(r.serverID))
	former := r.distributed && !member
	if former && h.Ready {
		h.Warning = "this server is no member of the ensemble any more: it follows without a vote until it is stopped"
	}
	switch {
	case r.node.Err() != nil:
		h.Live, h.Ready, h.Reason = false, false, r.node.Err().Error()
	case r.divergence.reason() != "":
		h.Ready, h.Reason = false, r.divergence.reason()
	case strings.HasPrefix(status.NotReady, consensus.NoLeader) && former:
		h.Ready, h.Reason = false, "this server is no member of the ensemble any more, and "+status.NotReady
	case status.NotReady != "":
		h.Ready, h.Reason = false, status.NotReady
	case r.restoring.Load():
		h.Reason = "a snapshot is being loaded"
	case !h.Ready:
		h.Reason = "the log is being applied"
	}
	return h
}

// Stats implements admin.Server.
func (r *report) Stats() admin.Stats {
	st := admin.Stats{
		Mode:            r.mode(),
		PeerState:       r.peerState(),
		PacketsReceived: r.metrics.packetsReceived.Load(), PacketsSent: r.metrics.packetsSent.Load(),
		Latency: r.metrics.latency.Value(), Connections: r.conns.count(),
		Outstanding: r.outstanding.Load(), StartTime: r.started,
		Responses: sizes(r.metrics.responses.Value()), Proposals: sizes(r.metrics.proposals.Value()),
		Watches: r.state.Watches().Count(), AuthFailed: r.metrics.authFailed.Load(),
		ConnectionDropRatio: r.connectThrottle.dropChance(),
	}
	st.Responses.Last, st.Proposals.Last = r.metrics.lastResponse.Load(), r.metrics.lastProposal.Load()
	r.ensembleStats(&st)
	r.state.View(func(v state.View) {
		st.LastZxid, st.Nodes, st.DataSize = v.Zxid, v.Tree.NodeCount(), v.Tree.ApproximateDataSize()
		st.Ephemerals, st.GlobalSessions = v.Tree.EphemeralCount(), int64(v.Table.Len())
	})
	return st
}

func sizes(v metrics.SummaryValue) admin.Sizes {
	if v.Count == 0 {
		return admin.Sizes{Last: -1, Min: -1, Max: -1}
	}
	return admin.Sizes{Min: v.Min, Max: v.Max}
}

// Connections implements admin.Server.
func (r *report) Connections() []admin.Connection {
	all := r.conns.all()
	out := make([]admin.Connection, 0, len(all))
	for _, c := range all {
		out = append(out, c.describe())
	}
	return out
}

func (c *conn) describe() admin.Connection {
	a := admin.Connection{
		Remote: c.remote, Reading: !c.stats.asksWord.Load(), WritePending: c.out.waiting() > 0,
		Outstanding: int64(c.queue.length()), PacketsReceived: c.stats.received.Load(), PacketsSent: c.stats.sent.Load(),
		Session: c.SessionID(), Established: c.since, Timeout: time.Duration(c.timeout.Load()) * time.Millisecond,
	}
	s := &c.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	a.LastOp, a.LastCxid, a.LastZxid = s.lastOp, s.lastCxid, s.lastZxid
	a.LastResponseMS, a.LastLatencyMS = s.lastResponse.Milliseconds(), s.lastLatency
	a.MinLatencyMS, a.MaxLatencyMS = s.latencyMin, s.latencyMax
	if s.latencyCount > 0 {
		a.AvgLatencyMS = s.latencySum / s.latencyCount
	}
	return a
}

// ResetStats implements admin.Server.
func (r *report) ResetStats() {
	r.metrics.packetsReceived.Reset()
	r.metrics.packetsSent.Reset()
	r.metrics.latency.Reset()
	r.metrics.responses.Reset()
	r.metrics.lastResponse.Store(-1)
	r.metrics.proposals.Reset()
	r.metrics.lastProposal.Store(-1)
}

// ResetConnectionStats implements admin.Server.
func (r *report) ResetConnectionStats() {
	for _, c := range r.conns.all() {
		c.stats.reset()
	}
}

// Conf implements admin.Server.
func (r *report) Conf() admin.Conf {
	c := r.config
	port := c.Listen.Port
	if l := r.listener.Load(); l != nil {
		port = (*l).Addr().(*net.TCPAddr).Port
	}
	conf := admin.Conf{
		ClientPort: port, SecureClientPort: -1,
		DataDir: absolute(c.Storage.OwnDataDir()), DataLogDir: absolute(c.Storage.OwnLogDir()),
		TickTime: c.Session.TickTime, MaxClientCnxns: c.Listen.MaxConnectionsPerHost,
		MinSessionTimeout: c.Session.MinTimeout, MaxSessionTimeout: c.Session.MaxTimeout,
		ListenBacklog: -1, ServerID: 0,
	}
	if r.distributed {
		conf.ServerID = int64(r.serverID)
		conf.Ensemble = r.ensembleConf()
	}
	return conf
}

func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}

// DirSizes implements admin.Server.
func (r *report) DirSizes() (data, log int64) {
	st := &r.config.Storage
	if r.embedding.Memory != nil {
		return 0, 0
	}
	return dirSize(st.OwnDataDir()), dirSize(st.OwnLogDir())
}

// dirSize adds up the files below dir. Files may come and go meanwhile.
func dirSize(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.Type().IsRegular():
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// wallOf turns a monotonic time of this server into a time of day.
func (r *report) wallOf(at time.Duration) time.Time {
	return r.clock.Wall().Add(at - r.clock.Monotonic())
}

// Sessions implements admin.Server.
func (r *report) Sessions() admin.Sessions {
	var out admin.Sessions
	if r.local.enabled() {
		out.Local = r.buckets(r.local.tracker)
	}
	if r.distributed && r.mode() != admin.ModeLeader {
		out.Follower = true
		r.state.View(func(v state.View) {
			for _, row := range v.Table.All() {
				out.Global = append(out.Global, admin.SessionTimeout{ID: row.ID, Timeout: time.Duration(row.TimeoutMillis) * time.Millisecond})
			}
		})
		return out
	}
	out.Buckets = r.buckets(r.tracker)
	return out
}

func (r *report) buckets(t *session.Tracker) []admin.SessionBucket {
	out := []admin.SessionBucket{}
	for at, ids := range t.Buckets() {
		slices.Sort(ids)
		out = append(out, admin.SessionBucket{Expire: r.wallOf(at), IDs: ids})
	}
	slices.SortFunc(out, func(a, b admin.SessionBucket) int { return a.Expire.Compare(b.Expire) })
	return out
}

// Ephemerals implements admin.Server.
func (r *report) Ephemerals() []admin.SessionPaths {
	var out []admin.SessionPaths
	r.state.View(func(v state.View) {
		for id, paths := range v.Tree.SessionsWithEphemerals() {
			out = append(out, admin.SessionPaths{Session: id, Paths: slices.Clone(paths)})
		}
	})
	return out
}

// ConnectionBuckets implements admin.Server. A connection is closed with its
// session here; before it has one, after the time for that.
func (r *report) ConnectionBuckets() []admin.ConnectionBucket {
	tick := r.config.Session.TickTime
	buckets := map[time.Duration]*admin.ConnectionBucket{}
	for _, c := range r.conns.all() {
		timeout := time.Duration(c.timeout.Load()) * time.Millisecond
		if timeout == 0 {
			timeout = r.config.Listen.SessionlessTimeout
		}
		at := ((time.Duration(c.heard.Load())+timeout)/tick + 1) * tick
		b := buckets[at]
		if b == nil {
			b = &admin.ConnectionBucket{Expire: r.wallOf(at)}
			buckets[at] = b
		}
		b.Connections = append(b.Connections, admin.BucketConnection{Remote: c.remote, Session: c.SessionID()})
	}
	out := make([]admin.ConnectionBucket, 0, len(buckets))
	for _, b := range buckets {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b admin.ConnectionBucket) int { return a.Expire.Compare(b.Expire) })
	return out
}

// WatchSummary implements admin.Server.
func (r *report) WatchSummary() admin.WatchSummary {
	s := r.state.Watches().DataSummary()
	return admin.WatchSummary{Connections: s.Watchers, Paths: s.Paths, Watches: s.Watches}
}

// WatchesBySession implements admin.Server.
func (r *report) WatchesBySession() []admin.SessionPaths {
	by := map[proto.SessionID][]string{}
	r.state.Watches().EachData(func(w watch.Watcher, path string) {
		id := w.(*conn).SessionID()
		by[id] = append(by[id], path)
	})
	out := make([]admin.SessionPaths, 0, len(by))
	for id, paths := range by {
		slices.Sort(paths)
		out = append(out, admin.SessionPaths{Session: id, Paths: paths})
	}
	slices.SortFunc(out, func(a, b admin.SessionPaths) int { return cmp.Compare(a.Session, b.Session) })
	return out
}

// WatchesByPath implements admin.Server.
func (r *report) WatchesByPath() []admin.PathSessions {
	by := map[string][]proto.SessionID{}
	r.state.Watches().EachData(func(w watch.Watcher, path string) {
		by[path] = append(by[path], w.(*conn).SessionID())
	})
	out := make([]admin.PathSessions, 0, len(by))
	for path, ids := range by {
		slices.Sort(ids)
		out = append(out, admin.PathSessions{Path: path, Sessions: ids})
	}
	slices.SortFunc(out, func(a, b admin.PathSessions) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// Watches implements admin.Server.
func (r *report) Watches() []admin.Watch { return (*Server)(r).everyWatch() }

// everyWatch copies the watches of this server's connections, sorted.
func (s *Server) everyWatch() []admin.Watch {
	var all []admin.Watch
	s.state.Watches().Each(func(w watch.Watcher, path string, mode watch.Mode, child bool) {
		for _, kind := range kindsOf(mode, child) {
			all = append(all, admin.Watch{Path: path, Session: w.(*conn).SessionID(), Kind: kind})
		}
	})
	slices.SortFunc(all, func(a, b admin.Watch) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// kindsOf names the modes of one pair of a session and a path.
func kindsOf(mode watch.Mode, child bool) (kinds []string) {
	once := "data"
	if child {
		once = "children"
	}
	for _, k := range []struct {
		mode watch.Mode
		name string
	}{{watch.Standard, once}, {watch.Persistent, "persistent"}, {watch.Recursive, "recursive"}} {
		if mode&k.mode != 0 {
			kinds = append(kinds, k.name)
		}
	}
	return kinds
}

// Quotas implements admin.Server. Of several quotas in one namespace the last
// in the order of paths is shown.
func (r *report) Quotas() []admin.NamespaceQuota {
	by := map[string]admin.NamespaceQuota{}
	r.state.View(func(v state.View) {
		for _, q := range v.Tree.Quotas() {
			by[tree.Namespace(q.Path)] = admin.NamespaceQuota{
				Namespace: tree.Namespace(q.Path), HasLimit: true, HasUsage: q.HasUsage,
				CountLimit: q.CountLimit, BytesLimit: q.BytesLimit, CountUsage: q.CountUsage, BytesUsage: q.BytesUsage,
			}
		}
	})
	out := slices.Collect(maps.Values(by))
	slices.SortFunc(out, func(a, b admin.NamespaceQuota) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}

// digestVersion is the version of Apache's definition of the tree digest.
const digestVersion = 2

// Digests implements admin.Server.
func (r *report) Digests() []admin.Digest {
	var out []admin.Digest
	r.state.View(func(v state.View) {
		for _, d := range v.Digests {
			out = append(out, admin.Digest{Zxid: d.Zxid, Version: digestVersion, Digest: d.Digest})
		}
	})
	return out
}
