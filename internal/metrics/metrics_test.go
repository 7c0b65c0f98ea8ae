package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

func TestDecimalsArePrintedAsJavaDoes(t *testing.T) {
	for _, c := range []struct {
		value Value
		want  string
	}{
		{Int(0), "0"},
		{Int(-1), "-1"},
		{Float(0), "0.0"},
		{Float(7), "7.0"},
		{Float(2.7143), "2.7143"},
		{Float(-0.5), "-0.5"},
		{Float(0.001), "0.001"},
		{Float(0.0004), "4.0E-4"},
		{Float(9999999), "9999999.0"},
		{Float(10000000), "1.0E7"},
		{Float(123456789.25), "1.2345678925E8"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%#v prints %q, want %q", c.value, got, c.want)
		}
		text, err := json.Marshal(c.value)
		if err != nil || string(text) != c.want {
			t.Errorf("%#v is %q in JSON (%v), want %q", c.value, text, err, c.want)
		}
	}
}

func TestAveragesHaveFourDecimalsWithHalvesRoundedUp(t *testing.T) {
	for _, c := range []struct {
		sum, count int64
		want       string
	}{
		{0, 0, "0.0"},
		{1, 32, "0.0313"},   // 0.03125, a true half
		{3, 32, "0.0938"},   // 0.09375
		{1, 3, "0.3333"},    // cut
		{2, 3, "0.6667"},    // rounded up
		{19, 7, "2.7143"},   // as a real server showed it
		{-1, 32, "-0.0313"}, // away from zero
		{61, 6, "10.1667"},
	} {
		s := NewSummary()
		for range c.count - 1 {
			s.Observe(0)
		}
		if c.count > 0 {
			s.Observe(c.sum)
		}
		if got := Float(s.Value().Avg).String(); got != c.want {
			t.Errorf("%d in %d observations average %s, want %s", c.sum, c.count, got, c.want)
		}
	}
}

func TestAnEmptySummaryIsAllZeros(t *testing.T) {
	s := NewAdvancedSummary()
	if got := s.Value(); got != (SummaryValue{}) {
		t.Errorf("empty: %+v", got)
	}
	s.Observe(-5)
	s.Observe(-7)
	if got := s.Value(); got.Min != -7 || got.Max != -5 || got.Sum != -12 || got.Count != 2 {
		t.Errorf("negative observations: %+v", got)
	}
	s.Reset()
	if got := s.Value(); got != (SummaryValue{}) {
		t.Errorf("after a reset: %+v", got)
	}
}

func TestQuantilesInterpolateBetweenNeighbours(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []int64
		want   Quantiles
	}{
		{"one value is every quantile", []int64{7}, Quantiles{7, 7, 7, 7}},
		{"the median of two is their mean, halves up", []int64{1, 2}, Quantiles{2, 2, 2, 2}},
		{"order does not matter", []int64{3, 1, 2}, Quantiles{2, 3, 3, 3}},
		{"a hundred values", upTo(100), Quantiles{51, 96, 100, 100}},
		{"a thousand values", upTo(1000), Quantiles{501, 951, 991, 1000}},
	} {
		s := NewAdvancedSummary()
		for _, v := range c.values {
			s.Observe(v)
		}
		if got := s.Value().Quantiles; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func upTo(n int64) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(i) + 1
	}
	return values
}

func TestTheSampleStaysUniformBeyondItsSize(t *testing.T) {
	s := NewAdvancedSummary()
	const n = 20 * reservoirSize
	for i := range int64(n) {
		s.Observe(i)
	}
	// The standard error of the median of 4096 uniform values is below 0.8 %
	// of their range; ten of those cannot be chance.
	if p50 := s.Value().Quantiles.P50; p50 < n*42/100 || p50 > n*58/100 {
		t.Errorf("the median of 0…%d is %d", n, p50)
	}
}

