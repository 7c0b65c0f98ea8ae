package metrics

// Line is one line of mntr: a key without the zk_ prefix, and its value.
type Line struct {
	Key   string
	Value Value
}

// Lines flattens all metrics into mntr's keys: a counter or gauge is itself; a
// summary x becomes avg_x, min_x, max_x, cnt_x and sum_x; an advanced one adds
// p50_x, p95_x, p99_x and p999_x; in a set, x is the key, an underscore and
// the name.
func (r *Registry) Lines() []Line {
	var lines []Line
	for _, f := range r.Gather() {
		for _, s := range f.Samples {
			name := f.Name
			if f.Keyed {
				name = s.Key + "_" + f.Name
			}
			lines = appendLines(lines, f.Kind, name, s)
		}
	}
	return lines
}

func appendLines(lines []Line, kind Kind, name string, s Sample) []Line {
	if kind == KindGauge || kind == KindCounter {
		return append(lines, Line{name, s.Value})
	}
	v := s.Summary
	lines = append(lines,
		Line{"avg_" + name, Float(v.Avg)},
		Line{"min_" + name, Int(v.Min)},
		Line{"max_" + name, Int(v.Max)},
		Line{"cnt_" + name, Int(v.Count)},
		Line{"sum_" + name, Int(v.Sum)})
	if kind == KindAdvancedSummary {
		lines = append(lines,
			Line{"p50_" + name, Int(v.Quantiles.P50)},
			Line{"p95_" + name, Int(v.Quantiles.P95)},
			Line{"p99_" + name, Int(v.Quantiles.P99)},
			Line{"p999_" + name, Int(v.Quantiles.P999)})
	}
	return lines
}
