package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

// A reply that many clients do not take is told with what was asked, once, then
// counted, then told again with what was left out.
func TestLargeRepliesAreWarnedOfWithTheirPath(t *testing.T) {
	var out bytes.Buffer
	now := time.Hour
	l := newLargeReplies(metrics.NewRegistry(), slog.New(slog.NewTextHandler(&out, nil)), func() time.Duration { return now })
	list := state.ReadRequest{Header: proto.RequestHeader{Type: proto.OpGetChildren}, Body: pathBody("/app/many", false)}
	several := state.ReadRequest{Header: proto.RequestHeader{Type: proto.OpMultiRead},
		Body: proto.AppendMulti(nil, []proto.MultiOp{{Type: proto.OpGetData, Read: proto.PathWatch{Path: "/app/big"}}})}
	for _, step := range []struct {
		after time.Duration
		r     *state.ReadRequest
		bytes int
		want  string // in the log; empty for nothing
	}{
		{0, &list, clientTakesBytes, ""},
		{0, &list, 2 << 20, "op=getChildren path=/app/many bytes=2097152"},
		{time.Second, &several, 3 << 20, ""},
		{time.Second, &list, 100, ""},
		{largeRepliesQuiet, &several, 3 << 20, "op=multiRead path=/app/big bytes=3145728"},
	} {
		now += step.after
		out.Reset()
		l.sent(&conn{}, step.r, step.bytes)
		if got := out.String(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
			t.Errorf("a reply of %d bytes logged %q, want %q", step.bytes, got, step.want)
		}
	}
	if !strings.Contains(out.String(), "large_ones_before=1") {
		t.Errorf("the one between is not counted: %s", out.String())
	}
}
