package zooraft_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/zooraft/zooraft"
	"github.com/zooraft/zooraft/test/peer"
)

// A program may hold a server of an ensemble, and write its configuration in Go
// with nothing but what this package has.
func TestThreeEmbeddedServersAreAnEnsemble(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var members []zooraft.Member
	for id := int64(1); id <= 3; id++ {
		address := zooraft.PeerAddress{Host: "127.0.0.1", QuorumPort: peer.FreePort(t), ElectionPort: peer.FreePort(t)}
		members = append(members, zooraft.Member{ID: id, Addresses: []zooraft.PeerAddress{address}, ClientPort: -1})
	}
	var servers []*zooraft.Server
	for _, m := range members {
		c := zooraft.DefaultConfig(t.TempDir())
		c.Ensemble.MyID, c.Ensemble.Servers = m.ID, members
		c.Ensemble.InitLimit, c.Ensemble.SyncLimit = 100, 50 // patient with a busy machine
		s, err := zooraft.Start(context.Background(), c, zooraft.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		if want := fmt.Sprintf("127.0.0.1:%d", m.Addresses[0].QuorumPort); s.Addresses().Peer.String() != want {
			t.Errorf("server %d is reached by the others at %s, want %s", m.ID, s.Addresses().Peer, want)
		}
		servers = append(servers, s)
	}
	for _, s := range servers {
		if err := s.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first, second := connect(t, servers[0]), connect(t, servers[1])
	defer first.Close()
	defer second.Close()
	if _, err := first.Create("/a", []byte("1"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Sync("/a"); err != nil {
		t.Fatal(err)
	}
	if data, _, err := second.Get("/a"); err != nil || string(data) != "1" {
		t.Errorf("got %q, %v", data, err)
	}
}

// A file's servers are the members. What `serve` accepts with a flag, an embedder
// can accept too.
func TestAFileWithAnEnsembleIsRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "dataDir=" + filepath.ToSlash(dir) + "\nclientPort=0\ninitLimit=10\nsyncLimit=5\n"
	for id := 1; id <= 3; id++ {
		text += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", id, 2887+id, 3887+id)
	}
	file := filepath.Join(dir, "zoo.cfg")
	read := func(text string, options ...zooraft.LoadOption) error {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, err := zooraft.LoadConfig(file, options...)
		if err == nil && (c.Ensemble.MyID != 2 || len(c.Ensemble.Servers) != 3) {
			t.Errorf("read %+v", c.Ensemble)
		}
		return err
	}
	if err := read(text); err != nil {
		t.Error(err)
	}
	text += "audit.enable=true\n"
	if err := read(text); !errors.Is(err, zooraft.ErrConfig) || !strings.Contains(err.Error(), "unprotected") {
		t.Errorf("without the option: %v", err)
	}
	if err := read(text, zooraft.AllowUnprotected()); err != nil {
		t.Errorf("with the option: %v", err)
	}
}
