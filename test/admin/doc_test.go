// Package admin compares what operators see, four-letter words above all,
// between the real ZooKeeper and zooraft, driven by the same clients. The texts
// are reduced to what must be equal: times, addresses, session ids and the
// epoch of zxids are taken out, counts are kept.
package admin

import (
	"os"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

func TestMain(m *testing.M) { os.Exit(toolchain.Main(m)) }
