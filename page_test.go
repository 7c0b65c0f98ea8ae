package zooraft_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/zooraft/zooraft"
)

// What docs/testing.md shows of this package; test/embedding holds the page equal
// to it. The directory is one for servers, so a test can only have it refused.
func embedAsThePageDoes(ctx context.Context, logger *slog.Logger) error {
	cfg := zooraft.DefaultConfig("/var/lib/app/zooraft")
	srv, err := zooraft.Start(ctx, cfg, zooraft.WithLogger(logger))
	if err != nil {
		return err
	}
	defer srv.Stop()
	if err := srv.WaitReady(ctx); err != nil {
		return err
	}
	fmt.Println(srv.Addresses().Client)
	return nil
}

func TestThePagesServerDoesNotStartWithAContextThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := embedAsThePageDoes(ctx, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it started")
	}
}
