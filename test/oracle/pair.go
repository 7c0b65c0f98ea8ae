package oracle

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
)

// Pair is the real server and the one that is compared with it, both started
// with one configuration. It starts both again after a difference, since from
// then on their states may differ.
type Pair struct {
	Real, Ours *Target
	// Seen, when set, counts the real server's answers by kind.
	Seen *Use

	tb     testing.TB
	config string
	ours   string // "zooraft", or "apache" for a run of the real server with itself
	procs  []*peer.Server
}

// NewPair starts two servers.
func NewPair(tb testing.TB, config, ours string) *Pair {
	tb.Helper()
	p := &Pair{tb: tb, config: config, ours: ours}
	p.start()
	return p
}

func (p *Pair) start() {
	p.tb.Helper()
	apache := func() *peer.Server {
		o := options(p.config)
		maps.Copy(o.Defines, apacheOnly)
		return peer.StartApache(p.tb, o)
	}
	real := apache()
	var ours *peer.Server
	if p.ours == "apache" {
		ours = apache()
	} else {
		o := options(p.config)
		o.Race = RaceBuilt
		ours = peer.StartZooraft(p.tb, o)
	}
	p.procs = []*peer.Server{real, ours}
	anonymous := strings.Contains(p.config, "DigestAuthenticationProvider.enabled=false")
	p.Real = &Target{Name: "Apache ZooKeeper " + peer.ApacheVersion, Addr: real.Address, server: real, anonymous: anonymous}
	p.Ours = &Target{Name: p.ours, Addr: ours.Address, server: ours, anonymous: anonymous}
}

// RaceBuilt makes new pairs take a zooraft built with the race detector.
var RaceBuilt bool

// Close ends both servers. A race or a panic in a log of ours fails the test,
// whatever the answers were.
func (p *Pair) Close() {
	p.tb.Helper()
	for _, sign := range []string{"DATA RACE", "panic: ", "fatal error: "} {
		log := p.procs[1].Log()
		if i := strings.Index(log, sign); i >= 0 && p.procs[1].Kind == "zooraft" {
			p.tb.Errorf("zooraft's log has a %q:\n%s", sign, log[i:min(len(log), i+4000)])
		}
	}
	for _, t := range []*Target{p.Real, p.Ours} {
		if t.control != nil {
			t.control.Close()
		}
	}
	for _, s := range p.procs {
		s.Kill(p.tb)
	}
}

// Again replaces both servers by fresh ones.
func (p *Pair) Again() {
	p.tb.Helper()
	p.Close()
	p.start()
}

// Run runs a script on both servers at the same time and compares. The error
// is about the run itself: a server that died or refused the runner.
func (p *Pair) Run(script Script, used *Use) (*Difference, error) {
	var (
		wg   sync.WaitGroup
		out  [2]Transcript
		errs [2]error
	)
	for i, t := range []*Target{p.Real, p.Ours} {
		wg.Go(func() { out[i], errs[i] = t.Run(script) })
	}
	wg.Wait()
	if errs[0] != nil {
		return nil, p.withLog(errs[0], 0)
	}
	p.count(out[0])
	d := Compare(script, out[0], out[1], Rows, used)
	if d == nil && errs[1] != nil {
		return nil, p.withLog(errs[1], 1)
	}
	return d, nil
}

// accidents counts the differences of this process that did not repeat.
var accidents atomic.Int32

// maxAccidents is how many differences that do not repeat a run may have. A
// machine that stands still for seconds makes a session expire on one server and
// not on the other; a server that is wrong now and then does it more often.
const maxAccidents = 3

// RunTwice is Run, but what it finds must be found again on fresh servers. What
// is not found again is printed, and counts as found once there is too much of
// it.
func (p *Pair) RunTwice(script Script, used *Use) (*Difference, error) {
	p.tb.Helper()
	d, err := p.Run(script, used)
	if d == nil && err == nil {
		return nil, nil
	}
	p.Again()
	if d2, err2 := p.Run(script, used); d2 != nil || err2 != nil {
		return d2, err2
	}
	n := accidents.Add(1)
	fmt.Printf("accident %d, of at most %d (script %s, not found again on fresh servers): %v %v\n", n, maxAccidents, script.Name, d, err)
	if n > maxAccidents {
		return d, err
	}
	return nil, nil
}

// count notes which kinds of answer a script brought about.
func (p *Pair) count(t Transcript) {
	if p.Seen == nil {
		return
	}
	for _, e := range Normalise(t) {
		kind := what(e)
		switch {
		case kind == "event":
			kind += " of type " + e.field("type")
		case e.Kind == KindFrame:
			kind += " " + e.field("err")
			if sub := e.field("op[0].code"); sub != "" && sub != errText(0) {
				kind += ", inside " + sub
			}
		case e.Kind == KindConnect && e.field("sessionId") == "0":
			kind += " refused"
		}
		p.Seen.add(kind)
	}
}

// withLog adds the end of a server's log to an error about its run.
func (p *Pair) withLog(err error, i int) error {
	log := strings.Split(strings.TrimSpace(p.procs[i].Log()), "\n")
	return fmt.Errorf("%w\nits log ends with\n%s", err, strings.Join(log[max(0, len(log)-25):], "\n"))
}

// String names the pair for a report.
func (p *Pair) String() string {
	return fmt.Sprintf("%s against %s, config %q", p.Real.Name, p.Ours.Name, p.config)
}

// MakeEven starts both servers again if what scripts leave behind differs:
// the nodes that every server has. Everything else a script removes.
func (p *Pair) MakeEven() {
	p.tb.Helper()
	a, errA := p.Real.leftovers()
	b, errB := p.Ours.leftovers()
	if errA != nil || errB != nil || a != b || p.Real.runs != p.Ours.runs {
		p.Again()
	}
}
