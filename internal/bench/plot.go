package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Plot is a drawing of series of points, written as SVG that needs nothing
// beside it.
type Plot struct {
	Title, X, Y string
	// LogX and LogY say that an axis has decades; values must be above 0 then.
	LogX, LogY bool
	Series     []Series
	// Marks are vertical lines with a word, at a value of x.
	Marks []Mark
}

// Series is a line through points, x and y each.
type Series struct {
	Name   string
	Points [][2]float64
	// Colour is a number: series that belong together have the same one, and
	// Dashed tells them apart.
	Colour int
	Dashed bool
}

// Mark is a vertical line.
type Mark struct {
	At   float64
	Text string
}

// The drawing's measures, in pixels.
const (
	plotWidth, plotHeight = 760, 420
	plotLeft, plotRight   = 80, 200 // the legend stands on the right
	plotTop, plotBottom   = 40, 50
	plotTicks             = 6 // at most about as many on a linear axis
)

// colours are apart for most eyes (Okabe and Ito's).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// scale maps values to pixels.
type scale struct {
	low, high  float64 // of the values; their logarithms on a log scale
	from, till float64 // pixels
	log        bool
}

func newScale(values []float64, log bool, from, till float64) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), from: from, till: till, log: log}
	for _, v := range values {
		if log {
			if v <= 0 {
				continue
			}
			v = math.Log10(v)
		}
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	switch {
	case s.low > s.high:
		s.low, s.high = 0, 1
	case log:
		s.low, s.high = math.Floor(s.low+1e-9), math.Ceil(s.high-1e-9)
	default:
		s.low = min(s.low, 0)
	}
	if s.high == s.low {
		s.high++
	}
	return s
}

func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(max(v, math.Pow(10, s.low)))
	}
	return s.from + (v-s.low)/(s.high-s.low)*(s.till-s.from)
}

// ticks are the values to write at the axis.
func (s scale) ticks() (all []float64) {
	if s.log {
		for e := s.low; e <= s.high; e++ {
			all = append(all, math.Pow(10, e))
		}
		return all
	}
	step := math.Pow(10, math.Floor(math.Log10((s.high-s.low)/plotTicks)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (s.high-s.low)/(step*factor) <= plotTicks {
			step *= factor
			break
		}
	}
	for v := math.Ceil(s.low/step) * step; v <= s.high*1.0001; v += step {
		all = append(all, v)
	}
	return all
}

// SVG draws the plot.
func (p Plot) SVG() string {
	var xs, ys []float64
	for _, s := range p.Series {
		for _, point := range s.Points {
			xs, ys = append(xs, point[0]), append(ys, point[1])
		}
	}
	for _, m := range p.Marks {
		xs = append(xs, m.At)
	}
	x := newScale(xs, p.LogX, plotLeft, plotWidth-plotRight)
	if !p.LogX && len(xs) > 0 {
		x.low = xs[0]
		for _, v := range xs {
			x.low = min(x.low, v)
		}
		if x.low == x.high {
			x.high++
		}
	}
	y := newScale(ys, p.LogY, plotHeight-plotBottom, plotTop)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15">%s</text>`+"\n", plotLeft, html.EscapeString(p.Title))
	for _, v := range y.ticks() {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			plotLeft, y.at(v), plotWidth-plotRight, y.at(v), plotLeft-6, y.at(v)+4, short(v))
	}
	for _, v := range x.ticks() {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x.at(v), plotTop, x.at(v), plotHeight-plotBottom, x.at(v), plotHeight-plotBottom+16, short(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n",
		(plotLeft+plotWidth-plotRight)/2, plotHeight-12, html.EscapeString(p.X))
	fmt.Fprintf(&b, `<text transform="translate(16,%d) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(plotTop+plotHeight-plotBottom)/2, html.EscapeString(p.Y))
	for i, m := range p.Marks {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#888" stroke-dasharray="2 3"/><text x="%.1f" y="%d" font-size="10" fill="#555">%s</text>`+"\n",
			x.at(m.At), plotTop, x.at(m.At), plotHeight-plotBottom, x.at(m.At)+2, plotTop+10+12*(i%4), html.EscapeString(m.Text))
	}
	for i, s := range p.Series {
		s.draw(&b, i, x, y)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw adds a series and its line of the legend.
func (s Series) draw(b *strings.Builder, i int, x, y scale) {
	colour, dash := colours[s.Colour%len(colours)], ""
	if s.Dashed {
		dash = ` stroke-dasharray="6 4"`
	}
	var line strings.Builder
	for _, point := range s.Points {
		fmt.Fprintf(&line, "%.1f,%.1f ", x.at(point[0]), y.at(point[1]))
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.8"%s points="%s"/>`+"\n", colour, dash, line.String())
	if len(s.Points) <= 40 {
		for _, point := range s.Points {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.6" fill="%s"/>`, x.at(point[0]), y.at(point[1]), colour)
		}
		b.WriteString("\n")
	}
	top := plotTop + 10 + 20*i
	left := plotWidth - plotRight + 12
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="1.8"%s/><text x="%d" y="%d">%s</text>`+"\n",
		left, top, left+24, top, colour, dash, left+30, top+4, html.EscapeString(s.Name))
}

// short writes a number for an axis.
func short(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

// Exponent fits y = c·x^e through points, in logarithms, by least squares. It
// is 0 with less than two different x.
func Exponent(points [][2]float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		if p[0] <= 0 || p[1] <= 0 {
			continue
		}
		x, y := math.Log(p[0]), math.Log(p[1])
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if spread := n*sxx - sx*sx; spread > 1e-12 {
		return (n*sxy - sx*sy) / spread
	}
	return 0
}
