package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Client is what the load cost on the machine that made it.
type Client struct {
	// CPUSeconds is the processor time of this program, its kernel time
	// included, over Seconds, the time looked at (the warm-up is in it).
	CPUSeconds float64 `json:"cpu_seconds"`
	Seconds    float64 `json:"seconds"`
	// Share is the part of the machine's processors that this program used,
	// 0 to 1, and Busy the part that anybody used; -1 where that is not told. A
	// Busy near 1 with a large Share says that the client is what was measured.
	Share float64 `json:"share"`
	Busy  float64 `json:"busy"`
	// LoadBefore and LoadAfter are the machine's load average of a minute.
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
}

// and adds what a later stretch of the same run cost; the time between is not in it.
func (c Client) and(later Client) Client {
	if c.Seconds == 0 {
		return later
	}
	sum := Client{
		CPUSeconds: c.CPUSeconds + later.CPUSeconds, Seconds: c.Seconds + later.Seconds, Busy: -1,
		LoadBefore: c.LoadBefore, LoadAfter: later.LoadAfter,
	}
	mean := func(a, b float64) float64 { return (a*c.Seconds + b*later.Seconds) / sum.Seconds }
	sum.Share = mean(c.Share, later.Share)
	if c.Busy >= 0 && later.Busy >= 0 {
		sum.Busy = mean(c.Busy, later.Busy)
	}
	return sum
}

// String is for people.
func (c Client) String() string {
	all := "unknown"
	if c.Busy >= 0 {
		all = fmt.Sprintf("%.0f%%", 100*c.Busy)
	}
	return fmt.Sprintf("the client used %.0f%% of the machine's processors, all together %s; load average %s to %s",
		100*c.Share, all, c.LoadBefore, c.LoadAfter)
}

// meter measures what the client costs.
type meter struct {
	begin       time.Time
	self        time.Duration
	busy, total float64
	load        string
}

func newMeter() *meter {
	m := &meter{begin: time.Now(), self: selfCPU(), load: loadAverage()}
	m.busy, m.total = machineCPU()
	return m
}

func (m *meter) read() Client {
	elapsed := time.Since(m.begin).Seconds()
	cpu := (selfCPU() - m.self).Seconds()
	busy, total := machineCPU()
	c := Client{
		CPUSeconds: cpu, Seconds: elapsed, Share: cpu / elapsed / float64(runtime.NumCPU()), Busy: -1,
		LoadBefore: m.load, LoadAfter: loadAverage(),
	}
	if total > m.total {
		c.Busy = (busy - m.busy) / (total - m.total)
	}
	return c
}

// selfCPU is the processor time that this program has used.
func selfCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// machineCPU is the time that all processors together have been busy, and have
// been at all, in ticks of /proc/stat; 0 where there is none.
func machineCPU() (busy, total float64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 { // guests' time is in user time already
			continue
		}
		total += ticks
		if i != 4 && i != 5 { // idle, waiting for the disk
			busy += ticks
		}
	}
	return busy, total
}
