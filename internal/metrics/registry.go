package metrics

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Kind is what a metric measures.
type Kind uint8

// The kinds, in the order in which mntr prints them.
const (
	KindGauge Kind = iota
	KindCounter
	KindSummary
	KindAdvancedSummary
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"gauge", "counter", "summary", "advanced summary"}[k]
}

// Desc describes a metric. Name is without mntr's zk_ prefix; Help is a
// sentence; Keyed marks a set.
type Desc struct {
	Name  string
	Help  string
	Kind  Kind
	Keyed bool
}

// Registry holds a server's metrics by name. Declaring a name a second time
// with the same kind returns the metric that is there, so that rooms and the
// catalogue may declare in any order; with another kind it panics, for that is
// a mistake of the program. All methods may overlap.
type Registry struct {
	mu     sync.Mutex
	byName map[string]*entry // guarded by mu
	order  []*entry          // guarded by mu; order of declaration
	groups []gaugeGroup      // guarded by mu
}

type entry struct {
	desc   Desc
	metric any
}

type gaugeGroup struct {
	descs []Desc
	read  func() []Value
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{byName: map[string]*entry{}} }

func declare[M any](r *Registry, desc Desc, fresh func() M) M {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.byName[desc.Name]; ok {
		if e.desc.Kind != desc.Kind || e.desc.Keyed != desc.Keyed || desc.Kind == KindGauge {
			panic(fmt.Sprintf("metrics: %q declared as %v (keyed %t) and again as %v (keyed %t)",
				desc.Name, e.desc.Kind, e.desc.Keyed, desc.Kind, desc.Keyed))
		}
		return e.metric.(M)
	}
	m := fresh()
	e := &entry{desc: desc, metric: m}
	r.byName[desc.Name] = e
	r.order = append(r.order, e)
	return m
}

// Counter declares a counter.
func (r *Registry) Counter(name, help string) *Counter {
	return declare(r, Desc{name, help, KindCounter, false}, NewCounter)
}

// Summary declares a summary.
func (r *Registry) Summary(name, help string) *Summary {
	return declare(r, Desc{name, help, KindSummary, false}, NewSummary)
}

// AdvancedSummary declares a summary with quantiles.
func (r *Registry) AdvancedSummary(name, help string) *AdvancedSummary {
	return declare(r, Desc{name, help, KindAdvancedSummary, false}, NewAdvancedSummary)
}

// CounterSet declares a counter by key.
func (r *Registry) CounterSet(name, help string) *CounterSet {
	return declare(r, Desc{name, help, KindCounter, true}, func() *CounterSet {
		return &CounterSet{newSet(NewCounter)}
	})
}

// SummarySet declares a summary by key.
func (r *Registry) SummarySet(name, help string) *SummarySet {
	return declare(r, Desc{name, help, KindSummary, true}, func() *SummarySet {
		return &SummarySet{newSet(NewSummary)}
	})
}

// AdvancedSummarySet declares a summary with quantiles by key.
func (r *Registry) AdvancedSummarySet(name, help string) *AdvancedSummarySet {
	return declare(r, Desc{name, help, KindAdvancedSummary, true}, func() *AdvancedSummarySet {
		return &AdvancedSummarySet{newSet(NewAdvancedSummary)}
	})
}

// Gauge declares a number that read returns when it is asked for. A gauge can
// be declared once only. read may take locks; it must not use the registry.
func (r *Registry) Gauge(name, help string, read func() Value) {
	declare(r, Desc{name, help, KindGauge, false}, func() func() Value { return read })
}

// GaugeSet declares a gauge by key.
func (r *Registry) GaugeSet(name, help string, read func() map[string]Value) {
	declare(r, Desc{name, help, KindGauge, true}, func() func() map[string]Value { return read })
}

