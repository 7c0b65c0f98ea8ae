package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
)

func TestAServerThatLoadsItsDataSaysSoAndTurnsClientsAway(t *testing.T) {
	c := testConfig(t)
	c.Words.Allowed = []string{"ruok", "srvr", "mntr", "isro"}
	s, err := build(Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.appear(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"ruok": "imok",
		"isro": "null",
		"srvr": "This ZooKeeper instance is not currently serving requests\n",
		"mntr": "This ZooKeeper instance is not currently serving requests\n",
		"cons": "cons is not executed because it is not in the whitelist.\n",
	} {
		if got := word(t, s, name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	h, err := admin.FetchHealth(t.Context(), c.Storage.OwnDataDir())
	if err != nil || !h.Live || h.Ready || h.Reason == "" || h.Address != s.Addr().String() {
		t.Errorf("health: %+v, %v", h, err)
	}
	turned := dial(t, s)
	req := proto.ConnectRequest{TimeoutMillis: 30000, Password: make([]byte, proto.PasswordLen)}
	turned.write(proto.EndFrame(req.Append(proto.BeginFrame(nil)), 0))
	if rest, err := io.ReadAll(turned.net); err != nil || len(rest) > 0 {
		t.Errorf("a client gets %q, %v", rest, err)
	}
	if n := s.metrics.closedNotServing.Value(); n != 1 {
		t.Errorf("%d clients were turned away", n)
	}

	if err := s.abandon(); err != nil {
		t.Errorf("abandon: %v", err)
	}
	if _, err := admin.FetchHealth(t.Context(), c.Storage.OwnDataDir()); !errors.Is(err, admin.ErrUnreachable) {
		t.Errorf("health after the end: %v", err)
	}
	startServer(t, c) // nothing is left that would hinder another start
}

// While a snapshot of the leader is read in there is no state: nobody is served
// until it is there, not even a client that comes meanwhile.
func TestNobodyIsServedWhileASnapshotIsReadIn(t *testing.T) {
	s := startServer(t, testConfig(t))
	c := connect(t, s, proto.ConnectRequest{})
	c.create("/a", "", 0)
	persist, release := s.state.Freeze()
	defer release()
	out, in := io.Pipe()
	restored := make(chan error, 1)
	go func() { restored <- s.state.Restore(out) }() // nothing else is applied meanwhile
	c.gone()
	late := dial(t, s)
	req := proto.ConnectRequest{TimeoutMillis: 30000, Password: make([]byte, proto.PasswordLen)}
	late.write(proto.EndFrame(req.Append(proto.BeginFrame(nil)), 0))
	if rest, err := io.ReadAll(late.net); err != nil || len(rest) > 0 {
		t.Errorf("a client gets %q, %v", rest, err)
	}
	if h := (*report)(s).Health(); !h.Live || h.Ready || h.Reason != "a snapshot is being loaded" {
		t.Errorf("health meanwhile: %+v", h)
	}
	if text := word(t, s, "srvr"); !strings.HasPrefix(text, "This ZooKeeper instance is not currently serving") {
		t.Errorf("srvr meanwhile: %q", text)
	}
	if err := errors.Join(persist(in), in.Close(), <-restored); err != nil {
		t.Fatal(err)
	}
	if h := (*report)(s).Health(); !h.Ready {
		t.Errorf("health afterwards: %+v", h)
	}
	if r := connect(t, s, proto.ConnectRequest{}).call(proto.OpExists, pathBody("/a", false)); r.Err != proto.ErrOK {
		t.Errorf("the node is gone: %v", r.Err)
	}
}

func TestASecondServerOnTheSameDataLeavesTheFirstAlone(t *testing.T) {
	c := testConfig(t)
	s := startServer(t, c)
	if _, err := Start(Options{Config: c, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, ErrData) {
		t.Errorf("the second start: %v", err)
	}
	h, err := admin.FetchHealth(t.Context(), c.Storage.OwnDataDir())
	if err != nil || !h.Ready || h.Address != s.Addr().String() {
		t.Errorf("the first one's health: %+v, %v", h, err)
	}
	if text := word(t, s, "srvr"); !strings.Contains(text, "Mode: standalone\n") {
		t.Errorf("the first one says %q", text)
	}
}

func TestSnapshotsAndStartsAreMeasured(t *testing.T) {
	c := testConfig(t)
	first, err := Start(Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	<-first.Ready()
	writer := connect(t, first, proto.ConnectRequest{})
	for i := range 10 {
		writer.create(fmt.Sprintf("/n%d", i), "x", 0)
	}
	if err := first.node.Snapshot(); err != nil {
		t.Fatal(err)
	}
	writer.create("/behind", "x", 0)
	if n := first.logMetrics.snapshotTime.Value().Count; n != 1 {
		t.Errorf("%d snapshots were measured", n)
	}
	if v := first.logMetrics.batchSize.Value(); v.Sum < 12 || first.logMetrics.fsyncTime.Value().Count < v.Count {
		t.Errorf("entries: %+v, appends: %+v", v, first.logMetrics.fsyncTime.Value())
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	m := startServer(t, c).logMetrics
	if loaded := m.txnsLoaded.Value(); loaded.Count != 1 || loaded.Sum < 1 {
		t.Errorf("entries loaded: %+v", loaded)
	}
	for name, n := range map[string]int64{
		"snapshot": m.snapLoadTime.Value().Count, "log": m.txnsLoadTime.Value().Count, "start": m.dbInitTime.Value().Count,
	} {
		if n != 1 {
			t.Errorf("the loading of the %s was measured %d times", name, n)
		}
	}
}