func TestConcurrentUpdatesAreNotLost(t *testing.T) {
	r := NewRegistry()
	counter, summary := r.Counter("c", "Help."), r.AdvancedSummary("s", "Help.")
	set := r.CounterSet("k", "Help.")
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 1000 {
				counter.Inc()
				summary.Observe(int64(i))
				set.Key(fmt.Sprint((w + i) % 5)).Inc()
			}
		})
	}
	r.Gather() // overlaps with the writers, for the race detector
	writers.Wait()
	v := summary.Value()
	if counter.Value() != 8000 || v.Count != 8000 || v.Sum != 8*999*500 || v.Min != 0 || v.Max != 999 {
		t.Errorf("counter %d, summary %+v", counter.Value(), v)
	}
	var keyed int64
	for _, l := range r.Lines() {
		if strings.HasSuffix(l.Key, "_k") {
			keyed += l.Value.Int64()
		}
	}
	if keyed != 8000 {
		t.Errorf("the set counts %d", keyed)
	}
}

func TestASetAddsUpTheKeysBeyondItsLimit(t *testing.T) {
	set := NewRegistry().CounterSet("k", "Help.")
	for i := range MaxKeys + 50 {
		set.Key(fmt.Sprint("key", i)).Inc()
	}
	if got := set.Key(OtherKey).Value(); got != 50 {
		t.Errorf("the other keys count %d, want 50", got)
	}
	if got := set.Key("key0").Value(); got != 1 {
		t.Errorf("a key from before the limit counts %d", got)
	}
}

func TestALongKeyCountsAmongTheOthers(t *testing.T) {
	r := NewRegistry()
	set := r.CounterSet("k", "Help.")
	longest := strings.Repeat("a", MaxKeyBytes)
	set.Key(longest).Inc()
	for i := range 3 {
		set.Key(longest + fmt.Sprint(i)).Inc()
	}
	if own, others := set.Key(longest).Value(), set.Key(OtherKey).Value(); own != 1 || others != 3 {
		t.Errorf("the longest key counts %d, the others %d", own, others)
	}
}

func lines(r *Registry) string {
	var b strings.Builder
	for _, l := range r.Lines() {
		fmt.Fprintf(&b, "%s=%v\n", l.Key, l.Value)
	}
	return b.String()
}

func TestMetricsAreListedByKindThenByDeclaration(t *testing.T) {
	r := NewRegistry()
	r.AdvancedSummary("wait_ms", "Help.").Observe(3)
	r.SummarySet("size", "Help.").Key("b").Observe(2)
	r.Summary("batch", "Help.")
	r.CounterSet("errors", "Help.").Key("quota").Add(4)
	r.Counter("requests", "Help.").Add(5)
	r.GaugeSet("limit", "Help.", func() map[string]Value { return map[string]Value{"z": Int(1), "a": Int(-1)} })
	r.Gauge("chance", "Help.", func() Value { return Float(0) })
	r.Gauge("leader_only", "Help.", Absent)
	r.Gauges([]Desc{{Name: "first"}, {Name: "none"}, {Name: "second"}}, func() []Value {
		return []Value{Int(1), Absent(), Int(2)}
	})
	want := `first=1
second=2
chance=0.0
a_limit=-1
z_limit=1
requests=5
quota_errors=4
avg_batch=0.0
min_batch=0
max_batch=0
cnt_batch=0
sum_batch=0
avg_wait_ms=3.0
min_wait_ms=3
max_wait_ms=3
cnt_wait_ms=1
sum_wait_ms=3
p50_wait_ms=3
p95_wait_ms=3
p99_wait_ms=3
p999_wait_ms=3
avg_b_size=2.0
min_b_size=2
max_b_size=2
cnt_b_size=1
sum_b_size=2
`
	if got := lines(r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.Reset()
	if got := lines(r); strings.Contains(got, "requests=5") || !strings.Contains(got, "quota_errors=0") ||
		!strings.Contains(got, "cnt_wait_ms=0") || !strings.Contains(got, "second=2") {
		t.Errorf("after a reset\n%s", got)
	}
}

func TestDeclaringTwiceGivesTheSameMetricAndAnotherKindPanics(t *testing.T) {
	r := NewRegistry()
	first := r.Counter("commit_count", "Ours.")
	Complete(r)
	if r.Counter("commit_count", "") != first {
		t.Error("the catalogue replaced a room's metric")
	}
	for name, declare := range map[string]func(){
		"another kind":  func() { r.Summary("commit_count", "") },
		"a set":         func() { r.CounterSet("commit_count", "") },
		"a gauge twice": func() { r.Gauge("g", "", nil); r.Gauge("g", "", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			declare()
		}()
	}
}

func TestTheCatalogueHasOneSentenceForEveryName(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range ApacheMetrics() {
		if seen[d.Name] {
			t.Errorf("%s is there twice", d.Name)
		}
		seen[d.Name] = true
		if !strings.HasSuffix(d.Help, ".") || strings.Contains(d.Help, "\n") {
			t.Errorf("%s: %q is no sentence", d.Name, d.Help)
		}
		if d.Kind == KindGauge {
			t.Errorf("%s is a gauge", d.Name)
		}
	}
}

func BenchmarkUpdates(b *testing.B) {
	r := NewRegistry()
	counter, summary, advanced := r.Counter("c", ""), r.Summary("s", ""), r.AdvancedSummary("a", "")
	set := r.SummarySet("k", "")
	set.Key("x")
	for name, update := range map[string]func(int64){
		"counter":  counter.Add,
		"summary":  summary.Observe,
		"advanced": advanced.Observe,
		"set":      func(v int64) { set.Key("x").Observe(v) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				update(int64(i & 1023))
			}
		})
	}
}

