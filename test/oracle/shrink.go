package oracle

import (
	"slices"
	"time"
)

// Shrink takes steps out of a script that shows a difference, as long as a
// difference of the same kind stays, and returns the short script with its
// difference. It stops when no single step can go, or when the budget is used
// up.
func (p *Pair) Shrink(script Script, d *Difference, budget time.Duration) (Script, *Difference) {
	deadline := time.Now().Add(budget)
	best, bestDiff := script, d
	shows := func(steps []Step) bool {
		if time.Now().After(deadline) {
			return false
		}
		s := script
		s.Steps = steps
		p.MakeEven()
		got, err := p.Run(s, nil)
		if err != nil {
			p.Again()
			return false
		}
		if got == nil || got.Kind != d.Kind {
			return false
		}
		best, bestDiff = s, got
		return true
	}
	if d.Step+1 < len(script.Steps) {
		shows(slices.Clone(script.Steps[:d.Step+1]))
	}
	minimise(best.Steps, shows)
	return best, bestDiff
}

// minimise removes ever smaller runs of steps, last ones first, as long as
// shows holds for what is left (delta debugging), and returns that. shows is
// asked about each candidate once and may keep it.
func minimise(steps []Step, shows func([]Step) bool) []Step {
	for size := (len(steps) + 1) / 2; size >= 1; {
		removed := false
		for end := len(steps); end > 0; end -= size {
			from := max(end-size, 0)
			rest := slices.Delete(slices.Clone(steps), from, min(end, len(steps)))
			if shows(rest) {
				steps, removed = rest, true
			}
		}
		if size == 1 && !removed {
			break
		}
		size = max(size/2, 1)
	}
	return steps
}
