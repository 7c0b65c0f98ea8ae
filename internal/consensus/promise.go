package consensus

import (
	"fmt"
	"slices"
	"strings"
)

/*
Promises. The decider found the others empty and of one mind, but that was a
moment ago: files may be edited and servers started anew while it writes the
list. So before it does, every founder promises that list, and keeps the promise
on its disk:

  - A founder that has promised list P becomes a member of P's ensemble and of no
    other: it neither founds, nor promises, nor follows a call, for another.
  - The decider itself promises first, and writes the list only after every
    founder has promised it in the same round.
  - The decider withdraws by promising another list or none, which it may do for
    as long as it has not written P. A promise is therefore checked with the
    decider: before it is made, so that a question that was long on its way binds
    nobody, and afterwards, so that a founder is released when P is withdrawn.
  - A list that names all of P's servers may take P's place without its decider:
    it counts only once all of them have promised it, and one that already
    belongs to P's ensemble refuses. That is the way out when the decider was
    wiped.

So each server, by its incarnation, counts for one ensemble at most, and two
ensembles that both have a majority have no server in common, nor had when they
were formed. What it costs: if the decider is gone for good between the promise
and the list, and the new files leave it out, the others wait, say so, and are
to be emptied by hand. They hold nothing.
*/

// kindConfirm asks for a promise; the hello's founders are the list.
const kindConfirm = "confirm"

// decided is the decider among a list of founders.
func decided(founders []member) (m member) {
	lowest := -1
	for _, f := range founders {
		if number, _ := splitRaftID(f.ID); lowest < 0 || number < lowest {
			lowest, m = number, f
		}
	}
	return m
}

// sameList tells whether two lists of founders make the same ensemble.
func sameList(a, b []member) bool { return slices.Equal(a, b) }

// numbersOf are the numbers of founders, sorted.
func numbersOf(founders []member) (numbers []int) {
	for _, f := range founders {
		number, _ := splitRaftID(f.ID)
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

// mayPromise says why a server that has promised one list may not promise
// another one; empty if it may.
func mayPromise(promised, list []member) string {
	if len(promised) == 0 || decided(promised).ID == decided(list).ID {
		return ""
	}
	asked := numbersOf(list)
	for _, number := range numbersOf(promised) {
		if !slices.Contains(asked, number) {
			return promiseText(promised)
		}
	}
	return ""
}

// promiseText says what a promise binds to, and the way out.
func promiseText(promised []member) string {
	d := decided(promised)
	numbers := strings.Trim(fmt.Sprint(numbersOf(promised)), "[]")
	return fmt.Sprintf("server %s at %s, with which it has agreed to form the ensemble of servers %s: start that one with the same server lines, or, if it is gone for good, empty the directory of each server that says this (they hold nothing yet)",
		d.ID, d.Address, numbers)
}

// promise stores a promise. Forming must be held.
func (n *Node) promise(list []member) error {
	if sameList(n.stable.identity().Promised, list) {
		return nil
	}
	return n.stable.update(func(i *identity) { i.Promised = list })
}

// bound says why this server cannot belong to an ensemble; empty if it can.
func (i identity) bound(cluster string) string {
	if i.Formed || len(i.Promised) == 0 {
		return ""
	}
	if own, err := clusterOf(i.Promised); err == nil && own == cluster {
		return ""
	}
	return promiseText(i.Promised)
}

// confirm answers a decider that asks for a promise; the text says why it is
// not given.
func (n *Node) confirm(from string, list []member) string {
	n.forming.Lock()
	defer n.forming.Unlock()
	id := n.stable.identity()
	peers := newWanted(n.cfg.Peers).list()
	switch {
	case id.Formed:
		return fmt.Sprintf("this server belongs to ensemble %s", id.ClusterID)
	case !isFounder(list, id.raftID()) || decided(list).ID != from:
		return "a list of founders that is not the sender's to decide, or lacks this server"
	case !slices.Equal(numbersOf(list), votersOf(peers)):
		return fmt.Sprintf("server %d has not the same server lines", id.ServerID)
	}
	if text := mayPromise(id.Promised, list); text != "" {
		return fmt.Sprintf("server %d waits for %s", id.ServerID, text)
	}
	if holds, known := n.holds(list); !known || !holds {
		return fmt.Sprintf("server %s does not say that it wants this list", from)
	}
	if err := n.promise(list); err != nil {
		return err.Error()
	}
	return ""
}

// votersOf are the numbers of the participants among server lines, sorted.
func votersOf(peers []Peer) (numbers []int) {
	for _, p := range peers {
		if p.Voter {
			numbers = append(numbers, p.ID)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// holds asks the decider of a list whether it still wants it, or has written it.
// Known is false if that server does not answer, or is another one by now.
func (n *Node) holds(list []member) (holds, known bool) {
	d := decided(list)
	number, _ := splitRaftID(d.ID)
	at := Peer{ID: number, Address: d.Address}
	if own, ok := n.cfg.peer(number); ok && !isWildcard(own.Address) {
		at = own
	}
	w, ok := n.probe(at, probeTimeout)
	if !ok || w.ID != d.ID {
		return false, false
	}
	return sameList(w.Founders, list), true
}

// review looks at the promise that this server has given to another: it is
// released if that one has withdrawn. It returns what is waited for if that one
// does not answer.
func (n *Node) review() (waits string, err error) {
	given := n.stable.identity()
	if given.Formed || len(given.Promised) == 0 || decided(given.Promised).ID == given.raftID() {
		return "", nil
	}
	n.forming.Lock()
	defer n.forming.Unlock()
	given = n.stable.identity() // under the lock no promise is made meanwhile
	if given.Formed || len(given.Promised) == 0 {
		return "", nil
	}
	holds, known := n.holds(given.Promised)
	switch {
	case !known:
		return promiseText(given.Promised), nil
	case holds:
		return "", nil
	}
	return "", n.promise(nil)
}

// withdraw takes back what this server, as decider, has asked of others.
func (n *Node) withdraw() error {
	n.forming.Lock()
	defer n.forming.Unlock()
	id := n.stable.identity()
	if id.Formed || len(id.Promised) == 0 || decided(id.Promised).ID != id.raftID() {
		return nil
	}
	return n.promise(nil)
}

// collect promises a list itself, and asks all other founders for their promise.
// Reason says who has not given it.
func (n *Node) collect(list []member) (reason string, err error) {
	n.forming.Lock()
	id := n.stable.identity()
	if id.Formed || len(list) == 1 && len(id.Promised) == 0 { // nobody else to ask
		n.forming.Unlock()
		return "", nil
	}
	if text := mayPromise(id.Promised, list); text != "" {
		n.forming.Unlock()
		return text, nil
	}
	err = n.promise(list)
	n.forming.Unlock()
	if err != nil {
		return "", err
	}
	refusals := make(chan string, len(list))
	asked := 0
	for _, m := range list {
		if m.ID == id.raftID() {
			continue
		}
		asked++
		go func() { refusals <- n.askForPromise(m) }()
	}
	for range asked {
		if text := <-refusals; text != "" && reason == "" {
			reason = text
		}
	}
	return reason, nil
}

// askForPromise asks one founder; the text says why the promise is not given.
func (n *Node) askForPromise(m member) string {
	conn, _, err := n.greet(kindConfirm, m.ID, m.Address, helloTimeout)
	if err != nil {
		return fmt.Sprintf("server %s to agree: %v", m.ID, err)
	}
	_ = conn.Close()
	return ""
}
