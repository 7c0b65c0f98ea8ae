// Package cases holds one test for each thing that users of ZooKeeper-like
// servers have really hit and that concerns one server; test/cases.md maps
// numbers to names. Where Apache ZooKeeper 3.9.5 does it right, the same test
// runs on it, so that it cannot demand something else.
package cases

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// super is a user whom all servers here give every right: super:secret.
const super = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="

// options are those of the shared servers: a tick of 200 ms makes sessions as
// short as 400 ms possible.
func options() peer.Options {
	return peer.Options{
		Config: map[string]string{
			"tickTime": "200", "maxSessionTimeout": "60000", "maxClientCnxns": "0",
			"4lw.commands.whitelist": "*",
		},
		Defines: map[string]string{
			"zookeeper.extendedTypesEnabled":                     "true",
			"zookeeper.enforceQuota":                             "true",
			"zookeeper.DigestAuthenticationProvider.superDigest": super,
			"zookeeper.forceSync":                                "no",
		},
	}
}

// process is a testing.TB that lives as long as the package's tests, for what
// they share. Only the methods that peer uses work.
type process struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func() // guarded by mu
}

func (p *process) Helper()                     {}
func (p *process) Name() string                { return "test/cases" }
func (p *process) Fatalf(f string, arg ...any) { panic(fmt.Sprintf(f, arg...)) }
func (p *process) Errorf(f string, arg ...any) { panic(fmt.Sprintf(f, arg...)) }
func (p *process) Skip(arg ...any)             { panic(fmt.Sprint(arg...)) }
func (p *process) Logf(f string, arg ...any)   { fmt.Printf(f+"\n", arg...) }

func (p *process) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *process) TempDir() string {
	dir, err := os.MkdirTemp("", "zooraft-cases")
	if err != nil {
		p.Fatalf("%v", err)
	}
	p.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// end runs the cleanups, last one first.
func (p *process) end() {
	for len(p.cleanups) > 0 {
		last := len(p.cleanups) - 1
		f := p.cleanups[last]
		p.cleanups = p.cleanups[:last]
		f()
	}
}

var (
	lifetime      process
	sharedZooraft = sync.OnceValue(func() *peer.Server { return peer.StartZooraft(&lifetime, options()) })
	sharedApache  = sync.OnceValue(func() *peer.Server { return peer.StartApache(&lifetime, options()) })
)

func TestMain(m *testing.M) {
	code := toolchain.Main(m)
	lifetime.end()
	os.Exit(code)
}

// both runs a test on zooraft and on the real server.
func both(t *testing.T, test func(t *testing.T, s *peer.Server)) {
	t.Helper()
	t.Run("zooraft", func(t *testing.T) { test(t, sharedZooraft()) })
	t.Run("apache", func(t *testing.T) {
		toolchain.Need(t, "java", "mvn")
		test(t, sharedApache())
	})
}

// own starts a zooraft for one test alone, with further zoo.cfg keys and, where
// the name begins with -D, properties.
func own(t *testing.T, config map[string]string) *peer.Server {
	t.Helper()
	o := options()
	for k, v := range config {
		if property, ok := strings.CutPrefix(k, "-D"); ok {
			o.Defines[property] = v
		} else {
			o.Config[k] = v
		}
	}
	return peer.StartZooraft(t, o)
}

var lastTop atomic.Int64

// top makes a node that this call alone uses, as servers are shared.
func (s *session) top() string {
	s.t.Helper()
	path := fmt.Sprintf("/case-%d-%d", os.Getpid(), lastTop.Add(1))
	s.create(path, nil)
	return path
}
