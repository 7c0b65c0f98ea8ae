package consensus

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

/*
A peer stream is one connection from a server to the leader. Up it carry
proposals, the server's own messages and how far it has applied; down it come
commits, the answer to "what is committed now", and the leader's messages.

	Propose ─► stream writer ⇒ leader's stream reader ─► batcher
	leader's fsm ─► commit notes ⇒ follower's stream reader ─► its own Raft

A proposal is sent once. If the stream breaks, the fate of what went over it is
unknown: the leader breaks the stream itself when it cannot order a proposal,
and the follower's server closes every connection with a write on its way.

Commit notes. The library tells a follower of a commit only with the next
append or after CommitTimeout. The leader therefore says (N, T) when it has
applied entry N of its own term T, and the follower hands its own Raft the
message that the leader might have sent: AppendEntries {Term T, prev (N, T),
commit N, no entries}. It is legal whenever the leader of term T has committed
N: T is the entry's term, never whatever term the sender is in now. A follower
that lacks N yet keeps the note until it has it.
*/

// Types of stream frames: a 4-byte length, the type, the payload.
const (
	framePropose = 'P' // token, command
	frameMessage = 'M' // payload of the server room
	frameApplied = 'A' // index
	frameQuery   = 'Q' // what is committed?
	frameReady   = 'R' // index: the answer
	frameCommit  = 'C' // index, term
	framePing    = 'p' // keeps the deadline away
	frameProcess = 'I' // the first one up: which process of that server this is
	frameAsk     = 'W' // instead of it: would this process be taken? Then the stream is closed
	frameTwin    = 'T' // text: another process runs with this server's data
)

// streamMaxBytes bounds one frame: the largest command and some.
const streamMaxBytes = maxEntryBytes + kib

// streamQueueBytes bounds what waits to be written to one stream: 64 MiB.
const streamQueueBytes = 64 * mib

// errStreamFull is the reason of a stream whose peer does not read.
var errStreamFull = errors.New("consensus: a peer stream's queue is full")

// stream is one end of a peer stream: a queue, a writer goroutine, and a
// reader that its owner runs.
type stream struct {
	conn net.Conn
	peer int // the server at the other end
	idle time.Duration
	in   *bufio.Reader // on conn, for who reads

	mu     sync.Mutex
	wake   sync.Cond // on mu
	out    []byte    // guarded by mu
	spoken bool      // guarded by mu; something was sent since the last ping was due
	closed bool      // guarded by mu
}

func newStream(conn net.Conn, peer int, idle time.Duration) *stream {
	s := &stream{conn: conn, peer: peer, idle: idle, in: bufio.NewReaderSize(conn, 64*kib)}
	s.wake.L = &s.mu
	return s
}

// send queues a frame. It never blocks.
func (s *stream) send(kind byte, parts ...[]byte) error {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	if len(s.out) > 0 && len(s.out)+n > streamQueueBytes {
		s.closeLocked()
		return errStreamFull
	}
	s.spoken = true
	s.out = append(binary.BigEndian.AppendUint32(s.out, uint32(n)), kind)
	for _, p := range parts {
		s.out = append(s.out, p...)
	}
	s.wake.Signal()
	return nil
}

// ping keeps the deadline of the other end away, if nothing else has since the
// last call.
func (s *stream) ping() {
	s.mu.Lock()
	spoken := s.spoken
	s.spoken = false
	s.mu.Unlock()
	if !spoken {
		_ = s.send(framePing)
	}
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
}

func (s *stream) closeLocked() {
	if !s.closed {
		s.closed = true
		_ = s.conn.Close()
		s.wake.Broadcast()
	}
}

// write is the writer goroutine. It ends when the stream is closed.
func (s *stream) write() {
	var buf []byte
	for {
		s.mu.Lock()
		for len(s.out) == 0 && !s.closed {
			s.wake.Wait()
		}
		if s.closed {
			s.mu.Unlock()
			return
		}
		buf, s.out = s.out, buf[:0]
		s.mu.Unlock()
		for rest := buf; len(rest) > 0; {
			n := min(len(rest), progressBytes)
			_ = s.conn.SetWriteDeadline(time.Now().Add(s.idle))
			if _, err := s.conn.Write(rest[:n]); err != nil {
				s.close()
				return
			}
			rest = rest[n:]
		}
		if cap(buf) > mib {
			buf = nil
		}
	}
}

