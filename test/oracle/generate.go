package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Generate makes the script of a seed: about ops operations over a few
// sessions. The same seed and count always make the same script.
func Generate(seed uint64, ops int, config string) Script { return generate(seed, ops, config, false) }

// GenerateEnsemble makes a script over three servers: its sessions move between
// them, and what one reads behind a sync is what another has just written.
func GenerateEnsemble(seed uint64, ops int, config string) Script {
	s := generate(seed, ops, config, true)
	s.Turn, s.Fixed = turnOf(seed), true
	return s
}

func generate(seed uint64, ops int, config string, ensemble bool) Script {
	g := &generator{ensemble: ensemble, turn: turnOf(seed), at: map[string]int{}, rng: rand.New(rand.NewPCG(seed, 0x5eed)), watched: map[string][]string{}, quotas: strings.Contains(config, "enforceQuota=true")}
	for _, c := range []string{"a", "b", "c"} {
		g.at[c] = home(c)
		g.add("connect %s ro=%s", c, g.pick("0", "1", "none"))
		g.live = append(g.live, c)
	}
	g.prepare()
	for g.count < ops {
		g.next()
	}
	return Script{Name: fmt.Sprintf("seed %d, %d operations", seed, ops), Config: config, Steps: g.steps}
}

// generator keeps just enough of a model to write scripts in which something
// happens: which connections are open. It does not know right answers.
type generator struct {
	rng   *rand.Rand
	steps []Step
	count int      // operations so far
	live  []string // open connections
	marks int
	// current is the connection of the operation that is being made, watched
	// the paths that it may watch.
	current string
	watched map[string][]string
	// at is where an ensemble's connections are, counted from 1 at the turn.
	at       map[string]int
	ensemble bool
	turn     int
	quotas   bool // pipelining is off: the real server's quota check races with it
}

func (g *generator) add(format string, args ...any) { g.steps = append(g.steps, step(format, args...)) }

func (g *generator) pick(options ...string) string { return options[g.rng.IntN(len(options))] }

