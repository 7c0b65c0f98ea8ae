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
	size   int    // servers on each side
}

// NewPair starts two servers.
func NewPair(tb testing.TB, config, ours string) *Pair { return newPair(tb, config, ours, 1) }

// ensembleSize is how many servers an ensemble has: the fewest of which one may
// fail, and enough for a script's connections to be at a leader and at two
// followers.
const ensembleSize = 3

// NewEnsemblePair starts two ensembles.
func NewEnsemblePair(tb testing.TB, config, ours string) *Pair {
	return newPair(tb, config, ours, ensembleSize)
}

func newPair(tb testing.TB, config, ours string, size int) *Pair {
	tb.Helper()
	p := &Pair{tb: tb, config: config, ours: ours, size: size}
	p.start()
	return p
}

func (p *Pair) start() {
	p.tb.Helper()
	p.Real = p.target("apache", "Apache ZooKeeper "+peer.ApacheVersion)
	p.Ours = p.target(p.ours, p.ours)
}

// target starts a server or an ensemble of a kind.
func (p *Pair) target(kind, name string) *Target {
	p.tb.Helper()
	o := options(p.config)
	alone, together := peer.StartZooraft, peer.StartZooraftEnsemble
	if kind == "apache" {
		alone, together = peer.StartApache, peer.StartApacheEnsemble
		maps.Copy(o.Defines, apacheOnly)
	} else {
		o.Race = RaceBuilt
	}
	t := &Target{Name: name, anonymous: strings.Contains(p.config, "DigestAuthenticationProvider.enabled=false")}
	if p.size == 1 {
		t.sites = []*site{{number: 1, server: alone(p.tb, o)}}
		return t
	}
	e := together(p.tb, p.size, o)
	t.members = e.Members
	for i, s := range e.Servers {
		t.sites = append(t.sites, &site{number: i + 1, server: s})
	}
	return t
}

// RaceBuilt makes new pairs take a zooraft built with the race detector.
var RaceBuilt bool

// Close ends both servers. A race or a panic in a log of ours fails the test,
// whatever the answers were.
func (p *Pair) Close() {
	p.tb.Helper()
	for _, t := range []*Target{p.Real, p.Ours} {
		for _, site := range t.sites {
			for _, sign := range []string{"DATA RACE", "panic: ", "fatal error: "} {
				log := site.server.Log()
				if i := strings.Index(log, sign); i >= 0 && site.server.Kind == "zooraft" {
					p.tb.Errorf("zooraft's log has a %q:\n%s", sign, log[i:min(len(log), i+4000)])
				}
			}
			site.close()
			site.server.Kill(p.tb)
		}
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
		return nil, withLog(errs[0], p.Real)
	}
	p.count(out[0])
	d := Compare(script, out[0], out[1], Rows, used)
	if d == nil && errs[1] != nil {
		return nil, withLog(errs[1], p.Ours)
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

// withLog adds the ends of a target's logs to an error about its run.
func withLog(err error, t *Target) error {
	for _, s := range t.sites {
		log := strings.Split(strings.TrimSpace(s.server.Log()), "\n")
		err = fmt.Errorf("%w\nthe log of its server %d ends with\n%s", err, s.number, strings.Join(log[max(0, len(log)-25):], "\n"))
	}
	return err
}

// String names the pair for a report.
func (p *Pair) String() string {
	return fmt.Sprintf("%s against %s, %d servers each, config %q", p.Real.Name, p.Ours.Name, p.size, p.config)
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
