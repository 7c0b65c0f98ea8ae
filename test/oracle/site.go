package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// site is one server of a target, and the control connection to it.
type site struct {
	number  int // 1 for a server alone, myid in an ensemble
	server  *peer.Server
	control *peer.Conn
	session proto.ConnectResponse // the control connection's, 0 before the first
	xid     int32
	down    bool // killed by the script that runs
}

func (s *site) addr() string { return s.server.Address }

// call makes a request on the control connection.
func (s *site) call(op proto.OpCode, body []byte) (proto.ReplyHeader, []byte, error) {
	s.xid++
	return s.control.Call(s.xid, op, body, 3*patience)
}

// call makes a request on the control connection to the first server.
func (t *Target) call(op proto.OpCode, body []byte) (proto.ReplyHeader, []byte, error) {
	return t.sites[0].call(op, body)
}

// open makes the control connections that there are not, or that do not answer.
func (t *Target) open() error {
	for _, s := range t.sites {
		if err := s.open(t.anonymous); err != nil {
			return err
		}
	}
	_, err := t.create(markDir)
	return err
}

func (s *site) open(anonymous bool) error {
	if s.control != nil {
		if _, _, err := s.call(proto.OpExists, (&proto.PathWatch{Path: "/"}).Append(nil)); err == nil {
			return nil
		}
		s.close()
	}
	c, err := peer.Open(s.addr())
	if err != nil {
		return err
	}
	s.control = c
	req := proto.ConnectRequest{TimeoutMillis: controlTimeout, Password: make([]byte, proto.PasswordLen), HasReadOnly: true}
	if s.session.SessionID != 0 {
		// The same session goes on: one that expired later would take a zxid.
		req.SessionID, req.Password = s.session.SessionID, s.session.Password
	}
	resp, err := c.Connect(req, 3*patience)
	if err != nil || resp.SessionID == 0 {
		return fmt.Errorf("%w: connect: %+v, %v", errControl, resp, err)
	}
	s.session = resp
	if anonymous {
		return nil
	}
	auth := proto.AuthPacket{Scheme: "digest", Auth: []byte(superCredentials)}
	if h, _, err := c.Call(proto.XidAuth, proto.OpAuth, auth.Append(nil), patience); err != nil || h.Err != proto.ErrOK {
		return fmt.Errorf("%w: auth: %+v, %v", errControl, h, err)
	}
	return nil
}

func (s *site) close() {
	if s.control != nil {
		s.control.Close()
		s.control = nil
	}
}

// sortByRole puts the leader first and the others behind it by number, so that
// a script finds the same roles at the same places of both ensembles.
func (t *Target) sortByRole() error {
	if len(t.sites) == 1 {
		return nil
	}
	leader := map[*site]bool{}
	for _, s := range t.sites {
		text, err := peer.Word(s.addr(), "srvr")
		if err != nil {
			return err
		}
		leader[s] = strings.Contains(text, "Mode: leader")
	}
	slices.SortFunc(t.sites, func(a, b *site) int {
		if leader[a] != leader[b] {
			if leader[a] {
				return -1
			}
			return 1
		}
		return a.number - b.number
	})
	if !leader[t.sites[0]] {
		return fmt.Errorf("%w: no server leads", errControl)
	}
	return nil
}

// settle waits until all servers of an ensemble have applied the same, and
// returns the last zxid. Nothing is under way when it is called but what
// servers still have to learn from their leader. The reply to a sync through a
// follower comes behind everything that the leader had committed; when the
// others show the zxid of that reply, they have applied it too, and the events
// of it stand in the connections' queues, before the answer to any later ping.
func (t *Target) settle() (zxid int64, err error) {
	if len(t.sites) == 1 {
		return 0, nil
	}
	up := slices.DeleteFunc(slices.Clone(t.sites), func(s *site) bool { return s.down })
	follower := up[len(up)-1]
	h, _, err := follower.call(proto.OpSync, proto.AppendString(nil, "/"))
	if err == nil && h.Err != proto.ErrOK {
		err = fmt.Errorf("%w: sync: %v", errControl, h.Err)
	}
	if err != nil {
		return 0, err
	}
	for _, s := range up[:len(up)-1] {
		if err := s.reach(h.Zxid); err != nil {
			return 0, err
		}
	}
	return int64(h.Zxid), nil
}

// reach waits until a server has applied a zxid.
func (s *site) reach(zxid proto.Zxid) error {
	poll := time.NewTicker(500 * time.Microsecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * patience); time.Now().Before(deadline); <-poll.C {
		h, _, err := s.call(proto.OpPing, nil)
		if err != nil {
			return err
		}
		if h.Zxid >= zxid {
			return nil
		}
	}
	return fmt.Errorf("%w: server %d does not reach zxid %v", errControl, s.number, zxid)
}

// kill ends a server of an ensemble, and revive starts it on its data and waits
// until it serves.
func (s *site) kill() {
	s.close()
	s.server.Kill(s.server.TB())
	s.down = true
}

func (s *site) revive(anonymous bool) error {
	s.server.Start(s.server.TB())
	s.server.WaitReady(s.server.TB())
	s.down = false
	return s.open(anonymous)
}

// restart ends all servers and starts them on the same data, and returns the
// zxid of the first write after that.
func (t *Target) restart(kill bool) (base int64, err error) {
	tb := t.sites[0].server.TB()
	e := peer.Ensemble{}
	for _, s := range t.sites {
		s.close()
		e.Servers = append(e.Servers, s.server)
	}
	e.Restart(tb, kill)
	if err := t.open(); err != nil {
		return 0, err
	}
	if err := t.sortByRole(); err != nil {
		return 0, err
	}
	req := proto.SetDataRequest{Path: markDir, Version: -1}
	h, _, err := t.call(proto.OpSetData, req.Append(nil))
	if err == nil && h.Err != proto.ErrOK {
		err = fmt.Errorf("%w: setData %s: %v", errControl, markDir, h.Err)
	}
	if err == nil {
		_, err = t.settle()
	}
	return int64(h.Zxid), err
}