// docs/metrics.md says of each of Apache's metrics what it stands for here.
func TestThePageOfMetricsHasEveryNameOfTheCatalogue(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| ([a-z ]+) \\| ([^|]+) \\| (same|nearest|0) \\| ([^|]*) \\|$")
	rows := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		if rows[m[1]] != nil {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = m
		if (m[4] == "same") != (strings.TrimSpace(m[5]) == "") {
			t.Errorf("%s is %q with the remark %q: everything but the same needs one", m[1], m[4], m[5])
		}
	}
	for _, d := range ApacheMetrics() {
		kind := d.Kind.String()
		if d.Keyed {
			kind += " by key"
		}
		if m := rows[d.Name]; m == nil || m[2] != kind {
			t.Errorf("%s (%s): the page says %q", d.Name, kind, m)
		}
		delete(rows, d.Name)
	}
	for name := range rows {
		t.Errorf("%s is on the page and not in the catalogue", name)
	}
}

// What is spread over lanes is as exact as what is not, whoever observes.
func TestLanesAddUpExactly(t *testing.T) {
	r := NewRegistry()
	counter, plain := r.Counter("a", "").Spread(), r.Counter("b", "")
	summary, advanced, set := r.Summary("c", "").Spread(), r.AdvancedSummary("d", "").Spread(), r.SummarySet("e", "").Spread()
	total := NewSpread()
	for round := range 2 {
		var all sync.WaitGroup
		const observers, each = 50, 200
		for who := range uint64(observers) {
			all.Go(func() {
				for i := range int64(each) {
					counter.AddBy(who, i)
					plain.AddBy(who, i)
					summary.ObserveBy(who, i+5)
					advanced.ObserveBy(who, i%100+1)
					set.ObserveBy(who, "k", i)
					total.Add(who, 1)
				}
			})
		}
		all.Wait()
		const sum = observers * each * (each - 1) / 2
		if counter.Value() != sum || plain.Value() != sum || total.Load() != observers*each {
			t.Errorf("round %d: %d and %d, want %d; %d, want %d", round, counter.Value(), plain.Value(), sum, total.Load(), observers*each)
		}
		if v := summary.Value(); v.Sum != sum+5*observers*each || v.Count != observers*each || v.Min != 5 || v.Max != each+4 {
			t.Errorf("round %d: %+v", round, v)
		}
		if v := set.Key("k").Value(); v.Sum != sum || v.Count != observers*each || v.Min != 0 || v.Max != each-1 {
			t.Errorf("round %d: %+v by key", round, v)
		}
		// A sample of 4096 of the numbers from 1 to 100: far outside only by a mistake.
		v := advanced.Value()
		if v.Count != observers*each || v.Quantiles.P50 < 40 || v.Quantiles.P50 > 60 || v.Quantiles.P99 < 95 || v.Quantiles.P99 > 100 {
			t.Errorf("round %d: %+v", round, v)
		}
		r.Reset()
		total.Reset()
		for _, f := range r.Gather() {
			for _, s := range f.Samples {
				if s.Value != Int(0) || s.Summary != (SummaryValue{}) {
					t.Errorf("%s after a reset: %+v", f.Name, s)
				}
			}
		}
		if total.Load() != 0 {
			t.Errorf("%d after a reset", total.Load())
		}
	}
}
