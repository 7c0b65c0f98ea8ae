package peer

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// built remembers which binaries this process has built.
var built struct {
	sync.Mutex
	path map[string]string // by name; guarded by the mutex
}

// ZooraftBinary builds cmd/zooraft into build/bin, once per test process (the
// Go build cache makes a repeat cheap), and returns the program's path.
func ZooraftBinary(tb testing.TB, race bool) string {
	tb.Helper()
	return binary(tb, "zooraft", "./cmd/zooraft", race)
}

// binary builds a program of the repository.
func binary(tb testing.TB, name, folder string, race bool) string {
	tb.Helper()
	built.Lock()
	defer built.Unlock()
	args := []string{"build"}
	if race {
		name, args = name+"-race", append(args, "-race")
	}
	if p, ok := built.path[name]; ok {
		return p
	}
	bin := toolchain.Build(tb, "bin")
	defer toolchain.Lock(tb, filepath.Join(bin, name+".lock"))()
	// Built beside and renamed, so that a running process keeps its file.
	path := filepath.Join(bin, name)
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	cmd := exec.Command("go", append(args, "-o", fresh, folder)...)
	cmd.Dir = toolchain.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("peer: building %s: %v\n%s", name, err, out)
	}
	if err := os.Rename(fresh, path); err != nil {
		tb.Fatalf("peer: %v", err)
	}
	if built.path == nil {
		built.path = map[string]string{}
	}
	built.path[name] = path
	return path
}

// LogStoreVariable names the environment variable that picks the log store of
// every zooraft whose test does not: the whole suite runs once with each.
const LogStoreVariable = "ZOORAFT_TEST_LOG_STORE"

// RaceVariable names the environment variable that, when set to "true", makes
// every zooraft one with the race detector.
const RaceVariable = "ZOORAFT_TEST_RACE"

// LogStore is the log store of a zooraft whose test does not pick one: "wal" or
// "bolt".
func LogStore() string {
	if store := os.Getenv(LogStoreVariable); store != "" {
		return store
	}
	return "wal"
}

// StartZooraft starts `zooraft serve <zoo.cfg> -Dname=value… <opts.Args>` and
// returns when it serves, unless opts.NoWait is set.
func StartZooraft(tb testing.TB, opts Options) *Server {
	tb.Helper()
	race := opts.Race || os.Getenv(RaceVariable) == "true"
	bin := ZooraftBinary(tb, race)
	if opts.Program != "" {
		bin = binary(tb, filepath.Base(opts.Program), opts.Program, race)
	}
	if _, chosen := opts.Config["raftLogStore"]; !chosen {
		config := map[string]string{"raftLogStore": LogStore()}
		maps.Copy(config, opts.Config)
		opts.Config = config
	}
	s := newServer(tb, "zooraft", opts)
	args := append(slices.Clone(opts.Wrapper), bin, "serve", s.ConfigFile)
	defines := map[string]string{"zookeeper.admin.enableServer": "false"}
	if opts.Jaas != "" {
		defines["java.security.auth.login.config"] = s.writeFile("jaas.conf", opts.Jaas)
	}
	args = append(args, defineArgs(defines, opts.Defines)...)
	s.command = append(args, opts.Args...)
	s.Start(tb)
	return s
}
