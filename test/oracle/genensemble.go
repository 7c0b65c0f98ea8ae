package oracle

import "fmt"

// turnOf is the turn of a seed's servers: every third seed has the leader under
// the same connection.
func turnOf(seed uint64) int { return int(seed % ensembleSize) }

// anywhere is the end of a connect step: at any server of an ensemble, or
// nothing for a server alone. It notes where the connection then is.
func (g *generator) anywhere(c string) string {
	if !g.ensemble {
		return ""
	}
	g.at[c] = home(c)
	if g.chance(60) {
		g.at[c] = 1 + g.rng.IntN(ensembleSize)
	}
	return fmt.Sprintf(" at=%d", g.at[c])
}

// timeout picks a session's timeout. Three servers of each kind are slow on a
// machine that is busy with other things, and a session that a script has left
// must not expire before its end.
func (g *generator) timeout(options ...string) string {
	if g.ensemble {
		return g.pick("50000", "58000", "70000")
	}
	return g.pick(options...)
}

// takeOver lets connection d resume the session of c. At another server of a
// real ensemble c would live on for a while (row moved-session-is-closed), so it
// is dropped first unless d comes to the same one.
func (g *generator) takeOver(c string) {
	switch {
	case !g.ensemble:
		g.add("connect d session=%s", c)
	case g.chance(50):
		g.at["d"] = g.at[c]
		g.add("connect d session=%s at=%d", c, g.at[c])
	default:
		g.add("drop %s", c)
		g.add("connect d session=%s%s", c, g.anywhere("d"))
	}
}

// leads tells whether a connection is at the leader.
func (g *generator) leads(c string) bool { return (g.at[c]-1+g.turn)%ensembleSize == 0 }

// across lets one connection write and another, which knows of nothing but the
// answer, read behind a sync. It returns false where no other connection is at
// a follower: a real leader answers a sync of its own clients at once, and may
// have to apply yet what a follower has already answered.
func (g *generator) across(c string) bool {
	for _, reader := range g.live {
		if reader == c || g.leads(reader) {
			continue
		}
		g.add("ask %s %s", c, g.weigh(writes))
		g.current = reader
		g.add("send %s sync %s", reader, g.path())
		for range 1 + g.rng.IntN(3) {
			g.count++
			g.add("send %s %s", reader, g.weigh(reads[:4]))
		}
		g.add("fence")
		return true
	}
	return false
}
