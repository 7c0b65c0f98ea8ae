package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/zktest"
)

// patience bounds waits that only a fault makes long.
const patience = 60 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAConnectStringIsReadAsZooKeepersClientsDo(t *testing.T) {
	for _, row := range []struct {
		text, chroot string
		servers      []string
		wrong        bool
	}{
		{text: "a:1,b:2", servers: []string{"a:1", "b:2"}},
		{text: "a, b:2 ", servers: []string{"a:2181", "b:2"}},
		{text: "a:1,b/app/x", servers: []string{"a:1", "b:2181"}, chroot: "/app/x"},
		{text: "a/", servers: []string{"a:2181"}},
		{text: "[::1]:3,[fe80::1]", servers: []string{"[::1]:3", "[fe80::1]:2181"}},
		{text: "", wrong: true},
		{text: "/app", wrong: true},
		{text: "a/x/", wrong: true},
		{text: "a/../b", wrong: true},
	} {
		servers, chroot, err := client.ParseConnectString(row.text)
		if (err != nil) != row.wrong || row.wrong && !errors.Is(err, client.ErrAddress) {
			t.Errorf("%q: error %v", row.text, err)
		}
		if err == nil && (chroot != row.chroot || len(servers) != len(row.servers)) {
			t.Errorf("%q: %q and chroot %q", row.text, servers, chroot)
			continue
		}
		for i := range row.servers {
			if err == nil && servers[i] != row.servers[i] {
				t.Errorf("%q: server %d is %q, want %q", row.text, i, servers[i], row.servers[i])
			}
		}
	}
}

// session opens a session whose events come out of a channel.
func session(t *testing.T, options client.SessionOptions) (*client.Session, chan client.Event) {
	t.Helper()
	events := make(chan client.Event, 1000)
	options.Notify = func(event client.Event) { events <- event }
	s := client.NewSession(options)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Close(ctx) // the server may be gone
	})
	return s, events
}

func await(t *testing.T, events chan client.Event, want func(client.Event) bool) client.Event {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case event := <-events:
			if want(event) {
				return event
			}
		case <-late:
			t.Fatalf("no such event within %v", patience)
		}
	}
}

func create(t *testing.T, s *client.Session, path, data string) {
	t.Helper()
	request := proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL, TTL: -1}
	if _, err := s.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

