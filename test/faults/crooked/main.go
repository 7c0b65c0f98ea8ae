// Command crooked is `zooraft serve` with a machine below it that can be made to
// fail: its wall clock can be set off, its disk can hang, fail on a sync or have no
// space, and Raft can refuse entries. It can also stand for a later version of
// zooraft, which supports a higher command level. Everything else is the product's
// own code.
//
// It is told by a file of settings, which it looks at all the time and which
// outlives it, and asked by HTTP on loopback.
//
//	crooked serve zoo.cfg -Dname=value…
//
// with CROOKED_SETTINGS, the file, and CROOKED_ADDRESS, where it is asked.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/server"
)

func main() {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(logger); err != nil {
		logger.Error("crooked ends", "error", err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	if errors.Is(err, server.ErrData) {
		return config.ExitDataDir
	}
	return 1
}

func run(logger *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	options := config.Options{Environ: os.Environ()}
	for _, arg := range os.Args[1:] {
		if define, ok := strings.CutPrefix(arg, "-D"); ok {
			options.Defines = append(options.Defines, define)
		} else if arg != "serve" {
			options.File = arg
		}
	}
	effective, _, err := config.Load(options)
	if err != nil {
		return err
	}
	m := newMachine(os.Getenv("CROOKED_SETTINGS"))
	go m.watch(ctx)
	s, err := server.Start(server.Options{
		Config: effective, Build: admin.CurrentBuild("crooked"), Logger: logger, Clock: m.clock(),
		Embedding: server.Embedding{FS: m.files(), BoltSynced: m.sync, Refuse: m.refuse, CommandLevel: m.get().CommandLevel},
	})
	if err != nil {
		return err
	}
	go func() {
		if err := http.ListenAndServe(os.Getenv("CROOKED_ADDRESS"), questions(s)); err != nil {
			logger.Warn("crooked cannot be asked", "error", err)
		}
	}()
	select {
	case <-ctx.Done():
		return s.Stop()
	case <-s.Failed():
		return errors.Join(fmt.Errorf("the server gave up: %w", s.Err()), s.Stop())
	}
}

// Replica is what a server answers about its state at one moment.
type Replica struct {
	Zxid     int64
	Level    byte     // the command level
	Tree     string   // a sum of all nodes with data and stat
	Sessions []string // each with all that is replicated of it
}

// questions are what a test may ask a running server.
func questions(s *server.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/replica", func(w http.ResponseWriter, _ *http.Request) {
		dump := s.Dump()
		sum := sha256.New()
		for _, n := range dump.Nodes {
			fmt.Fprintf(sum, "%q %q %+v\n", n.Path, n.Data, n.Stat) // a hash never fails
		}
		r := Replica{Zxid: int64(dump.Zxid), Level: dump.Level, Tree: fmt.Sprintf("%x", sum.Sum(nil)[:8])}
		for _, row := range dump.Sessions {
			r.Sessions = append(r.Sessions, fmt.Sprintf("%+v", row))
		}
		_ = json.NewEncoder(w).Encode(r) // who asked has gone
	})
	mux.HandleFunc("/lead", func(w http.ResponseWriter, r *http.Request) {
		to, err := strconv.Atoi(r.URL.Query().Get("to"))
		if err == nil {
			err = s.MoveLeader(to)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	return mux
}
