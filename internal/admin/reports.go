package admin

import (
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// Prints to a bufio.Writer keep their first error, which its Flush returns, so
// the reports below do not look at errors.

type rawText string

func (t rawText) writeText(out io.Writer) { _, _ = io.WriteString(out, string(t)) }

// serverReport is srvr, and stat when it has clients.
type serverReport struct {
	version string
	stats   Stats
	clients []Connection
	listed  bool
}

func (a *Admin) serverReport(withClients bool) report {
	r := serverReport{version: a.config.Build.String(), stats: a.server.Stats(), listed: withClients}
	if withClients {
		r.clients = a.server.Connections()
	}
	return r
}

func (r serverReport) writeText(out io.Writer) {
	s := r.stats
	fmt.Fprintf(out, "Zookeeper version: %s\n", r.version)
	if s.ReadOnly {
		fmt.Fprint(out, "READ-ONLY mode; serving only read-only clients\n")
	}
	if r.listed {
		fmt.Fprint(out, "Clients:\n")
		for _, c := range r.clients {
			c.writeBrief(out)
			fmt.Fprint(out, ")\n")
		}
		fmt.Fprint(out, "\n")
	}
	fmt.Fprintf(out, "Latency min/avg/max: %d/%s/%d\n", s.Latency.Min, metrics.Float(s.Latency.Avg), s.Latency.Max)
	fmt.Fprintf(out, "Received: %d\nSent: %d\n", s.PacketsReceived, s.PacketsSent)
	fmt.Fprintf(out, "Connections: %d\nOutstanding: %d\n", s.Connections, s.Outstanding)
	fmt.Fprintf(out, "Zxid: %v\nMode: %s\nNode count: %d\n", s.LastZxid, s.Mode, s.Nodes)
	if s.Mode == ModeLeader {
		fmt.Fprintf(out, "Proposal sizes last/min/max: %d/%d/%d\n", s.Proposals.Last, s.Proposals.Min, s.Proposals.Max)
	}
}

// javaAddress prints an address as Java's InetSocketAddress does: a slash for
// the host name that was not looked up, and IPv6 in brackets without
// shortening.
func javaAddress(a netip.AddrPort) string {
	addr := a.Addr().Unmap()
	if addr.Is4() {
		return "/" + netip.AddrPortFrom(addr, a.Port()).String()
	}
	var groups []string
	bytes := addr.As16()
	for i := 0; i < len(bytes); i += 2 {
		groups = append(groups, strconv.FormatUint(uint64(bytes[i])<<8|uint64(bytes[i+1]), 16))
	}
	host := strings.Join(groups, ":")
	if zone := addr.Zone(); zone != "" {
		host += "%" + zone
	}
	return fmt.Sprintf("/[%s]:%d", host, a.Port())
}

// interestOps are the selector's bits that Apache prints: 1 reading, 4 writing.
func (c Connection) interestOps() int {
	ops := 0
	if c.Reading {
		ops |= 1
	}
	if c.WritePending {
		ops |= 4
	}
	return ops
}

// writeBrief leaves the closing parenthesis to its caller.
func (c Connection) writeBrief(out io.Writer) {
	fmt.Fprintf(out, " %s[%x](queued=%d,recved=%d,sent=%d", javaAddress(c.Remote), c.interestOps(),
		c.Outstanding, c.PacketsReceived, c.PacketsSent)
}

type connectionsReport []Connection

func (r connectionsReport) writeText(out io.Writer) {
	for _, c := range r {
		c.writeBrief(out)
		if c.Session != 0 {
			fmt.Fprintf(out, ",sid=%v,lop=%s,est=%d,to=%d", c.Session, c.LastOp,
				c.Established.UnixMilli(), c.Timeout.Milliseconds())
			if c.LastCxid >= 0 {
				fmt.Fprintf(out, ",lcxid=0x%x", c.LastCxid)
			}
			fmt.Fprintf(out, ",lzxid=%v,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d", c.LastZxid,
				c.LastResponseMS, c.LastLatencyMS, c.MinLatencyMS, c.AvgLatencyMS, c.MaxLatencyMS)
		}
		fmt.Fprint(out, ")\n")
	}
	fmt.Fprint(out, "\n")
}

// confReport is conf.
type confReport struct {
	Conf
	dataSize, logSize int64
}

func (a *Admin) confReport() report {
	data, log := a.server.DirSizes()
	return confReport{a.server.Conf(), data, log}
}

func (r confReport) writeText(out io.Writer) {
	fmt.Fprintf(out, "clientPort=%d\nsecureClientPort=%d\n", r.ClientPort, r.SecureClientPort)
	fmt.Fprintf(out, "dataDir=%s\ndataDirSize=%d\n", r.DataDir, r.dataSize)
	fmt.Fprintf(out, "dataLogDir=%s\ndataLogSize=%d\n", r.DataLogDir, r.logSize)
	fmt.Fprintf(out, "tickTime=%d\nmaxClientCnxns=%d\n", r.TickTime.Milliseconds(), r.MaxClientCnxns)
	fmt.Fprintf(out, "minSessionTimeout=%d\n", r.MinSessionTimeout.Milliseconds())
	fmt.Fprintf(out, "maxSessionTimeout=%d\n", r.MaxSessionTimeout.Milliseconds())
	fmt.Fprintf(out, "clientPortListenBacklog=%d\nserverId=%d\n", r.ListenBacklog, r.ServerID)
	if e := r.Ensemble; e != nil {
		fmt.Fprintf(out, "initLimit=%d\nsyncLimit=%d\nelectionAlg=%d\n", e.InitLimit, e.SyncLimit, e.ElectionAlg)
		fmt.Fprintf(out, "electionPort=%s\nquorumPort=%s\npeerType=%d\n", barred(e.ElectionPorts), barred(e.QuorumPorts), e.PeerType)
		if !e.ReadOnly {
			fmt.Fprintf(out, "membership: \n%s", e.Membership)
		}
	}
}

// barred joins ports as Apache prints several of them.
func barred(ports []int) string {
	texts := make([]string, 0, len(ports))
	for _, port := range ports {
		texts = append(texts, strconv.Itoa(port))
	}
	return strings.Join(texts, "|")
}

type dirsReport struct{ data, log int64 }

func (r dirsReport) writeText(out io.Writer) {
	fmt.Fprintf(out, "datadir_size: %d\nlogdir_size: %d\n", r.data, r.log)
}

// dumpReport is dump.
type dumpReport struct {
	zone        *time.Location
	sessions    Sessions
	ephemerals  []SessionPaths
	connections []ConnectionBucket
}

func (a *Admin) dumpReport() report {
	return dumpReport{a.config.Zone, a.server.Sessions(), a.server.Ephemerals(), a.server.ConnectionBuckets()}
}

func (r dumpReport) writeText(out io.Writer) {
	fmt.Fprint(out, "SessionTracker dump:\n")
	r.sessions.writeText(out, r.zone)
	fmt.Fprintf(out, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(r.ephemerals))
	for _, e := range r.ephemerals {
		fmt.Fprintf(out, "%v:\n", e.Session)
		for _, path := range e.Paths {
			fmt.Fprintf(out, "\t%s\n", path)
		}
	}
	members := 0
	for _, b := range r.connections {
		members += len(b.Connections)
	}
	fmt.Fprintf(out, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(r.connections), members)
	for _, b := range r.connections {
		writeExpiry(out, len(b.Connections), b.Expire.In(r.zone))
		for _, c := range b.Connections {
			fmt.Fprintf(out, "\tip: %s sessionId: %v\n", javaAddress(c.Remote), c.Session)
		}
	}
}

func (s Sessions) writeText(out io.Writer, zone *time.Location) {
	if s.Local != nil {
		fmt.Fprint(out, "Local ")
		writeSessionBuckets(out, s.Local, zone)
	}
	if s.Follower {
		fmt.Fprintf(out, "Global Sessions(%d):\n", len(s.Global))
		for _, g := range s.Global {
			fmt.Fprintf(out, "%v\t%dms\n", g.ID, g.Timeout.Milliseconds())
		}
		return
	}
	if s.Local != nil {
		fmt.Fprint(out, "Global ")
	}
	writeSessionBuckets(out, s.Buckets, zone)
}

func writeSessionBuckets(out io.Writer, buckets []SessionBucket, zone *time.Location) {
	members := 0
	for _, b := range buckets {
		members += len(b.IDs)
	}
	fmt.Fprintf(out, "Session Sets (%d)/(%d):\n", len(buckets), members)
	for _, b := range buckets {
		writeExpiry(out, len(b.IDs), b.Expire.In(zone))
		for _, id := range b.IDs {
			fmt.Fprintf(out, "\t%v\n", id)
		}
	}
}

// writeExpiry prints the time as Java's Date.toString does.
func writeExpiry(out io.Writer, n int, at time.Time) {
	fmt.Fprintf(out, "%d expire at %s:\n", n, at.Format("Mon Jan 02 15:04:05 MST 2006"))
}

type watchSummaryReport WatchSummary

func (r watchSummaryReport) writeText(out io.Writer) {
	fmt.Fprintf(out, "%d connections watching %d paths\nTotal watches:%d\n", r.Connections, r.Paths, r.Watches)
}

type watchesReport []SessionPaths

func (r watchesReport) writeText(out io.Writer) {
	for _, s := range r {
		fmt.Fprintf(out, "%v\n", s.Session)
		for _, path := range s.Paths {
			fmt.Fprintf(out, "\t%s\n", path)
		}
	}
	fmt.Fprint(out, "\n")
}

type watchesByPathReport []PathSessions

func (r watchesByPathReport) writeText(out io.Writer) {
	for _, p := range r {
		fmt.Fprintf(out, "%s\n", p.Path)
		for _, id := range p.Sessions {
			fmt.Fprintf(out, "\t%v\n", id)
		}
	}
	fmt.Fprint(out, "\n")
}

// readOnlyReport is isro.
type readOnlyReport struct{ serving, readOnly bool }

func (a *Admin) readOnlyReport() report {
	return readOnlyReport{a.server.Serving(), a.server.Stats().ReadOnly}
}

func (r readOnlyReport) writeText(out io.Writer) {
	text := "rw"
	switch {
	case !r.serving:
		text = "null"
	case r.readOnly:
		text = "ro"
	}
	fmt.Fprint(out, text)
}

type traceMaskReport int64

func (r traceMaskReport) writeText(out io.Writer) { fmt.Fprint(out, int64(r)) }

type digestsReport []Digest

func (r digestsReport) writeText(out io.Writer) {
	for _, d := range r {
		// Apache prints the digest as a signed number and the zxid without 0x.
		fmt.Fprintf(out, "%x: %d\n", uint64(d.Zxid), int64(d.Digest))
	}
}
