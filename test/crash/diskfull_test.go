package crash

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// Case 61: on a full disk writes fail with an error to their clients, reads go
// on, and writes work again by themselves once there is space. Nothing that
// was acknowledged is lost, not even by a kill while the disk is full.
func TestAFullDiskFailsWritesServesReadsAndHeals(t *testing.T) {
	eachLogStore(t, func(t *testing.T, config map[string]string) {
		disk := peer.SmallDisk(t)
		s := peer.StartZooraft(t, peer.Options{Config: config, DataDir: filepath.Join(disk, "data")})
		t.Cleanup(func() { s.Kill(t) }) // before the disk is unmounted
		ctx, cancel := context.WithTimeout(context.Background(), 2*waitLimit)
		defer cancel()
		reader := dial(t, s)
		if _, err := reader.Create(ctx, "/before", []byte("kept"), 0); err != nil {
			t.Fatal(err)
		}
		ballast := peer.Fill(t, disk)
		acked := writeUntilRefused(ctx, t, s)
		if data, _, err := reader.Get(ctx, "/before", false); err != nil || string(data) != "kept" {
			t.Fatalf("read on a full disk: %q, %v", data, err)
		}
		// A client that is refused is told so and stays connected.
		if _, err := reader.Set(ctx, "/before", []byte("no"), -1); code(err) != proto.ErrSystemError {
			t.Fatalf("write on a full disk: %v\n%s", err, s.Log())
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		until(t, "writes work again", func() bool {
			_, err := reader.Set(ctx, "/before", []byte("after"), -1)
			return err == nil
		})
		checkNodes(ctx, t, reader, acked)
		s.Kill(t)
		s.Start(t)
		checkNodes(ctx, t, dial(t, s), acked)
	})
}

// writeUntilRefused creates nodes until a write is refused for want of space,
// over a new connection whenever one ends, and returns those acknowledged.
func writeUntilRefused(ctx context.Context, t *testing.T, s *peer.Server) []string {
	t.Helper()
	var acked []string
	data := bytes.Repeat([]byte("x"), 100<<10)
	var c *client.Conn
	until(t, "a write is refused", func() bool {
		for {
			if c == nil {
				var err error
				if c, err = client.Dial(ctx, s.Address, client.Options{}); err != nil {
					return true // no session can be made: that is a refusal too
				}
			}
			path, err := c.Create(ctx, "/fill-", data, proto.CreatePersistentSequential)
			switch {
			case err == nil:
				acked = append(acked, path)
			case code(err) == proto.ErrSystemError:
				return true
			default:
				c = nil
				return false
			}
		}
	})
	return acked
}

func checkNodes(ctx context.Context, t *testing.T, c *client.Conn, paths []string) {
	t.Helper()
	for _, p := range paths {
		if _, err := c.Exists(ctx, p, false); err != nil {
			t.Errorf("acknowledged %s: %v", p, err)
		}
	}
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(waitLimit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// The health of a server on a full disk says what is wrong.
func TestHealthNamesAFullDisk(t *testing.T) {
	disk := peer.SmallDisk(t)
	s := peer.StartZooraft(t, peer.Options{DataDir: filepath.Join(disk, "data")})
	t.Cleanup(func() { s.Kill(t) })
	ballast := peer.Fill(t, disk)
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitLimit)
	defer cancel()
	writeUntilRefused(ctx, t, s)
	until(t, "health says that the disk is full", func() bool {
		out := toolchain.Output(t, peer.ZooraftBinary(t, false), "health", "--data-dir", s.DataDir)
		return strings.Contains(out, "full")
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	until(t, "health is good again", func() bool {
		out := toolchain.Output(t, peer.ZooraftBinary(t, false), "health", "--data-dir", s.DataDir)
		return strings.Contains(out, "ready") && !strings.Contains(out, "not ready")
	})
}
