package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// A disk that becomes slow is told once, then counted, then told again with what
// was left out.
func TestSlowSyncsAreWarnedOfAndNotAtEveryWrite(t *testing.T) {
	var out bytes.Buffer
	now := time.Hour
	s := newSlowSyncs(metrics.NewRegistry(), slog.New(slog.NewTextHandler(&out, nil)), func() time.Duration { return now }, time.Second)
	for _, step := range []struct {
		after, took time.Duration
		want        string // in the log; empty for nothing
	}{
		{0, time.Second, ""},
		{time.Second, 1001 * time.Millisecond, "took=1.001s threshold=1s"},
		{time.Second, 3 * time.Second, ""},
		{5 * time.Second, 2 * time.Second, ""},
		{time.Second, time.Millisecond, ""},
		{slowSyncsQuiet, 4 * time.Second, "took=4s threshold=1s slow_ones_before=2 slowest_before=3s"},
		{2 * slowSyncsQuiet, 5 * time.Second, "took=5s threshold=1s\n"},
	} {
		now += step.after
		out.Reset()
		s.appended(step.took)
		if got := out.String(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
			t.Errorf("a sync of %v logged %q, want %q", step.took, got, step.want)
		}
	}
	if got := s.exceeded.Value(); got != 5 {
		t.Errorf("%d counted, want 5", got)
	}
}

// The operator's threshold reaches the log: with 0 each sync of more than
// nothing is too slow.
func TestTheThresholdOfSlowSyncsIsTheOperators(t *testing.T) {
	c := testConfig(t)
	c.Storage.FsyncWarningThreshold = 0
	s := startServer(t, c)
	if got := s.slowSyncs.exceeded.Value(); got == 0 {
		t.Error("no sync of the start is counted")
	}
}
