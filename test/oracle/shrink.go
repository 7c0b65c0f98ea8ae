package oracle

import (
	"slices"
	"time"
)

// Shrink takes steps out of a script that shows a difference, as long as a
// difference of the same kind stays, and returns the short script with its
// difference. Steps after the difference go first, then ever smaller runs of
// steps (delta debugging). It stops when no single step can go, or when the
// budget is used up.
func (p *Pair) Shrink(script Script, d *Difference, budget time.Duration) (Script, *Difference) {
	deadline := time.Now().Add(budget)
	best, bestDiff := script, d
	try := func(steps []Step) bool {
		s := Script{Name: script.Name, Config: script.Config, Steps: steps}
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
		try(slices.Clone(script.Steps[:d.Step+1]))
	}
	for size := (len(best.Steps) + 1) / 2; size >= 1; {
		removed := false
		for at := len(best.Steps) - size; at > -size && time.Now().Before(deadline); at -= size {
			from := max(at, 0)
			to := min(from+size, len(best.Steps))
			if from >= to {
				continue
			}
			if try(slices.Delete(slices.Clone(best.Steps), from, to)) {
				removed = true
			}
		}
		if time.Now().After(deadline) {
			break
		}
		if size == 1 && !removed {
			break
		}
		if !removed || size > 1 {
			size = max(size/2, 1)
		}
	}
	return best, bestDiff
}
