package bench

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// WriteHTML writes results as one page that needs nothing beside it: the table,
// and for each result its latencies and, with a timeline, its course.
func WriteHTML(w io.Writer, o Options, at time.Time, results []Result) error {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>zooraft bench</title><style>` +
		`body{font-family:sans-serif;max-width:60em;margin:2em auto}table{border-collapse:collapse}` +
		`td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}` +
		`</style></head><body><h1>zooraft bench</h1>` + "\n")
	load := fmt.Sprintf("%d connections with %d requests in work each", o.Connections, o.Outstanding)
	if o.Rate > 0 {
		load = fmt.Sprintf("%g requests in a second by the clock over %d connections; a latency counts from when its request was due", o.Rate, o.Connections)
	}
	fmt.Fprintf(&b, "<p>%s, against %s. %s; %d bytes of data; %v measured after %v of warm-up.</p>\n",
		at.UTC().Format("2006-01-02 15:04 UTC"), html.EscapeString(o.Addr), load, o.ValueSize, o.Duration, o.WarmUp)
	b.WriteString("<table><tr><th>workload</th><th>per second</th><th></th><th>mean ms</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th>" +
		"<th>max</th><th>client's share of the processors</th><th>machine busy</th></tr>\n")
	for _, r := range results {
		l := r.Latency
		fmt.Fprintf(&b, "<tr><td>%s</td><td>%.0f</td><td>%s</td>", html.EscapeString(r.Workload), r.PerSecond, r.Unit)
		for _, micros := range []float64{l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max} {
			fmt.Fprintf(&b, "<td>%.3f</td>", micros/1000)
		}
		fmt.Fprintf(&b, "<td>%.0f%%</td><td>%.0f%%</td></tr>\n", 100*r.Client.Share, 100*r.Client.Busy)
		for name, n := range r.Errors {
			fmt.Fprintf(&b, "<tr><td></td><td colspan=\"10\">%d answers with error %s</td></tr>\n", n, html.EscapeString(name))
		}
	}
	b.WriteString("</table>\n")
	for _, r := range results {
		if r.Latency.Max > 0 {
			b.WriteString(r.quantiles().SVG())
		}
		if len(r.Timeline) > 1 {
			b.WriteString(r.course().SVG())
		}
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// quantiles draws latency over the share of requests that are slower.
func (r Result) quantiles() Plot {
	l := r.Latency
	return Plot{
		Title: r.Workload + ": latency", X: "one request in so many is slower", Y: "ms", LogX: true, LogY: true,
		Series: []Series{{Name: r.Workload, Points: [][2]float64{
			{2, l.P50 / 1000}, {10, l.P90 / 1000}, {100, l.P99 / 1000}, {1000, l.P999 / 1000},
		}}},
	}
}

// course draws throughput over time.
func (r Result) course() Plot {
	p := Plot{Title: r.Workload + ": " + r.Unit + " over time", X: "seconds", Y: "per second", Series: []Series{{Name: r.Workload}}}
	first := r.Timeline[0].AtMillis
	width := float64(r.Timeline[1].AtMillis-first) / 1000
	for _, s := range r.Timeline {
		p.Series[0].Points = append(p.Series[0].Points, [2]float64{float64(s.AtMillis-first) / 1000, float64(s.Operations) / width})
	}
	return p
}
