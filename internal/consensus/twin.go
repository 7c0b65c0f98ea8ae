package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"
)

/*
Twins. Somebody copies a member's data directory to another machine, starts the
copy and forgets to stop the original. To Raft both are the same server, and one
vote could count twice. So each process draws a number and says it first on its
stream, and the leader keeps to the process whose stream is alive. The other one
takes no clients, says why, and ends when it has been told so for long enough
that nothing else can be meant.

A process that the leader does not call, as it calls the other one, asks the
leader. Without a leader nobody can tell: Raft's messages do not name processes,
and a server that has just been started again must be able to vote at once.
*/

// twinPatience is how long after the last sign of life a process is taken for
// alive. A follower gives one in each sixth of the idle time.
func twinPatience(idle time.Duration) time.Duration { return idle / 2 }

// newProcess draws the number of this process.
func newProcess() uint64 { return rand.Uint64() | 1 }

// readProcess reads the first frame of a stream. It tells whether the other end
// only asks whether it would be taken. Versions before this frame begin with
// another one: theirs is process 0, and the frame is left to be read.
func (s *stream) readProcess() (process uint64, asks bool, err error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.idle))
	head, err := s.in.Peek(5)
	if err != nil {
		return 0, false, err
	}
	if binary.BigEndian.Uint32(head) != 9 || head[4] != frameProcess && head[4] != frameAsk {
		return 0, false, nil
	}
	var frame [13]byte
	if _, err := io.ReadFull(s.in, frame[:]); err != nil {
		return 0, false, err
	}
	return binary.BigEndian.Uint64(frame[5:]), frame[4] == frameAsk, nil
}

// takeStream reads whose stream this is and makes it that follower's. An error
// says that it must be closed.
func (n *Node) takeStream(s *stream, h *hello) error {
	from := h.From
	process, asks, err := s.readProcess()
	switch {
	case err != nil:
		return err
	case n.raft.State() != raft.Leader:
		return ErrNotLeader
	case n.followers.otherThan(from, process):
		return n.refuseTwin(s, from)
	case asks:
		return errors.New("consensus: it only asked")
	}
	n.followers.add(from, s, process, max(h.Supports, 1))
	return nil
}

// refuseTwin tells the other end of a stream why it is closed.
func (n *Node) refuseTwin(s *stream, from string) error {
	text := fmt.Sprintf("another process runs as server %s, with a copy of the same data, and follows already: stop one of the two and empty its directory", from)
	n.refusals.warn(n.logger, s.conn.RemoteAddr().String(), text)
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(1+len(text))), frameTwin)
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.idle))
	if _, err := s.conn.Write(append(frame, text...)); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrRefused, text)
}

// askForTwin asks the leader that others have whether another process follows
// it as this server.
func (n *Node) askForTwin(leader string) {
	known := ""
	for _, s := range n.raftServers() {
		if string(s.ID) == leader {
			known = string(s.Address)
		}
	}
	conn, _, err := n.greet(kindStream, leader, n.addressOf(leader, known), helloTimeout)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	if _, err := conn.Write(append([]byte{0, 0, 0, 9, frameAsk}, u64(n.process)...)); err != nil {
		return
	}
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			n.noTwin()
		}
		return
	}
	text := make([]byte, min(binary.BigEndian.Uint32(head[:])-1, helloMaxBytes))
	if _, err := io.ReadFull(conn, text); err == nil && head[4] == frameTwin {
		n.isTwin(string(text))
	}
}

// isTwin notes that the leader has refused this process. It ends the node when
// that has lasted: a process that was killed gives no sign of life.
func (n *Node) isTwin(reason string) {
	n.mu.Lock()
	first := n.twin == ""
	if first {
		n.twinSince = time.Now()
	}
	n.twin = reason
	lasted := time.Since(n.twinSince)
	n.mu.Unlock()
	if first {
		n.logger.Error("the leader refuses this server", "reason", reason)
	}
	if lasted > 2*n.cfg.StreamTimeout {
		n.fail(fmt.Errorf("%w: %s", ErrIdentityMismatch, reason))
	}
}

// noTwin notes that the leader has taken this process, or would.
func (n *Node) noTwin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.twin = ""
}

// refusedAsTwin tells whether the leader's last word was isTwin's.
func (n *Node) refusedAsTwin() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.twin != ""
}
