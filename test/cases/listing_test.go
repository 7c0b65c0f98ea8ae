package cases

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// Case 67: a node with a hundred thousand children, whose list is larger than
// clients take by default.
const (
	listed      = 100_000
	nameBytes   = 60
	clientLimit = 4 << 20 // of the Java client
)

// Clients that take the list get it whole; those that do not, close at its length
// and ask again, cost the server no more than the answers that it is writing (an
// answer may lie in two buffers, and be garbage for a while); the number of
// children can be asked for; and others are answered meanwhile.
func TestAListTooLargeForClientsHarmsNobody(t *testing.T) {
	s := own(t, nil)
	a := open(t, s)
	top := a.top()
	names := strings.Repeat("x", nameBytes-6)
	for n := 0; n < listed; {
		var ops []proto.MultiOp
		for range 2000 {
			ops = append(ops, opCreate(proto.OpCreate, fmt.Sprintf("%s/%s%06d", top, names, n), 0))
			n++
		}
		a.multi(ops...)
	}
	steady := residentKiB(t, s)
	const clients, rounds = 50, 3
	var lists sync.WaitGroup
	for i := range clients {
		lists.Add(1)
		go func() {
			defer lists.Done()
			for range rounds {
				if n, err := listOnce(s, top, i%2 == 0); err != nil || n != listed && i%2 == 0 {
					t.Errorf("client %d has %d children: %v", i, n, err)
				}
			}
		}()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lists.Wait()
	}()
	peak := steady
	for others := 0; ; others++ {
		select {
		case <-done:
		default:
			if d := a.want(proto.ErrOK, proto.OpGetAllChildrenNumber, proto.AppendString(nil, top)); d.Int() != listed {
				t.Fatal("another number of children")
			}
			a.set(top, []byte("x"))
			peak = max(peak, residentKiB(t, s))
			continue
		}
		t.Logf("others were answered %d times; %d MiB before, at most %d MiB", others, steady>>10, peak>>10)
		if others == 0 {
			t.Error("nobody else was answered meanwhile")
		}
		break
	}
	if !strings.Contains(s.Log(), "path="+top+" bytes=") {
		t.Error("the log does not name the path and the length of the answer")
	}
	if mntr, err := peer.Word(s.Address, "mntr"); err != nil || !strings.Contains(mntr, "zk_max_"+top[1:]+"_large_reply_bytes_per_namespace\t64") {
		t.Errorf("mntr does not show the answer's length: %v %s", err, mntr)
	}
	// The race detector keeps several bytes for each one that is used.
	const answerKiB = listed * (nameBytes + 4) >> 10
	if limit := steady + 3*clients*answerKiB; peak > limit && os.Getenv(peer.RaceVariable) != "true" {
		t.Errorf("the server held %d MiB, at most %d MiB were expected", peak>>10, limit>>10)
	}
}

// listOnce asks for the children over a connection of its own. A client that
// does not take large answers closes at the length.
func listOnce(s *peer.Server, path string, takes bool) (children int, err error) {
	conn, err := peer.Open(s.Address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.Connect(proto.ConnectRequest{TimeoutMillis: 30000, Password: make([]byte, proto.PasswordLen)}, patience); err != nil {
		return 0, err
	}
	if takes {
		_, body, err := conn.Call(1, proto.OpGetChildren, readBody(path, false), patience)
		if err != nil {
			return 0, err
		}
		return len(proto.NewDecoder(body).Strings()), nil
	}
	if err := conn.SendRequest(1, proto.OpGetChildren, readBody(path, false)); err != nil {
		return 0, err
	}
	var head [4]byte
	if _, err := io.ReadFull(net.Conn(conn), head[:]); err != nil {
		return 0, err
	}
	if n := binary.BigEndian.Uint32(head[:]); n <= clientLimit {
		return 0, fmt.Errorf("the answer has %d bytes only", n)
	}
	return 0, nil
}
