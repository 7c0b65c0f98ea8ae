package consensus

import (
	"errors"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// errNoPeers is what a server without peers answers to Raft's calls.
var errNoPeers = errors.New("consensus: this server has no peers")

// loneTransport is the transport of an ensemble of one. It reaches nobody, and
// serves one purpose: to tell its own Raft to campaign at once.
//
// A lone voter would otherwise wait one to two heartbeat timeouts for a leader
// that cannot exist. TimeoutNow is the message by which a leader asks a server
// to campaign without that wait, and as no other voter exists nobody's
// leadership is disturbed. Lowering HeartbeatTimeout instead is refused: the
// lease would have to be as low, for the whole life of the process.
type loneTransport struct {
	address raft.ServerAddress
	rpcs    chan raft.RPC
}

var (
	_ raft.Transport   = (*loneTransport)(nil)
	_ raft.WithPreVote = (*loneTransport)(nil)
)

func newLoneTransport(address raft.ServerAddress) *loneTransport {
	return &loneTransport{address: address, rpcs: make(chan raft.RPC, 1)}
}

// campaign makes the own Raft start an election now. It does not wait.
func (t *loneTransport) campaign() {
	rpc := raft.RPC{
		Command:  &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}},
		RespChan: make(chan raft.RPCResponse, 1),
	}
	select {
	case t.rpcs <- rpc:
	default:
	}
}

// Consumer implements raft.Transport.
func (t *loneTransport) Consumer() <-chan raft.RPC { return t.rpcs }

// LocalAddr implements raft.Transport.
func (t *loneTransport) LocalAddr() raft.ServerAddress { return t.address }

// AppendEntriesPipeline implements raft.Transport.
func (t *loneTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, errNoPeers
}

// AppendEntries implements raft.Transport.
func (t *loneTransport) AppendEntries(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error {
	return errNoPeers
}

// RequestVote implements raft.Transport.
func (t *loneTransport) RequestVote(raft.ServerID, raft.ServerAddress, *raft.RequestVoteRequest, *raft.RequestVoteResponse) error {
	return errNoPeers
}

// RequestPreVote implements raft.WithPreVote.
func (t *loneTransport) RequestPreVote(raft.ServerID, raft.ServerAddress, *raft.RequestPreVoteRequest, *raft.RequestPreVoteResponse) error {
	return errNoPeers
}

// InstallSnapshot implements raft.Transport.
func (t *loneTransport) InstallSnapshot(raft.ServerID, raft.ServerAddress, *raft.InstallSnapshotRequest, *raft.InstallSnapshotResponse, io.Reader) error {
	return errNoPeers
}

// EncodePeer implements raft.Transport.
func (t *loneTransport) EncodePeer(_ raft.ServerID, address raft.ServerAddress) []byte {
	return []byte(address)
}

// DecodePeer implements raft.Transport.
func (t *loneTransport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport.
func (t *loneTransport) SetHeartbeatHandler(func(raft.RPC)) {}

// TimeoutNow implements raft.Transport.
func (t *loneTransport) TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error {
	return errNoPeers
}

// raftConfig is the library's configuration for this node.
func (c Config) raftConfig(id raft.ServerID) *raft.Config {
	t := c.timeouts()
	rc := raft.DefaultConfig()
	rc.LocalID = id
	rc.HeartbeatTimeout = t.heartbeat
	rc.ElectionTimeout = t.election
	rc.LeaderLeaseTimeout = t.lease
	rc.CommitTimeout = t.commit
	rc.BatchApplyCh = true
	rc.MaxAppendEntries = 64
	// Snapshots are taken by our own count of commands and bytes: the library
	// counts entries, which hold any number of commands.
	rc.SnapshotThreshold = 1 << 62
	rc.SnapshotInterval = 24 * time.Hour
	// At least one entry stays, so that a removal which reaches the end of the
	// log can only be a conflict or an installed snapshot; see logStore.DeleteRange.
	rc.TrailingLogs = 1
	rc.ShutdownOnRemove = false
	rc.NoLegacyTelemetry = true
	return rc
}