// Killing the server under a session must cost neither the session nor its
// watches nor its identities.
func TestASessionGoesOnAtAnotherServerWithItsWatchesAndIdentities(t *testing.T) {
	ensemble := zktest.NewEnsemble(t, 3)
	options := client.SessionOptions{Servers: ensemble.Addrs(), Patient: true, Timeout: 20 * time.Second}
	s, events := session(t, options)
	other, _ := session(t, options)
	if err := s.AddAuth(t.Context(), "digest", []byte("ann:secret")); err != nil {
		t.Fatal(err)
	}
	create(t, s, "/app", "")
	create(t, s, "/app/node", "1")
	if err := s.AddWatch(t.Context(), "/app", proto.AddWatchPersistentRecursive); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(t.Context(), "/app/node", true); err != nil {
		t.Fatal(err)
	}
	id, server := s.ID(), s.Server()
	for i, address := range ensemble.Addrs() {
		if address == server {
			if err := ensemble.Servers()[i].Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	await(t, events, func(e client.Event) bool { return e.Type == proto.EventNone && e.State == client.KeeperDisconnected })
	await(t, events, func(e client.Event) bool { return e.Type == proto.EventNone && e.State == client.KeeperSyncConnected })
	if s.ID() != id || s.Server() == server {
		t.Errorf("session %v at %s became %v at %s", id, server, s.ID(), s.Server())
	}
	ids, err := s.WhoAmI(t.Context())
	if err != nil || len(ids) != 2 {
		t.Errorf("identities after the move: %v, %v", ids, err)
	}
	changed := proto.SetDataRequest{Path: "/app/node", Data: []byte("2"), Version: -1}
	if _, err := other.Set(t.Context(), changed.Path, changed.Data, changed.Version); err != nil && client.Code(err) != proto.ErrConnectionLoss {
		t.Fatal(err)
	}
	if _, err := other.Set(t.Context(), changed.Path, changed.Data, changed.Version); err != nil {
		t.Fatal(err)
	}
	await(t, events, func(e client.Event) bool { return e.Type == proto.EventNodeDataChanged && e.Path == "/app/node" })
}

func TestPathsAndEventsAreBelowTheChroot(t *testing.T) {
	server := zktest.NewServer(t)
	plain, _ := session(t, client.SessionOptions{Servers: []string{server.Addr()}})
	create(t, plain, "/app", "")
	below, events := session(t, client.SessionOptions{Servers: []string{server.Addr()}, Chroot: "/app"})
	create(t, below, "/x", "1")
	if _, _, err := plain.Get(t.Context(), "/app/x", false); err != nil {
		t.Errorf("the node is not below the chroot: %v", err)
	}
	for _, path := range []string{"/", "/x"} {
		if _, _, err := below.Children(t.Context(), path, true); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	create(t, plain, "/app/x/y", "")
	await(t, events, func(e client.Event) bool { return e.Type == proto.EventNodeChildrenChanged && e.Path == "/x" })
	create(t, plain, "/app/z", "")
	await(t, events, func(e client.Event) bool { return e.Type == proto.EventNodeChildrenChanged && e.Path == "/" })
	_, err := below.Exists(t.Context(), "/none", false)
	var failed *client.ServerError
	if !errors.As(err, &failed) || failed.Path != "/none" {
		t.Errorf("an error names %v", err)
	}
}

func TestRemovingAWatchIsToldAndAnUnknownOneIsRefused(t *testing.T) {
	server := zktest.NewServer(t)
	s, events := session(t, client.SessionOptions{Servers: []string{server.Addr()}})
	if err := s.RemoveWatches(t.Context(), "/", proto.WatcherAny, false); client.Code(err) != proto.ErrNoWatcher {
		t.Errorf("without a watch: %v", err)
	}
	if _, err := s.Exists(t.Context(), "/later", true); client.Code(err) != proto.ErrNoNode {
		t.Fatal(err)
	}
	if err := s.RemoveWatches(t.Context(), "/later", proto.WatcherData, false); err != nil {
		t.Error(err)
	}
	await(t, events, func(e client.Event) bool { return e.Type == client.EventDataWatchRemoved && e.Path == "/later" })
}

func TestARefusedIdentityEndsTheSession(t *testing.T) {
	server := zktest.NewServer(t)
	s, events := session(t, client.SessionOptions{Servers: []string{server.Addr()}})
	if err := s.AddAuth(t.Context(), "nosuch", nil); client.Code(err) != proto.ErrAuthFailed {
		t.Errorf("an unknown scheme: %v", err)
	}
	await(t, events, func(e client.Event) bool { return e.State == client.KeeperAuthFailed })
	if _, err := s.Exists(t.Context(), "/", false); client.Code(err) != proto.ErrAuthFailed || s.State() != client.StateAuthFailed {
		t.Errorf("after that: %v in state %s", err, s.State())
	}
}

func TestWithoutAServerARequestFailsAfterOneRoundUnlessItIsPatient(t *testing.T) {
	gone := []string{"127.0.0.1:1", "127.0.0.1:2"}
	hasty, _ := session(t, client.SessionOptions{Servers: gone})
	if _, err := hasty.Exists(t.Context(), "/", false); !errors.Is(err, client.ErrNoServer) {
		t.Errorf("without patience: %v", err)
	}
	patient, _ := session(t, client.SessionOptions{Servers: gone, Patient: true})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := patient.Exists(ctx, "/", false); !errors.Is(err, client.ErrNoServer) || ctx.Err() == nil {
		t.Errorf("with patience: %v before its time was up", err)
	}
}

func TestAFailedMultiNamesTheOpThatFailed(t *testing.T) {
	server := zktest.NewServer(t)
	s, _ := session(t, client.SessionOptions{Servers: []string{server.Addr()}})
	ops := []proto.MultiOp{
		{Type: proto.OpCreate, Create: proto.CreateRequest{Path: "/a", ACL: proto.OpenACL, TTL: -1}},
		{Type: proto.OpDelete, Version: proto.PathVersion{Path: "/none", Version: -1}},
	}
	err := s.Multi(t.Context(), ops)
	var failed *client.ServerError
	if !errors.As(err, &failed) || failed.Path != "/none" || failed.Code != proto.ErrNoNode {
		t.Errorf("the multi failed with %v", err)
	}
	if err := s.Multi(t.Context(), ops[:1]); err != nil {
		t.Error(err)
	}
}
