package ensemble

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// A server whose line gets another client port serves there at once; who is
// connected stays.
func TestAServerMovesItsClientPortByReconfig(t *testing.T) {
	e := newEnsemble(t, peer.StartZooraft)
	e.form(1, 2, 3)
	stays := e.connect(1)
	former := e.servers[1].Address
	before := e.spec(1, "participant")
	peers, _, _ := strings.Cut(before, ";")
	moved := net.JoinHostPort("127.0.0.1", strconv.Itoa(peer.FreePort(t)))
	if text, code := e.connectSuper(2).reconfig(change{joining: "server.1=" + peers + ";" + moved}); code != proto.ErrOK {
		t.Fatalf("%v, %q", code, text)
	}
	e.servers[1].Address = moved
	if text := e.connect(1).config(false); !strings.Contains(text, moved) {
		t.Errorf("at the new port: %q", text)
	}
	stays.config(false)
	e.eventually("the former port is closed", func() bool {
		c, err := peer.Open(former)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
}

// Servers whose lines get other peer ports are reached there at once, the leader
// too, and after a restart; the former ports are closed.
func TestServersMoveTheirPeerPortsByReconfig(t *testing.T) {
	e := newEnsemble(t, peer.StartZooraft)
	e.form(1, 2, 3)
	leader := e.leader()
	stays := e.connect(leader)
	var joining, former []string
	for id := 1; id <= 3; id++ {
		spec := strings.SplitN(e.spec(id, "ROLE"), ":", 3) // host, peer port, rest
		former = append(former, net.JoinHostPort(spec[0], spec[1]))
		spec[1] = strconv.Itoa(peer.FreePort(t))
		e.specs[id] = strings.Join(spec, ":")
		joining = append(joining, e.line(id, "participant"))
	}
	if text, code := e.connectSuper(2).reconfig(change{joining: strings.Join(joining, ",")}); code != proto.ErrOK {
		t.Fatalf("%v, %q", code, text)
	}
	for _, address := range former {
		e.eventually("the former port "+address+" is closed", func() bool {
			c, err := net.Dial("tcp", address)
			if err == nil {
				_ = c.Close()
			}
			return err != nil
		})
	}
	stays.config(false)
	// Each one is reached at its new port: all streams are made anew.
	for id := 1; id <= 3; id++ {
		e.servers[id].Stop(t)
		e.leader()
		e.servers[id].Launch(t)
		e.awaitMode(id, "leader", "follower")
		c := e.connect(id)
		body := proto.CreateRequest{Path: fmt.Sprintf("/moved-%d", id), ACL: proto.OpenACL}
		if h, _, err := c.call(proto.OpCreate, body.Append(nil, proto.OpCreate)); err != nil || h.Err != proto.ErrOK {
			t.Errorf("a write at server %d: %v, %v", id, h.Err, err)
		}
	}
}

// A reconfig gives a server a second address, at which it listens at once, and
// takes the first one away.
func TestAServerGetsAnotherAddressByReconfig(t *testing.T) {
	e := newEnsemble(t, peer.StartZooraft)
	e.defines["zookeeper.multiAddress.enabled"] = "true"
	e.form(1, 2, 3)
	moves := e.leader()
	stays := e.connect(moves)
	spec := strings.SplitN(e.spec(moves, "ROLE"), ":", 4) // host, peer port, election port, rest
	first := net.JoinHostPort(spec[0], spec[1])
	second := net.JoinHostPort("127.0.0.2", strconv.Itoa(peer.FreePort(t)))
	another := fmt.Sprintf("%s:%d", second, peer.FreePort(t))
	listens := func(address string, want bool) {
		t.Helper()
		e.eventually(fmt.Sprintf("the server listens at %s: %v", address, want), func() bool {
			c, err := net.Dial("tcp", address)
			if err == nil {
				_ = c.Close()
			}
			return (err == nil) == want
		})
	}
	for _, c := range []struct {
		addresses string
		first     bool
	}{{strings.Join(spec[:3], ":") + "|" + another, true}, {another, false}} {
		e.specs[moves] = c.addresses + ":" + spec[3]
		if text, code := e.connectSuper(moves).reconfig(change{joining: e.line(moves, "participant")}); code != proto.ErrOK {
			t.Fatalf("%v, %q", code, text)
		}
		listens(second, true)
		listens(first, c.first)
	}
	stays.config(false)
	// The others find it there.
	e.servers[moves].Stop(t)
	e.leader()
	e.servers[moves].Launch(t)
	e.awaitMode(moves, "leader", "follower")
}
