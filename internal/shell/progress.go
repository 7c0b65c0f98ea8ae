package shell

import (
	"fmt"
	"time"
)

// progressEvery is the time between two states of the progress line.
const progressEvery = 200 * time.Millisecond

// progress is a line on the terminal that says how far a long command is. On
// anything but a terminal it is silent.
type progress struct {
	sh    *Shell
	what  string
	shown bool
	count int
	start time.Time
	last  time.Time
	off   bool
}

// progress starts a line. With output the command prints as it goes, and a
// terminal that shows the output needs no second line.
func (sh *Shell) progress(what string, output bool) *progress {
	now := time.Now()
	off := !sh.streams.ErrTerminal || output && sh.streams.OutTerminal
	return &progress{sh: sh, what: what, start: now, last: now, off: off}
}

// add counts on, and draws when it is time.
func (p *progress) add(n int) {
	p.count += n
	if p.off || p.count%64 != 0 && n == 1 {
		return
	}
	now := time.Now()
	if now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	rate := float64(p.count) / now.Sub(p.start).Seconds()
	fmt.Fprintf(p.sh.streams.Err, "\r\x1b[K%d %s, %.0f/s", p.count, p.what, rate)
}

// done takes the line away.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.sh.streams.Err, "\r\x1b[K")
	}
}
