package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// wellFormed fails the test when text is no XML.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}

func TestAPlotIsWellFormedWhateverItsPoints(t *testing.T) {
	for name, p := range map[string]Plot{
		"nothing":     {},
		"one point":   {Series: []Series{{Name: "a < b & c", Points: [][2]float64{{3, 5}}}}},
		"zero on log": {LogX: true, LogY: true, Series: []Series{{Points: [][2]float64{{0, 0}, {10, 100}}}}},
		"equal":       {Title: `"quoted"`, Series: []Series{{Dashed: true, Points: [][2]float64{{1, 0}, {1, 0}}}}, Marks: []Mark{{1, "<kill>"}}},
	} {
		svg := p.SVG()
		wellFormed(t, svg)
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: %s", name, svg)
		}
	}
}

func TestTicksAreRoundAndCoverTheAxis(t *testing.T) {
	if got := newScale([]float64{0, 2350}, false, 0, 100).ticks(); len(got) < 3 || got[1] != 500 || got[len(got)-1] != 2000 {
		t.Errorf("linear: %v", got)
	}
	if got := newScale([]float64{30, 2350}, true, 0, 100).ticks(); len(got) != 4 || got[0] != 10 || got[3] != 10000 {
		t.Errorf("decades: %v", got)
	}
}

func TestTheExponentOfAPowerIsFound(t *testing.T) {
	for _, e := range []float64{0, 0.5, 1, 2} {
		var points [][2]float64
		for _, x := range []float64{10, 100, 1000, 50000} {
			points = append(points, [2]float64{x, 7 * math.Pow(x, e)})
		}
		if got := Exponent(points); math.Abs(got-e) > 1e-9 {
			t.Errorf("exponent %v, not %v", got, e)
		}
	}
	if Exponent(nil) != 0 || Exponent([][2]float64{{5, 5}}) != 0 {
		t.Error("too few points have an exponent")
	}
}

func TestTheReportIsOnePageWithTheClientsShare(t *testing.T) {
	o := DefaultOptions("a.example:2181")
	r := Result{Workload: "read", Unit: "requests", PerSecond: 1234, Latency: Latency{P50: 10, P90: 20, P99: 30, P999: 40, Max: 50}, Client: Client{Share: 0.25, Busy: 0.5},
		Errors: map[string]int64{"NoNode": 2}, Timeline: []Slice{{AtMillis: 1000, Operations: 5}, {AtMillis: 1100, Operations: 6}}}
	var b strings.Builder
	if err := WriteHTML(&b, o, time.Unix(0, 0), []Result{r}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, part := range []string{"a.example:2181", "<td>1234</td>", "<td>25%</td>", "<td>50%</td>", "2 answers with error NoNode"} {
		if !strings.Contains(page, part) {
			t.Errorf("%q is missing", part)
		}
	}
	if n := strings.Count(page, "<svg "); n != 2 || strings.Contains(page, "<script") || strings.Contains(page, "href=") {
		t.Errorf("%d drawings in\n%s", n, page)
	}
}
