package zooraft

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/server"
)

// slowDisk holds up who lists the files of the log, as one does whose log takes
// long to read.
type slowDisk struct {
	consensus.OSFS
	asked chan struct{} // told of each
	goOn  chan struct{} // closed to go on
}

func (d slowDisk) ListDir(dir string) ([]string, error) {
	select {
	case d.asked <- struct{}{}:
	default:
	}
	<-d.goOn
	return d.OSFS.ListDir(dir)
}

// A start that takes long does not keep a process from ending, and harms nothing:
// the directory is given back when it has been read.
func TestAStartIsGivenUpWhenItsContextEnds(t *testing.T) {
	c := config.Bare()
	c.Listen.Host, c.Listen.Port = "127.0.0.1", 0
	c.Storage.DataDir = t.TempDir()
	o := server.Options{Config: c, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	first, err := server.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	disk := slowDisk{asked: make(chan struct{}, 1), goOn: make(chan struct{})}
	slow := o
	slow.Embedding.FS = disk
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-disk.asked
		cancel()
	}()
	if _, err := startInner(ctx, slow); !errors.Is(err, context.Canceled) {
		t.Fatalf("a start that is given up returned %v", err)
	}
	close(disk.goOn)
	deadline := time.Now().Add(30 * time.Second)
	for {
		again, err := server.Start(o)
		if err == nil {
			if err := again.Stop(); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, consensus.ErrLocked) || time.Now().After(deadline) {
			t.Fatalf("the directory cannot be used again: %v", err)
		}
		<-time.After(10 * time.Millisecond)
	}
}