// read hands each frame to handle until the stream ends. A stream on which nothing
// comes for longer than idle is broken, also in the middle of a frame.
func (s *stream) read(handle func(kind byte, payload []byte) error) error {
	defer s.close()
	for {
		_ = s.conn.SetReadDeadline(time.Now().Add(s.idle))
		var head [5]byte
		if _, err := io.ReadFull(s.in, head[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(head[:])) - 1
		if n < 0 || n > streamMaxBytes {
			return fmt.Errorf("consensus: a peer stream's frame claims %d bytes", n)
		}
		payload := make([]byte, n)
		if err := readParts(s.conn, s.in, payload, s.idle); err != nil {
			return err
		}
		if err := handle(head[4], payload); err != nil {
			return err
		}
	}
}

func u64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// numbers reads that many 8-byte integers.
func numbers(payload []byte, count int) ([]uint64, error) {
	if len(payload) < 8*count {
		return nil, errors.New("consensus: a peer stream's frame is short")
	}
	out := make([]uint64, count)
	for i := range out {
		out[i] = binary.BigEndian.Uint64(payload[8*i:])
	}
	return out, nil
}

// serveStream is the leader's end of a stream. A server that does not lead
// closes it: the other one has to look again.
func (n *Node) serveStream(conn net.Conn, h *hello) {
	from := h.From
	number, _ := splitRaftID(from)
	s := newStream(conn, number, n.cfg.StreamTimeout)
	if err := n.takeStream(s, h); err != nil {
		s.close()
		return
	}
	n.compareLines(number, h.Peers)
	n.followingMoved()
	n.logger.Info("a server follows this one", "server", from)
	defer func() {
		n.forgetLines(number)
		n.followers.remove(from, s)
		n.followingMoved()
		n.logger.Info("a server no longer follows this one", "server", from)
	}()
	go s.write()
	_ = s.read(func(kind byte, payload []byte) error {
		switch kind {
		case framePropose:
			if len(payload) < 8 {
				return errors.New("consensus: a proposal without token")
			}
			return n.batcher.propose(proposal{remote: s, command: payload[8:]})
		case frameMessage:
			n.events.Message(number, payload)
		case frameApplied:
			v, err := numbers(payload, 1)
			if err != nil {
				return err
			}
			n.followers.applied(from, v[0])
			n.retention.applied(raft.ServerID(from), v[0])
		case frameQuery:
			switch {
			case n.raft.State() != raft.Leader:
				return ErrNotLeader
			case !n.leading.Load():
				return nil // soon; the follower asks again
			}
			index := n.log.durable(n.raft.CommitIndex())
			n.noteCommit(s, index)
			return s.send(frameReady, u64(index))
		}
		return nil
	})
}

// followers are the streams of a leader.
type followers struct {
	mu   sync.Mutex
	open map[string]*follower // guarded by mu; by Raft id
}

type follower struct {
	stream   *stream
	supports int // the highest command level, as its hello said
	applied  uint64
	process  uint64    // which process of that server has the stream
	heard    time.Time // when it last said how far it has applied
}

// otherThan tells whether another process of that server has a stream and has
// given a sign of life of late.
func (f *followers) otherThan(id string, process uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.open[id]
	return old != nil && old.process != process && time.Since(old.heard) < twinPatience(old.stream.idle)
}

// add makes a stream the one of its server, and closes the one before.
func (f *followers) add(id string, s *stream, process uint64, supports int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.open[id]; old != nil {
		old.stream.close()
	}
	if f.open == nil {
		f.open = map[string]*follower{}
	}
	f.open[id] = &follower{stream: s, process: process, supports: supports, heard: time.Now()}
}

func (f *followers) remove(id string, s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.open[id]; old != nil && old.stream == s {
		delete(f.open, id)
	}
}

func (f *followers) applied(id string, index uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.open[id]; o != nil {
		o.applied, o.heard = index, time.Now()
	}
}

func (f *followers) appliedBy(id string) (uint64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.open[id]; o != nil {
		return o.applied, true
	}
	return 0, false
}

func (f *followers) streams() []*stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*stream, 0, len(f.open))
	for _, o := range f.open {
		out = append(out, o.stream)
	}
	return out
}

// closeAll breaks all streams: their servers look for the new leader.
func (f *followers) closeAll() {
	for _, s := range f.streams() {
		s.close()
	}
}

// tellCommit tells the followers that the leader has applied an entry of its
// own term. Raft's fsm goroutine calls it.
func (n *Node) tellCommit(index, term uint64) {
	if n.cfg.alone() || n.raftState() != raft.Leader || n.raft.CurrentTerm() != term {
		return
	}
	note := append(u64(index), u64(term)...)
	for _, s := range n.followers.streams() {
		_ = s.send(frameCommit, note) // a broken stream is noticed by its reader
	}
}

// noteCommit tells one follower of a commit that nobody may have told it of: its
// stream may be younger than the entry, and what Raft writes for itself when a
// leader begins has no note. Without it the follower would wait for CommitTimeout.
func (n *Node) noteCommit(s *stream, index uint64) {
	var l raft.Log
	if index == 0 || n.log.GetLog(index, &l) != nil {
		return // it is behind a snapshot; the follower learns of it by Raft's own ways
	}
	if n.raft.State() == raft.Leader && n.raft.CurrentTerm() == l.Term {
		_ = s.send(frameCommit, append(u64(index), u64(l.Term)...))
	}
}

func (n *Node) raftState() raft.RaftState {
	select {
	case <-n.raftSet:
		return n.raft.State()
	default:
		return raft.Follower
	}
}
