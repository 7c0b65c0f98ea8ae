package consensus

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
)

// Peer is one server of the configured membership.
type Peer struct {
	// ID is the server's number, 0 to 255.
	ID int `json:"id"`
	// Address is host:port of its peer port, or several of these with bars
	// between. The hosts are resolved at each dial.
	Address string `json:"address"`
	// Voter is false for an observer.
	Voter bool `json:"voter"`
}

// member is a server of the ensemble with its incarnation.
type member struct {
	ID      string `json:"id"` // Raft id
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
}

// splitRaftID takes a Raft id, number-incarnation, apart; number is −1 if it
// is none.
func splitRaftID(id string) (number int, incarnation uint64) {
	a, b, _ := strings.Cut(id, "-")
	number, err := strconv.Atoi(a)
	if err != nil {
		return -1, 0
	}
	incarnation, err = strconv.ParseUint(b, 10, 64)
	if err != nil {
		return -1, 0
	}
	return number, incarnation
}

// wanted is the membership that the ensemble is to have.
type wanted struct {
	mu    sync.Mutex
	peers []Peer // guarded by mu; in order of number; replaced, never changed
}

func newWanted(peers []Peer) *wanted {
	w := &wanted{}
	w.set(peers)
	return w
}

func (w *wanted) set(peers []Peer) {
	peers = slices.Clone(peers)
	slices.SortFunc(peers, func(a, b Peer) int { return a.ID - b.ID })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peers = peers
}

// list must not be changed.
func (w *wanted) list() []Peer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peers
}

func (w *wanted) find(id int) (Peer, bool) {
	for _, p := range w.list() {
		if p.ID == id {
			return p, true
		}
	}
	return Peer{}, false
}

// rolesHash identifies the numbers and roles of a membership. Addresses are
// not in it: a server may listen on 0.0.0.0 by its own line, or be reached
// under different names.
func rolesHash(peers []Peer) string {
	h := sha256.New()
	for _, p := range peers {
		fmt.Fprintf(h, "%d %t\n", p.ID, p.Voter) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// isWildcard tells an address that says only where to listen, or one of several
// that does.
func isWildcard(address string) bool {
	return slices.ContainsFunc(addressesOf(address), func(one string) bool {
		host, _, err := net.SplitHostPort(one)
		if err != nil {
			return false
		}
		ip := net.ParseIP(host)
		return host == "" || ip != nil && ip.IsUnspecified()
	})
}

// peer finds a configured server.
func (c Config) peer(id int) (Peer, bool) {
	for _, p := range c.Peers {
		if p.ID == id {
			return p, true
		}
	}
	return Peer{}, false
}

// alone tells whether this server is an ensemble of itself.
func (c Config) alone() bool { return len(c.Peers) == 0 }

// knows tells whether a server is in the configured membership, or in Raft's.
func (n *Node) knows(id int) bool {
	if _, ok := n.wanted.find(id); ok {
		return true
	}
	for _, s := range n.raftServers() {
		if number, _ := splitRaftID(string(s.ID)); number == id {
			return true
		}
	}
	return false
}

// everybody is all servers that are wanted or in Raft's configuration.
func (n *Node) everybody() []Peer {
	all := slices.Clone(n.wanted.list())
	for _, s := range n.raftServers() {
		number, _ := splitRaftID(string(s.ID))
		if _, ok := n.wanted.find(number); !ok {
			all = append(all, Peer{ID: number, Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
		}
	}
	return all
}

// isMember tells whether a Raft id is in Raft's configuration.
func (n *Node) isMember(id string) bool {
	return slices.ContainsFunc(n.raftServers(), func(s raft.Server) bool { return string(s.ID) == id })
}

// raftServers is Raft's latest configuration, empty before Raft runs.
func (n *Node) raftServers() []raft.Server {
	select {
	case <-n.raftSet:
		return n.raft.GetConfiguration().Configuration().Servers
	default:
		return nil
	}
}

// addressOf is where a server is reached: as configured here, else as Raft
// knows it.
func (n *Node) addressOf(id string, known string) string {
	number, _ := splitRaftID(id)
	if p, ok := n.wanted.find(number); ok && !isWildcard(p.Address) {
		return p.Address
	}
	return known
}
