package consensus

import (
	"time"

	"github.com/hashicorp/raft"
)

// network is the transport of an ensemble of several servers: the library's
// own, over the peer port, with a door for messages that this node hands to
// its own Raft.
type network struct {
	*raft.NetworkTransport
	rpcs chan raft.RPC
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
	return &network{NetworkTransport: t, rpcs: make(chan raft.RPC)}
}

// Consumer implements raft.Transport.
func (t *network) Consumer() <-chan raft.RPC { return t.rpcs }

// forward is a goroutine: what the network brings goes to Raft.
func (n *Node) forward(t *network) {
	defer n.workers.Done()
	for {
		select {
		case <-n.stop:
			return
		case rpc := <-t.NetworkTransport.Consumer():
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
