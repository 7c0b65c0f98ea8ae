package consensus

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
  - One server decides: the participant with the lowest number. It asks all the
    others, and founds the ensemble when every participant answers that it is
    empty too and has the same configured members and roles, and has promised
    the list of founders, with their incarnations (promise.go). It stores the
    list before it tells anybody. An observer's file keeps nobody from it: it
    founds nothing, and finds no participants of its own opinion.
  - Every other participant becomes a founder when it learns that list from a
    server that has it, by asking or by being called, and finds its own
    incarnation in it: it stores the list, then the first entry. It never
    acknowledged anything before.
  - Any other empty server waits until the leader adds it.

The first entry is made of the list alone, so it is the same on every founder. A
founder takes no message of Raft before it has that entry. Killed between the
list and the entry, it stores the entry at its next start, before Raft runs.

Refused: letting each server that has heard all the others decide for itself. A
server that is wiped while they ask is heard under two incarnations, and then
there are two lists.
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
			n.setWaiting("")
			return
		}
		reason, err := n.tryFound(id)
		switch {
		case errors.Is(err, errPromised):
			reason = err.Error() // meanwhile
		case errors.Is(err, ErrStopped):
			return
		case err != nil:
			n.fail(err)
			return
		}
		if reason != said && reason != "" {
			n.logger.Info("this server belongs to no ensemble yet", "waits_for", reason)
			said = reason
		}
		n.setWaiting(reason)
		select {
		case <-n.stop:
			return
		case <-n.probed: // one that waits for this server's decision has come up
		case <-time.After(probePause):
		}
	}
}

// tryFound asks the configured servers once. Reason says what is waited for.
func (n *Node) tryFound(id identity) (reason string, err error) {
	peers := newWanted(n.cfg.Peers).list() // what SetMembership says is for members
	answers := n.probeAll(peers, probeTimeout)
	bound, err := n.review()
	if err != nil {
		return "", err
	}
	for _, w := range answers {
		if w.Formed && isFounder(w.Founders, id.raftID()) && n.stable.identity().bound(w.ClusterID) == "" {
			return "", n.adopt(w.Founders)
		}
	}
	for _, w := range answers {
		if text := n.misfit(w.ID, w.levels); w.Formed && text != "" {
			return text, nil
		}
	}
	founders, reason := foundersOf(peers, id, answers)
	if reason != "" || decider(peers) != id.ServerID {
		if err := n.withdraw(); err != nil {
			return "", err
		}
	}
	switch {
	case bound != "" && mayPromise(n.stable.identity().Promised, founders) != "":
		return bound, nil
	case reason != "":
		return reason, nil
	case !slices.ContainsFunc(peers, func(p Peer) bool { return p.ID == id.ServerID && p.Voter }):
		return "the leader to add this observer", nil
	case decider(peers) != id.ServerID:
		return fmt.Sprintf("server %d to form the ensemble", decider(peers)), nil
	}
	if reason, err := n.collect(founders); err != nil || reason != "" {
		select {
		case <-n.probed: // by those that were asked; they are not to be asked again at once
		default:
		}
		return reason, err
	}
	if err := n.adopt(founders); err != nil {
		return "", err
	}
	// Nobody leads yet, and all the others are there: campaign without the
	// patience that a leader is owed.
	n.network.inject(&raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}})
	return "", nil
}

// decider is the number of the server that forms the ensemble: the lowest of
// the participants, -1 if there are none.
func decider(peers []Peer) int {
	lowest := -1
	for _, p := range peers {
		if p.Voter && (lowest < 0 || p.ID < lowest) {
			lowest = p.ID
		}
	}
	return lowest
}

// foundersOf is the list of founders as the answers give it, or what is missing.
func foundersOf(peers []Peer, id identity, answers map[int]welcome) (founders []member, reason string) {
	var missing []string
	for _, p := range peers {
		w, ok := answers[p.ID]
		if p.ID == id.ServerID {
			w, ok = welcome{ID: id.raftID(), Wanted: rolesHash(peers)}, true
			p.Address = ownAddress(p, answers)
		}
		switch {
		case !ok && p.Voter:
			missing = append(missing, fmt.Sprintf("server %d at %s", p.ID, p.Address))
		case ok && w.Formed:
			return nil, "the leader to add it: server " + w.ID + " belongs to an ensemble already"
		case ok && p.Voter && w.Wanted != rolesHash(peers):
			return nil, fmt.Sprintf("server %d to have the same server lines as this server", p.ID)
		case p.Voter:
			founders = append(founders, member{ID: w.ID, Address: p.Address, Voter: true})
		}
	}
	slices.SortFunc(founders, func(a, b member) int { return strings.Compare(a.ID, b.ID) })
	return founders, strings.Join(missing, " and ")
}

