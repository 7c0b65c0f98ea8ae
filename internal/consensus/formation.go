package consensus

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

/*
Formation. A server that votes with an empty log under an old identity can lose
committed writes, and servers that form ensembles from different files fork the
log at its first entry unnoticed. So:

  - Each empty data directory draws a random incarnation, kept in the stable
    store. The Raft id is number-incarnation: a server whose disk was wiped is
    another server to Raft.
  - An empty server asks all configured servers. It founds the ensemble only
    when every configured participant answers that it is empty too and has the
    same configured membership; all founders then write the same first entry,
    which names their incarnations.
  - A founder that has not come that far joins when a member of the formed
    ensemble calls it by its incarnation: it never acknowledged anything.
  - Any other empty server waits until the leader adds it.
*/

// newIncarnation draws the incarnation of an empty server of an ensemble.
func newIncarnation(random func([]byte)) uint64 {
	var b [8]byte
	random(b[:])
	return binary.BigEndian.Uint64(b[:])>>1 | 1
}

// probePause is the pause between two rounds of asking.
const probePause = 100 * time.Millisecond

// found is a goroutine: it runs until this server belongs to an ensemble.
func (n *Node) found() {
	defer n.workers.Done()
	said := ""
	for {
		id := n.stable.identity()
		if id.Formed {
			return
		}
		reason, err := n.tryFound(id)
		if err != nil {
			n.fail(err)
			return
		}
		if reason != said && reason != "" {
			n.logger.Info("this server belongs to no ensemble yet", "waits_for", reason)
			said = reason
		}
		n.setWaiting(reason)
		if !n.disk.wait(probePause) {
			return
		}
	}
}

// tryFound asks the configured servers once. Reason says what is waited for.
func (n *Node) tryFound(id identity) (reason string, err error) {
	answers := n.probeAll(probeTimeout)
	founders := []member{}
	var missing []string
	for _, p := range n.cfg.Peers {
		w, ok := answers[p.ID]
		if p.ID == id.ServerID {
			w, ok = welcome{ID: id.raftID(), Wanted: n.cfg.wantedHash()}, true
		}
		switch {
		case !ok && p.Voter:
			missing = append(missing, fmt.Sprintf("server %d at %s", p.ID, p.Address))
		case ok && w.Formed:
			return "the leader to add it: server " + w.ID + " belongs to an ensemble already", nil
		case ok && w.Wanted != n.cfg.wantedHash():
			return fmt.Sprintf("server %d to have the same server lines as this server", p.ID), nil
		case p.Voter:
			founders = append(founders, member{ID: w.ID, Address: p.Address, Voter: true})
		}
	}
	if me, _ := n.cfg.peer(id.ServerID); !me.Voter {
		return "the leader to add this observer", nil
	}
	if len(missing) > 0 {
		return strings.Join(missing, " and "), nil
	}
	slices.SortFunc(founders, func(a, b member) int { return strings.Compare(a.ID, b.ID) })
	return "", n.bootstrap(founders)
}

// probeTimeout bounds one question to one server.
const probeTimeout = helloTimeout / 4

// probeAll asks all other configured servers at once who they are.
func (n *Node) probeAll(timeout time.Duration) map[int]welcome {
	var mu sync.Mutex
	answers := map[int]welcome{}
	var wg sync.WaitGroup
	for _, p := range n.cfg.Peers {
		if p.ID == n.cfg.ServerID {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			if w, ok := n.probe(p, timeout); ok {
				mu.Lock()
				defer mu.Unlock()
				answers[p.ID] = w
			}
		}()
	}
	wg.Wait()
	return answers
}

func (n *Node) probe(p Peer, timeout time.Duration) (welcome, bool) {
	conn, w, err := n.greet(kindProbe, fmt.Sprintf("%d-0", p.ID), p.Address, timeout)
	if err != nil {
		return w, false
	}
	_ = conn.Close()
	return w, true
}

// bootstrap writes the first entry. The founders are remembered first, so that
// a start after a crash between the two can write the same again.
func (n *Node) bootstrap(founders []member) error {
	text, err := json.Marshal(founders)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	formed := false
	if err := n.stable.update(func(i *identity) {
		if !i.Formed { // a member may have called meanwhile
			i.Formed, i.ClusterID, i.Founders = true, hex.EncodeToString(sum[:16]), founders
			formed = true
		}
	}); err != nil {
		return err
	}
	if !formed {
		return nil
	}
	n.logger.Info("the ensemble is formed", "cluster", hex.EncodeToString(sum[:16]), "founders", string(text))
	if err := n.writeFirst(founders); err != nil {
		return err
	}
	if n.cfg.PeerListener != nil {
		n.firstCampaign(founders)
	}
	return nil
}

// firstTurn is the distance of two founders' turns in firstCampaign: ten times
// what an election inside one process takes.
const firstTurn = 15 * time.Millisecond

// firstCampaign is for servers of one process. They have been started together
// and somebody waits, so a founder campaigns without the patience that a leader
// is owed: at the first start there is none. Founders that have found each other
// at the same moment take turns, or their votes would split; who has voted
// already leaves it to the others.
func (n *Node) firstCampaign(founders []member) {
	own := n.id.raftID()
	turn := len(founders) - 1 - slices.IndexFunc(founders, func(m member) bool { return m.ID == own })
	if !n.disk.wait(time.Duration(turn) * firstTurn) {
		return
	}
	_, leader := n.raft.LeaderWithID()
	if leader != "" || n.raft.State() != raft.Follower || n.raft.CurrentTerm() > 1 {
		return
	}
	n.network.inject(&raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}})
}

func (n *Node) writeFirst(founders []member) error {
	var c raft.Configuration
	for _, m := range founders {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Address), Suffrage: raft.Voter})
	}
	if err := n.raft.BootstrapCluster(c).Error(); err != nil && err != raft.ErrCantBootstrap {
		return fmt.Errorf("form the ensemble: %w", err)
	}
	if n.raft.LastIndex() == 0 {
		// Another founder was faster and has asked for a vote, so the library
		// takes no first entry any more. It comes from that founder; until then
		// there is no floor, or a start after a crash would be refused.
		return nil
	}
	return n.stable.update(func(i *identity) {
		if i.FloorIndex == 0 {
			i.FloorIndex, i.FloorTerm = 1, 1
		}
	})
}

// joined notes that a member of a formed ensemble has called this server by
// its incarnation: it belongs to that ensemble from now on.
func (n *Node) joined(cluster string) error {
	if n.stable.identity().Formed {
		return nil
	}
	n.logger.Info("a member of the ensemble has called; this server joins", "cluster", cluster)
	return n.stable.update(func(i *identity) {
		if !i.Formed {
			i.Formed, i.ClusterID = true, cluster
		}
	})
}

// refusals logs each refusal once in a while.
type refusals struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by text
}

// refusalPause is how long the same refusal is not logged again.
const refusalPause = 30 * time.Second

func (r *refusals) warn(logger *slog.Logger, remote, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.last[text]) < refusalPause {
		return
	}
	if r.last == nil || len(r.last) > 1000 {
		r.last = map[string]time.Time{}
	}
	r.last[text] = now
	logger.Warn("a connection on the peer port was refused", "remote", remote, "reason", text)
}