func (g *generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

func (g *generator) conn() string { return g.live[g.rng.IntN(len(g.live))] }

// prepare makes some nodes, so that the first operations find something, and
// mostly a quota where quotas are enforced.
func (g *generator) prepare() {
	for _, path := range []string{"$/a", "$/b", "$/a/x", "$/c"} {
		if g.chance(80) {
			g.add("call a create %s data=%s", path, g.data())
		}
	}
	if !g.quotas || g.chance(30) {
		return
	}
	const q = "/zookeeper/quota$"
	g.add("call a create %s", q)
	g.add(`call a create %s/zookeeper_limits data="count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d"`, q, 150+g.rng.IntN(300), 5+g.rng.IntN(8))
	g.add(`call a create %s/zookeeper_stats data="count=0,bytes=0"`, q)
}

// next adds one exchange.
func (g *generator) next() {
	c := g.conn()
	g.current = c
	switch n := g.rng.IntN(100); {
	case n < 66:
		g.count++
		g.add("call %s %s", c, g.op())
	case n < 78:
		g.burst(c)
	case n < 81:
		// Never pipelined: the real server answers these when it reads them.
		g.add("call %s %s", c, g.pick(`auth scheme=digest data="u:p"`, `auth scheme=digest data="v:q"`, `auth scheme=digest data="super:oracle"`,
			`auth scheme=ip data="x"`, `auth scheme=digest data=""`, `sasl token="x"`))
	case n < 83:
		g.marks++
		g.add("mark m%d", g.marks)
	case n < 92:
		g.reconnect(c)
	case n < 94:
		g.add("expire %s", c)
		g.add("connect %s session=%s%s", c, c, g.anywhere(c))
		g.add("connect %s%s", c, g.anywhere(c))
		g.count += 2
	case n < 96:
		g.add("call %s closeSession", c)
		g.revive(c)
	default:
		g.odd(c)
	}
}

// burst pipelines several operations on one connection.
func (g *generator) burst(c string) {
	if g.ensemble && g.chance(25) && g.across(c) {
		return
	}
	verb := "send"
	if g.quotas {
		verb = "call"
	}
	length := 2 + g.rng.IntN(5)
	if g.ensemble && g.chance(10) {
		length *= 5
	}
	for range length {
		g.count++
		op := g.op()
		if strings.HasPrefix(op, "setACL") {
			// The real server judges a write behind it by the old list if it
			// comes to it before the setACL is applied.
			g.add("call %s %s", c, op)
			continue
		}
		g.add("%s %s %s", verb, c, op)
	}
	g.add("fence")
}

// reconnect drops or takes over a session in one of many ways.
func (g *generator) reconnect(c string) {
	g.count++
	if g.chance(80) {
		g.add("drop %s", c)
	}
	ro := g.pick("0", "1", "none")
	switch n := g.rng.IntN(10); {
	case n == 0:
		g.add("drop %s", c)
		g.add("connect %s session=%s passwd=%s ro=%s%s", c, c, g.pick("wrong", "short", "null", "empty", "zero"), ro, g.anywhere(c))
	case n == 1:
		g.add("drop %s", c)
		g.add("connect %s session=%s zxid=last+%d%s", c, c, 1+g.rng.IntN(3), g.anywhere(c))
	case n == 2:
		g.add("connect %s ro=%s timeout=%s%s", c, ro, g.timeout("30000", "70000", "20000"), g.anywhere(c))
		return
	case n == 4:
		// Another connection takes the session over, and may keep it.
		g.takeOver(c)
		g.add("call d %s", g.op())
		if g.chance(50) {
			g.add("connect %s%s", c, g.anywhere(c))
			return
		}
		if g.ensemble {
			g.add("drop d")
		}
	case n == 3:
		g.add("connect %s session=%s passwd=zero%s", c, g.pick("0x123456789", "-1", "0x7fffffffffffffff"), g.anywhere(c))
	}
	g.add("connect %s session=%s zxid=%s ro=%s timeout=%s%s", c, c, g.pick("last", "0", "base"), ro, g.timeout("30000", "40000"), g.anywhere(c))
	if g.chance(60) {
		g.add("call %s %s", c, g.setWatches())
	}
}

// revive brings a connection back after something that closed it.
func (g *generator) revive(c string) {
	g.count++
	if g.chance(50) {
		g.add("connect %s session=%s zxid=last%s", c, c, g.anywhere(c))
	}
	g.add("connect %s%s", c, g.anywhere(c))
}

// odd sends what no client should. All of it costs the connection, except
// records that are cut short or too long.
func (g *generator) odd(c string) {
	g.count++
	switch g.rng.IntN(12) {
	case 0:
		g.add("call %s op=%s body=%s", c, g.pick("99", "500", "10", "0", "-3", "23", "108"), g.hex(g.rng.IntN(20)))
	case 1:
		g.add("call %s op=13 body=%s", c, g.hex(g.rng.IntN(20)))
	case 2:
		g.add("raw %s %s", c, g.pick("ffffffff", "7fffffff", "80000000", "00100000", "00000000", "0000000400000001"))
		g.add("await %s close", c)
	case 3:
		g.add("frame %s %s", c, g.pick("", "00", "00000001", "00000001000000"))
	case 4:
		g.add("call %s create $/big data=rep:%d", c, 1048500+g.rng.IntN(200))
	case 5:
		g.add("call %s auth scheme=%s", c, g.pick(`nosuch data="x"`, `digest data=null`, `null data="u:p"`, `"" data="u:p"`))
	case 6:
		g.add("call %s sasl token=null", c)
	default:
		// A valid operation with bytes missing, added or changed: no close. A
		// createTTL or a quota's text with other bytes could stop the real server.
		op := g.op()
		damage := g.pick(fmt.Sprintf("cut=%d", 1+g.rng.IntN(30)), "pad="+g.hex(1+g.rng.IntN(9)))
		if !strings.HasPrefix(op, "createTTL") && !strings.Contains(op, "/zookeeper_") && g.chance(60) {
			damage = fmt.Sprintf("flip=%d:%02x", g.rng.IntN(1000), 1+g.rng.IntN(255))
		}
		g.add("call %s %s %s", c, op, damage)
		return
	}
	g.revive(c)
}

func (g *generator) hex(n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%02x", g.rng.IntN(256))
	}
	return b.String()
}
