package consensus

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

/*
Servers whose files differ. Each stream's two ends compare their server lines
when it begins, because a file is read at a start only. A difference harms
nothing by itself: the leader's file is what counts. But the next leader has
another file, and would change the membership again.
*/

// difference says how the lines of another server differ from this one's;
// empty if they do not. Addresses that only say where to listen count as equal
// to any.
func difference(own []Peer, number int, other []Peer) string {
	byID := func(peers []Peer) map[int]Peer {
		m := map[int]Peer{}
		for _, p := range peers {
			m[p.ID] = p
		}
		return m
	}
	line := func(p Peer, there bool) string {
		switch {
		case !there:
			return "none"
		case p.Voter:
			return p.Address
		}
		return p.Address + " as observer"
	}
	here, there := byID(own), byID(other)
	all := maps.Clone(here)
	maps.Copy(all, there)
	var found []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		a, ownHas := here[id]
		b, otherHas := there[id]
		same := a.Address == b.Address || isWildcard(a.Address) || isWildcard(b.Address)
		if ownHas != otherHas || a.Voter != b.Voter || !same {
			found = append(found, fmt.Sprintf("server.%d is %s there and %s here", id, line(b, otherHas), line(a, ownHas)))
		}
	}
	if found == nil {
		return ""
	}
	return fmt.Sprintf("the server lines of server %d are others: %s", number, strings.Join(found, ", "))
}

// compareLines notes how the other end of a stream has other server lines.
func (n *Node) compareLines(number int, other []Peer) {
	text := ""
	if !n.cfg.MembershipIsSet && len(other) > 0 {
		text = difference(n.cfg.Peers, number, other)
	}
	n.mu.Lock()
	changed := n.linesSaid[number] != text
	if n.differences == nil {
		n.differences, n.linesSaid = map[int]string{}, map[int]string{}
	}
	n.differences[number], n.linesSaid[number] = text, text
	if text == "" {
		delete(n.differences, number)
	}
	n.mu.Unlock()
	if changed && text != "" {
		n.logger.Warn("the files of the servers differ; the leader's counts", "difference", text)
	}
}

// forgetLines ends what compareLines noted: that server's file may be another one
// when it comes again.
func (n *Node) forgetLines(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.differences, number)
}

// noteOwnLine remembers where a server says that it listens: its line may have
// changed, and this server's file not yet.
func (n *Node) noteOwnLine(id string, lines []Peer) {
	number, _ := splitRaftID(id)
	own, ok := newWanted(lines).find(number)
	if !ok || isWildcard(own.Address) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ownLines == nil {
		n.ownLines = map[string]string{}
	}
	n.ownLines[id] = own.Address
}

// ownLineOf is what was remembered, by Raft id; empty for nothing.
func (n *Node) ownLineOf(id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ownLines[id]
}

// differs is what was noted of present members, in one line.
func (n *Node) differs() string {
	n.mu.Lock()
	noted := maps.Clone(n.differences)
	n.mu.Unlock()
	var texts []string
	for _, number := range slices.Sorted(maps.Keys(noted)) {
		if n.knows(number) {
			texts = append(texts, noted[number])
		}
	}
	return strings.Join(texts, "; ")
}