// Gauges declares several gauges that one call reads together: read returns
// as many values as there are descs, in their order. Kind and Keyed of the
// descs are ignored.
func (r *Registry) Gauges(descs []Desc, read func() []Value) {
	for i := range descs {
		descs[i].Kind, descs[i].Keyed = KindGauge, false
		declare(r, descs[i], func() struct{} { return struct{}{} })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups = append(r.groups, gaugeGroup{descs, read})
}

// Sample is one number or summary of a metric; Key is empty unless the metric
// is a set. Value is filled for gauges and counters, Summary for summaries.
type Sample struct {
	Key     string
	Value   Value
	Summary SummaryValue
}

// Family is a metric with its samples.
type Family struct {
	Desc
	Samples []Sample
}

// Gather reads all metrics: gauges, counters, summaries, advanced summaries,
// each kind in the order of declaration and sets after single ones, keys
// sorted.
func (r *Registry) Gather() []Family {
	r.mu.Lock()
	entries, groups := slices.Clone(r.order), slices.Clone(r.groups)
	r.mu.Unlock()
	families := make([]Family, 0, len(entries))
	for _, g := range groups {
		for i, v := range g.read() {
			if !v.IsAbsent() {
				families = append(families, Family{g.descs[i], []Sample{{Value: v}}})
			}
		}
	}
	for _, e := range entries {
		if samples := e.read(); samples != nil {
			families = append(families, Family{e.desc, samples})
		}
	}
	slices.SortStableFunc(families, func(a, b Family) int { return a.rank() - b.rank() })
	return families
}

// Descs lists what is declared, absent gauges included.
func (r *Registry) Descs() []Desc {
	r.mu.Lock()
	defer r.mu.Unlock()
	descs := make([]Desc, 0, len(r.order))
	for _, e := range r.order {
		descs = append(descs, e.desc)
	}
	return descs
}

func (d Desc) rank() int {
	switch {
	case d.Kind <= KindCounter && d.Keyed:
		return int(d.Kind)*2 + 1
	case d.Kind <= KindCounter:
		return int(d.Kind) * 2
	case d.Keyed:
		return int(d.Kind) + 4
	default:
		return int(d.Kind) + 2
	}
}

// read returns the samples; nil for an absent gauge, and for a member of a
// gauge group, which its group reads.
func (e *entry) read() []Sample {
	samples := []Sample{}
	switch m := e.metric.(type) {
	case func() Value:
		v := m()
		if v.IsAbsent() {
			return nil
		}
		return []Sample{{Value: v}}
	case func() map[string]Value:
		values := m()
		for _, key := range slices.Sorted(maps.Keys(values)) {
			samples = append(samples, Sample{Key: key, Value: values[key]})
		}
	case *Counter:
		return []Sample{{Value: Int(m.Value())}}
	case *Summary:
		return []Sample{{Summary: m.Value()}}
	case *AdvancedSummary:
		return []Sample{{Summary: m.Value()}}
	case *CounterSet:
		m.each(func(key string, c *Counter) {
			samples = append(samples, Sample{Key: key, Value: Int(c.Value())})
		})
	case *SummarySet:
		m.each(func(key string, s *Summary) {
			samples = append(samples, Sample{Key: key, Summary: s.Value()})
		})
	case *AdvancedSummarySet:
		m.each(func(key string, s *AdvancedSummary) {
			samples = append(samples, Sample{Key: key, Summary: s.Value()})
		})
	default:
		return nil
	}
	return samples
}

// Reset sets all metrics back, except gauges. Keys of sets stay, with zeros.
func (r *Registry) Reset() {
	r.mu.Lock()
	entries := slices.Clone(r.order)
	r.mu.Unlock()
	for _, e := range entries {
		switch m := e.metric.(type) {
		case *Counter:
			m.Reset()
		case *Summary:
			m.Reset()
		case *AdvancedSummary:
			m.Reset()
		case *CounterSet:
			m.each(func(_ string, c *Counter) { c.Reset() })
		case *SummarySet:
			m.each(func(_ string, s *Summary) { s.Reset() })
		case *AdvancedSummarySet:
			m.each(func(_ string, s *AdvancedSummary) { s.Reset() })
		}
	}
}
