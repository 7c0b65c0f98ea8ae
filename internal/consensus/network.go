package consensus

import (
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// network is the transport of an ensemble of several servers: the library's
// own, over the peer port, with a door for messages that this node hands to
// its own Raft.
type network struct {
	*raft.NetworkTransport
	rpcs      chan raft.RPC
	log       *logStore
	retention *retention
}

var (
	_ raft.Transport   = (*network)(nil)
	_ raft.WithPreVote = (*network)(nil)
)

// raftRPCTimeout bounds a message of Raft other than a snapshot.
const raftRPCTimeout = 5 * time.Second

func (n *Node) newNetwork() *network {
	t := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: addressBook{n},
		Logger:                newRaftLogger(n.logger, "transport"),
		Stream:                streamLayer{n.port},
		MaxPool:               3,
		MaxRPCsInFlight:       16,
		Timeout:               raftRPCTimeout,
	})
	return &network{NetworkTransport: t, rpcs: make(chan raft.RPC), log: n.log, retention: n.retention}
}

// Consumer implements raft.Transport.
func (t *network) Consumer() <-chan raft.RPC { return t.rpcs }

// AppendEntries implements raft.Transport. The commit index that it tells is not
// ahead of this server's own disk (beside.go).
func (t *network) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	args.LeaderCommitIndex = t.log.durable(args.LeaderCommitIndex)
	return t.NetworkTransport.AppendEntries(id, target, args, resp)
}

// AppendEntriesPipeline implements raft.Transport.
func (t *network) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err // the library compares it with ==
	}
	return pipeline{p, t.log}, nil
}

// pipeline is the library's, telling commits as network.AppendEntries does.
type pipeline struct {
	raft.AppendPipeline
	log *logStore
}

// AppendEntries implements raft.AppendPipeline.
func (p pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	args.LeaderCommitIndex = p.log.durable(args.LeaderCommitIndex)
	return p.AppendPipeline.AppendEntries(args, resp)
}

// InstallSnapshot implements raft.Transport. It returns when the receiver has loaded
// the snapshot.
func (t *network) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	began := t.retention.now()
	err := t.NetworkTransport.InstallSnapshot(id, target, args, resp, t.retention.begin(id, args.LastLogIndex, args.Size, data))
	if err == nil && resp.Success {
		t.retention.sent(t.retention.now().Sub(began))
	}
	return err
}

// RequestVote implements raft.Transport. A candidate stands on what its disk has: it
// may be a former leader.
func (t *network) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if err := t.log.awaitSync(t.log.newest()); err != nil {
		return err
	}
	return t.NetworkTransport.RequestVote(id, target, args, resp)
}

// settle returns once this server's log may answer for itself: what another
// server says or asks was sent before it came here, so it can rest on no entry
// that this server has made since. A sync that fails is no answer at all.
func (t *network) settle(command any) error {
	switch command.(type) {
	case *raft.AppendEntriesRequest, *raft.RequestVoteRequest, *raft.InstallSnapshotRequest:
		return t.log.awaitSync(t.log.newest())
	}
	return nil
}

// forward is a goroutine: what the network brings goes to Raft.
func (n *Node) forward(t *network) {
	defer n.workers.Done()
	for {
		select {
		case <-n.stop:
			return
		case rpc := <-t.NetworkTransport.Consumer():
			if err := t.settle(rpc.Command); err != nil {
				rpc.Respond(nil, err)
				continue
			}
			n.judgeByLog(rpc.Command, n.leaderSilence())
			select {
			case t.rpcs <- rpc:
			case <-n.stop:
				rpc.Respond(nil, ErrStopped)
				return
			}
		}
	}
}

// injectPatience is how long a commit note waits for Raft before it is left
// out; the next append says the same.
const injectPatience = 100 * time.Millisecond

// inject hands the own Raft a message. Its answer is of no interest.
func (t *network) inject(command any) {
	timer := time.NewTimer(injectPatience)
	defer timer.Stop()
	select {
	case t.rpcs <- raft.RPC{Command: command, RespChan: make(chan raft.RPCResponse, 1)}:
	case <-timer.C:
	}
}
