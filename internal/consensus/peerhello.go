package consensus

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

/*
Every connection on the peer port begins with a hello and a welcome. Nothing of
Raft is read before: the library never asks whether a sender is a member, and a
stranger with a higher term would become leader and have the log truncated.
*/

// Kinds of peer connections.
const (
	kindRaft   = "raft"   // Raft's own messages
	kindStream = "stream" // proposals and reports to the leader, commits from it
	kindProbe  = "probe"  // asks who is there, and nothing more
)

// helloVersion is the version of the peer protocol.
const helloVersion = 1

// helloMaxBytes bounds a hello and a welcome.
const helloMaxBytes = 64 << 10

// hello is the first message of a peer connection.
type hello struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	// ClusterID is the sender's, empty before it belongs to one.
	ClusterID string `json:"cluster"`
	// From and To are Raft ids, number-incarnation. To has incarnation 0 where
	// the sender does not know it yet (probe).
	From string `json:"from"`
	To   string `json:"to"`
	// Founders are those of the sender's ensemble, for the raft kind: the one
	// that is called may be one of them and not know it yet.
	Founders []member `json:"founders,omitempty"`
	// Peers are the sender's server lines, for the kinds raft and stream.
	Peers []Peer `json:"peers,omitempty"`
	levels
}

// welcome answers a hello.
type welcome struct {
	// Refused says why the connection is closed; empty when it goes on.
	Refused   string `json:"refused,omitempty"`
	ClusterID string `json:"cluster"`
	// ID is the Raft id of who answers.
	ID string `json:"id"`
	// Peers are the server lines of who answers; Wanted is the hash of their
	// numbers and roles.
	Peers  []Peer `json:"peers"`
	Wanted string `json:"wanted"`
	// Leader is the leader that who answers has a stream to, or is itself.
	Leader string `json:"leader,omitempty"`
	// Member tells that who asks is in the configuration that who answers has.
	Member bool `json:"member,omitempty"`
	// Formed tells that who answers belongs to an ensemble; Founders are then
	// the members that the ensemble was formed of, before that what it has
	// promised.
	Formed   bool     `json:"formed"`
	Founders []member `json:"founders,omitempty"`
	// Superseded are the ensembles that who answers has recovered from.
	Superseded []string `json:"superseded,omitempty"`
	levels
}

// ErrRefused is returned when a peer refuses a connection; the text says why.
var ErrRefused = errors.New("consensus: a peer refused the connection")

// writeMessage sends one length-prefixed JSON value.
func writeMessage(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// readMessage reads what writeMessage sent.
func readMessage(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > helloMaxBytes {
		return fmt.Errorf("consensus: a peer's first message claims %d bytes, at most %d are taken", n, helloMaxBytes)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

// greetAt dials a peer at one address, by name, which is resolved now, and
// exchanges hello and welcome within the timeout.
func (n *Node) greetAt(kind, to, address string, timeout time.Duration) (net.Conn, welcome, error) {
	var w welcome
	number, _ := splitRaftID(to)
	conn, err := n.cfg.PeerDial(Peer{ID: number, Address: address}, timeout)
	if err != nil {
		return nil, w, err
	}
	id := n.stable.identity()
	_ = conn.SetDeadline(time.Now().Add(timeout)) // fails only on a closed socket
	h := hello{Version: helloVersion, Kind: kind, ClusterID: id.ClusterID, From: id.raftID(), To: to, levels: n.levels()}
	switch kind {
	case kindRaft:
		// A server that has moved hears no leader, and asks for votes: so the
		// leader learns where it is.
		h.Founders, h.Peers = id.Founders, n.cfg.Peers
	case kindConfirm:
		h.Founders = id.Promised
	case kindStream:
		h.Peers = n.cfg.Peers
	}
	err = writeMessage(conn, h)
	if err == nil {
		err = readMessage(conn, &w)
	}
	if err == nil && id.Formed && slices.Contains(w.Superseded, id.ClusterID) {
		// Only what a member answers at its own address counts, not what anybody
		// says who calls.
		n.fail(fmt.Errorf("%w: %s at %s goes on alone as ensemble %s", ErrSuperseded, w.ID, address, w.ClusterID))
	}
	if err == nil && kind != kindProbe && w.ClusterID == id.ClusterID {
		w.Refused = cmp.Or(n.misfit(w.ID, w.levels), w.Refused)
	}
	if err == nil && w.Refused != "" {
		err = fmt.Errorf("%w: %s: %s", ErrRefused, address, w.Refused)
	}
	if err != nil {
		_ = conn.Close()
		return nil, w, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, w, nil
}

// answer reads a hello and decides. It returns the welcome to send, whose
// Refused is set if the connection must not go on.
func (n *Node) answer(h hello) welcome {
	id := n.stable.identity()
	peers := newWanted(n.cfg.Peers).list()
	w := welcome{
		ClusterID: id.ClusterID, ID: id.raftID(), Peers: peers, Wanted: rolesHash(peers),
		Formed: id.Formed, Founders: id.Founders, Leader: n.attached(), Superseded: id.Superseded,
		Member: n.isMember(h.From), levels: n.levels(),
	}
	if !id.Formed {
		w.Founders = id.Promised
	}
	number, _ := splitRaftID(h.To)
	from, _ := splitRaftID(h.From)
	switch {
	case n.port.isMuted():
		w.Refused = "this server's disk does not answer"
	case h.Version != helloVersion:
		w.Refused = fmt.Sprintf("this server speaks version %d of the peer protocol, not %d", helloVersion, h.Version)
	case number != id.ServerID:
		w.Refused = fmt.Sprintf("this is server %d, not server %s", id.ServerID, h.To)
	case h.Kind == kindProbe:
		if !id.Formed && decider(peers) == id.ServerID {
			n.noteProbe()
		}
	case from == id.ServerID:
		w.Refused = fmt.Sprintf("another server calls itself %d too", from)
	case id.Formed && h.ClusterID != id.ClusterID:
		w.Refused = fmt.Sprintf("this server belongs to ensemble %s, not %q", id.ClusterID, h.ClusterID)
	case h.To != id.raftID():
		w.Refused = fmt.Sprintf("server %d was replaced: it is %s now, not %s", id.ServerID, id.raftID(), h.To)
	case h.Kind == kindConfirm:
		w.Refused = n.confirm(h.From, h.Founders)
	case h.Kind != kindRaft && h.Kind != kindStream:
		w.Refused = fmt.Sprintf("unknown kind %q", h.Kind)
	case !id.Formed && h.ClusterID == "":
		w.Refused = "this server belongs to no ensemble yet"
	case h.Kind == kindStream && !n.knows(from):
		// Not of Raft's own connections: a member that was down while all others
		// were replaced knows none of those that call it, and Raft grants no vote
		// to a server outside its configuration.
		w.Refused = fmt.Sprintf("server %d is in no configuration of this server", from)
	default:
		w.Refused = n.misfit(h.From, h.levels)
	}
	return w
}
