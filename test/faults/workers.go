package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// notes are what the clients know.
type notes struct {
	registers map[string][]porcupine.Operation
	// acknowledged are the pipelined creates that were answered: chain → number → zxid.
	acknowledged map[string]map[int]proto.Zxid
	// refused are those that were answered with a full disk's error: they had no
	// effect, as their client knows.
	refused map[string]map[int]bool
	// sequential are the names that creates of sequential nodes were answered with.
	sequential map[string]proto.Zxid
	// ephemerals are, by session, the nodes whose create was answered, without
	// those whose delete was sent.
	ephemerals map[proto.SessionID]map[string]bool
	ended      map[proto.SessionID]bool // the sessions that are known to be over
	passwords  map[proto.SessionID][]byte
	counts     map[string]int
}

func newNotes() notes {
	return notes{
		registers: map[string][]porcupine.Operation{}, acknowledged: map[string]map[int]proto.Zxid{}, refused: map[string]map[int]bool{},
		sequential: map[string]proto.Zxid{}, ephemerals: map[proto.SessionID]map[string]bool{},
		ended: map[proto.SessionID]bool{}, passwords: map[proto.SessionID][]byte{}, counts: map[string]int{},
	}
}

func (n *notes) count(what string) { n.counts[what]++ }

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.count(what)
}

// counted is how often something was counted.
func (w *world) counted(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notes.counts[what]
}

// pipelineWindow is how many writes of one connection are on their way.
const pipelineWindow = 16

// useChains is a worker: it creates numbered nodes without waiting for the
// answers, a new chain with each connection.
func useChains(s *session) {
	for !s.world.stopped() {
		c := s.connected()
		if c == nil {
			return
		}
		s.runChain(c, fmt.Sprintf("%d-%d", s.number, s.conns), 100+s.rng.IntN(400))
		s.drop()
	}
}

// runChain writes one chain until the connection or the run ends.
func (s *session) runChain(c *client.Conn, chain string, length int) {
	w := s.world
	done := make(chan *client.Call, pipelineWindow)
	sent, open := 0, 0
	for sent < length || open > 0 {
		for sent < length && open < pipelineWindow {
			c.Go(&client.Call{Op: proto.OpCreate, Done: done, Tag: sent,
				Body: createBody(fmt.Sprintf("/o/%s-%d", chain, sent), nil, proto.CreatePersistent)})
			sent++
			open++
		}
		select {
		case call := <-done:
			open--
			if call.Err != nil {
				w.count("chains broken off")
				return // the connection has ended, and with it all of the chain
			}
			s.seen = max(s.seen, call.Header.Zxid)
			w.noteChain(chain, call)
		case <-time.After(callTimeout):
			return
		}
		if w.stopped() {
			length = sent
		}
		if sent%pipelineWindow == 0 && !w.rest(5*time.Millisecond) {
			length = sent
		}
	}
}

func (w *world) noteChain(chain string, call *client.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch call.Header.Err {
	case proto.ErrOK:
		if w.notes.acknowledged[chain] == nil {
			w.notes.acknowledged[chain] = map[int]proto.Zxid{}
		}
		w.notes.acknowledged[chain][call.Tag] = call.Header.Zxid
		w.notes.count("pipelined creates acknowledged")
	case proto.ErrSessionExpired:
	case proto.ErrSystemError:
		if w.notes.refused[chain] == nil {
			w.notes.refused[chain] = map[int]bool{}
		}
		w.notes.refused[chain][call.Tag] = true
		w.notes.count("pipelined creates refused")
	default:
		w.problems = append(w.problems, fmt.Sprintf("chain %s: create %d was answered with %v", chain, call.Tag, call.Header.Err))
	}
}