// ownAddress is the address of this server for the first entry: its own line's,
// unless that says only where to listen, as 0.0.0.0 does; then as one of the
// others reaches it.
func ownAddress(own Peer, answers map[int]welcome) string {
	if !isWildcard(own.Address) {
		return own.Address
	}
	for _, number := range slices.Sorted(maps.Keys(answers)) {
		for _, p := range answers[number].Peers {
			if p.ID == own.ID && !isWildcard(p.Address) {
				return p.Address
			}
		}
	}
	return own.Address
}

func isFounder(founders []member, id string) bool {
	return slices.ContainsFunc(founders, func(m member) bool { return m.ID == id })
}

// probeTimeout bounds one question to one server.
const probeTimeout = helloTimeout / 4

// probeAll asks all others of these servers at once who they are.
func (n *Node) probeAll(peers []Peer, timeout time.Duration) map[int]welcome {
	var mu sync.Mutex
	answers := map[int]welcome{}
	var wg sync.WaitGroup
	for _, p := range peers {
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

// noteProbe wakes a server that may be waiting for the one that asks.
func (n *Node) noteProbe() {
	select {
	case n.probed <- struct{}{}:
	default:
	}
}

// clusterOf is the name of the ensemble that these servers found.
func clusterOf(founders []member) (string, error) {
	text, err := json.Marshal(founders)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// adopt makes this server, if it is empty, one of the founders: it stores their
// list, then the first entry. Raft has had no message yet.
func (n *Node) adopt(founders []member) error {
	cluster, err := clusterOf(founders)
	if err != nil {
		return err
	}
	return n.belong(cluster, founders)
}

// joined notes that a member of a formed ensemble has called this server by
// its incarnation: it belongs to that ensemble from now on. It returns once
// Raft may hear the caller.
func (n *Node) joined(cluster string, founders []member) error {
	if n.stable.identity().Formed {
		// Whoever is still storing the first entry is waited for.
		n.forming.Lock()
		defer n.forming.Unlock()
		return nil
	}
	if isFounder(founders, n.stable.identity().raftID()) {
		return n.adopt(founders)
	}
	return n.belong(cluster, nil)
}

// belong makes an empty server a member for good; it does nothing on another.
func (n *Node) belong(cluster string, founders []member) error {
	n.forming.Lock()
	defer n.forming.Unlock()
	id := n.stable.identity()
	if id.Formed {
		return nil
	}
	if text := id.bound(cluster); text != "" {
		return fmt.Errorf("%w: it waits for %s", errPromised, text)
	}
	err := n.becomeMember(cluster, founders)
	if err != nil && !errors.Is(err, ErrStopped) {
		n.fail(err) // what is stored is enough for the next start
	}
	return err
}

func (n *Node) becomeMember(cluster string, founders []member) error {
	err := n.stable.update(func(i *identity) {
		i.Formed, i.ClusterID, i.Founders, i.Promised = true, cluster, founders, nil
	})
	if err != nil {
		return err
	}
	n.setWaiting("")
	n.mu.Lock()
	n.cluster = cluster
	n.mu.Unlock()
	if founders == nil {
		n.logger.Info("a member of the ensemble has called; this server joins", "cluster", cluster)
		return nil
	}
	n.logger.Info("the ensemble is formed", "cluster", cluster, "founders", fmt.Sprint(founders))
	if err := n.raft.BootstrapCluster(firstConfiguration(founders)).Error(); err != nil {
		return fmt.Errorf("form the ensemble: %w", translate(err))
	}
	return n.firstEntryStored()
}

// firstConfiguration is what the first entry holds.
func firstConfiguration(founders []member) (c raft.Configuration) {
	for _, m := range founders {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Address), Suffrage: raft.Voter})
	}
	return c
}

// firstEntryStored raises the floor to the first entry.
func (n *Node) firstEntryStored() error {
	return n.stable.update(func(i *identity) {
		if i.FloorIndex == 0 {
			i.FloorIndex, i.FloorTerm = 1, 1
		}
	})
}

// finishFounding makes up, before Raft runs, for what a founder was killed
// before: the term, the first entry, the floor. The library's own function
// refuses a directory where a term is stored.
func (n *Node) finishFounding() error {
	if len(n.id.Founders) == 0 || n.id.FloorIndex > 0 {
		return nil
	}
	last, err := n.log.LastIndex()
	if err != nil {
		return err
	}
	if _, newest := n.snapshots.bounds(); last == 0 && newest == 0 {
		term, err := n.stable.GetUint64(currentTermKey)
		if err != nil && !errors.Is(err, errKeyNotFound) {
			return err
		}
		if err := n.stable.SetUint64(currentTermKey, max(term, 1)); err != nil {
			return err
		}
		entry := raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(firstConfiguration(n.id.Founders))}
		if err := n.log.StoreLog(&entry); err != nil {
			return fmt.Errorf("store the first entry: %w", err)
		}
	}
	if first, err := n.log.FirstIndex(); err != nil || first > 1 {
		return err // it has had a snapshot, which raises the floor itself
	}
	err = n.firstEntryStored()
	n.id = n.stable.identity()
	return err
}