// useEphemerals is a worker: ephemerals that come and go, and sequential nodes.
func useEphemerals(s *session) {
	w := s.world
	s.over = map[proto.SessionID]bool{}
	s.ended = func(id proto.SessionID) {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.over[id] = true
		w.notes.ended[id] = true
		w.notes.count("sessions expired")
	}
	for n := 0; ; n++ {
		c := s.connected()
		if c == nil {
			return
		}
		if !s.checkEnded() {
			continue
		}
		path := fmt.Sprintf("/e/%016x-%d", uint64(s.id), n)
		id := s.id
		if _, err := s.do(proto.OpCreate, createBody(path, nil, proto.CreateEphemeral)); err == nil {
			w.noteEphemeral(id, path)
			if s.rng.IntN(3) > 0 {
				w.forgetEphemeral(id, path)
				_, _ = s.do(proto.OpDelete, deleteBody(path, -1)) // gone, or not: both are right
			}
		}
		call, err := s.do(proto.OpCreate, createBody("/s/x-", nil, proto.CreatePersistentSequential))
		if err == nil {
			w.noteSequential(proto.NewDecoder(call.Reply).String(), call.Header.Zxid)
		}
		if s.rng.IntN(200) == 0 {
			s.drop() // moves to another server now and then
		}
		if !w.rest(time.Duration(s.rng.IntN(20)) * time.Millisecond) {
			return
		}
	}
}

func (w *world) noteSequential(name string, zxid proto.Zxid) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, twice := w.notes.sequential[name]; twice {
		w.problems = append(w.problems, name+" was given twice")
	}
	w.notes.sequential[name] = zxid
	w.notes.count("sequential creates acknowledged")
}

func (w *world) noteEphemeral(id proto.SessionID, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notes.ephemerals[id] == nil {
		w.notes.ephemerals[id] = map[string]bool{}
	}
	w.notes.ephemerals[id][path] = true
	w.notes.count("ephemerals acknowledged")
}

func (w *world) forgetEphemeral(id proto.SessionID, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.notes.ephemerals[id], path)
}

// checkEnded looks whether the ephemerals of this client's former sessions are
// gone: it was told that they are over, and is never shown anything older. It
// returns false if it could not look.
func (s *session) checkEnded() bool {
	w := s.world
	call, err := s.do(proto.OpGetChildren, readBody("/e", false))
	if err != nil {
		return false
	}
	for _, name := range proto.NewDecoder(call.Reply).Strings() {
		var owner uint64
		if _, err := fmt.Sscanf(name, "%16x-", &owner); err == nil && s.over[proto.SessionID(owner)] {
			w.wrong("server %d shows %s although it has said that its session is over", s.server, name)
		}
	}
	return true
}

// useMultis is a worker: pairs of nodes that only ever change together.
func useMultis(s *session) {
	w := s.world
	for n := 0; ; n++ {
		if s.connected() == nil {
			return
		}
		value := []byte(fmt.Sprintf("%d.%d", s.number, n))
		switch s.rng.IntN(3) {
		case 0:
			_, err := s.do(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{setOp("/m/a", value), setOp("/m/b", value)}))
			if err == nil {
				w.count("multis acknowledged")
			}
		case 1:
			bad := append([]byte("bad "), value...)
			_, _ = s.do(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{setOp("/m/a", bad), {Type: proto.OpDelete,
				Version: proto.PathVersion{Path: "/m/none", Version: -1}}}))
		default:
			s.readPair()
		}
		if !w.rest(time.Duration(s.rng.IntN(15)) * time.Millisecond) {
			return
		}
	}
}

func setOp(path string, data []byte) proto.MultiOp {
	return proto.MultiOp{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: path, Data: data, Version: -1}}
}

// readPair reads both nodes in one request.
func (s *session) readPair() {
	call, err := s.do(proto.OpMultiRead, proto.AppendMulti(nil, []proto.MultiOp{
		{Type: proto.OpGetData, Read: proto.PathWatch{Path: "/m/a"}}, {Type: proto.OpGetData, Read: proto.PathWatch{Path: "/m/b"}}}))
	if err != nil {
		return
	}
	d := proto.NewDecoder(call.Reply)
	d.MultiHeader()
	a, _ := string(d.Buffer()), d.Stat()
	d.MultiHeader()
	b := string(d.Buffer())
	if a != b || strings.HasPrefix(a, "bad") {
		s.world.wrong("server %d shows half of a multi: /m/a is %q, /m/b is %q", s.server, a, b)
	}
	s.world.count("pairs read")
}
