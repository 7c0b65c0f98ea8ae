package consensus

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

/*
Servers with several addresses (Apache's multiAddress.enabled). A server's
address is one text in which they stand with bars between, host:port|host:port;
Raft's configuration, the files of founders and the messages between servers hold
that text as it is. Only who listens and who dials takes it apart:

	listen  at each of them. One that cannot be opened at the start is said in
	        the log and left out, as long as another one can, as on Apache's.
	dial    first the one that last answered, then the others. Each gets a short
	        time in a first round and its share of the rest in a second, so that
	        an address from which nothing comes back costs little.

A connection to such a server must also be noticed to be dead before the next
election, or the other addresses would be of no use: see impatient.

Refused: a look at which address can be reached before it is dialled, by ICMP or
TCP port 7, which is what Apache's reachability check does. Many networks drop
both, and the dial itself tells.
*/

// addressBar stands between the addresses of one server.
const addressBar = "|"

// addressesOf takes an address apart.
func addressesOf(address string) []string { return strings.Split(address, addressBar) }

// quickDial bounds a dial of the first round: a fifth of the time after which a
// follower would campaign.
func (n *Node) quickDial() time.Duration { return n.cfg.ElectionTimeout / 5 }

// inTurn are the addresses in the order in which they are tried.
func (n *Node) inTurn(address string) []string {
	all := addressesOf(address)
	n.mu.Lock()
	at := slices.Index(all, n.answered[address])
	n.mu.Unlock()
	if at > 0 {
		first := all[at]
		all = slices.Insert(slices.Delete(all, at, at+1), 0, first)
	}
	return all
}

// noteAnswered remembers which of several addresses has answered, and says so
// when it is another one than before.
func (n *Node) noteAnswered(number int, address, one string) {
	n.mu.Lock()
	before, known := n.answered[address]
	if n.answered == nil {
		n.answered = map[string]string{}
	}
	n.answered[address] = one
	n.mu.Unlock()
	if known && before != one {
		n.logger.Warn("a server answers at another one of its addresses", "server", number, "before", before, "now", one)
	}
}

// greet exchanges hello and welcome with a server at one of its addresses, within
// the timeout.
func (n *Node) greet(kind, to, address string, timeout time.Duration) (conn net.Conn, w welcome, err error) {
	all := n.inTurn(address)
	if len(all) == 1 {
		return n.greetAt(kind, to, address, timeout)
	}
	number, _ := splitRaftID(to)
	begun := time.Now()
	quick := min(n.quickDial(), timeout/time.Duration(2*len(all)))
	for round := range 2 {
		for i, one := range all {
			left := timeout - time.Since(begun)
			if left <= 0 && err != nil {
				return nil, w, err
			}
			share := quick
			if round > 0 {
				share = left / time.Duration(len(all)-i)
			}
			var c net.Conn
			var answer welcome
			var failed error
			if c, answer, failed = n.greetAt(kind, to, one, share); failed == nil {
				n.noteAnswered(number, address, one)
				impatient(c, n.cfg.ElectionTimeout/2)
				return c, answer, nil
			}
			refused := errors.Is(failed, ErrRefused)
			if answering, _ := splitRaftID(answer.ID); refused && answering == number {
				return nil, answer, failed // it is the one that was asked for
			}
			if err == nil || refused {
				w, err = answer, failed
			}
		}
	}
	return nil, w, err
}

// listenAt opens the addresses of a peer port. With all it opens each or none,
// else as many as it can, and one at least.
func (n *Node) listenAt(addresses []string, all bool) (map[string]net.Listener, error) {
	open := map[string]net.Listener{}
	var failed []error
	for _, one := range addresses {
		l, err := net.Listen("tcp", one)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		open[one] = l
	}
	if len(failed) == 0 {
		return open, nil
	}
	if all || len(open) == 0 {
		for _, l := range open {
			_ = l.Close()
		}
		return nil, errors.Join(failed...)
	}
	for _, err := range failed {
		n.logger.Error("an address of the peer port cannot be opened; the others reach this server at its other addresses only", "error", err)
	}
	return open, nil
}

// MovePeerPort listens at other addresses, each as net.Listen takes it with bars
// between, and no longer at former ones that are not among them. Connections
// stay. After an error nothing has changed.
func (n *Node) MovePeerPort(address string) error {
	if n.port == nil {
		return fmt.Errorf("%w: a server alone has no peer port", ErrInvalidConfig)
	}
	p := n.port
	p.moving.Lock()
	defer p.moving.Unlock()
	wanted := addressesOf(address)
	p.mu.Lock()
	missing := slices.DeleteFunc(slices.Clone(wanted), func(one string) bool { return p.listeners[one] != nil })
	p.mu.Unlock()
	open, err := n.listenAt(missing, true)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		for _, l := range open {
			_ = l.Close()
		}
		return ErrStopped
	}
	var former []net.Listener
	for one, l := range p.listeners {
		if !slices.Contains(wanted, one) {
			former = append(former, l)
			delete(p.listeners, one)
		}
	}
	n.workers.Add(len(open)) // before the port is shut, so nobody waits for them yet
	for one, l := range open {
		p.listeners[one] = l
		go p.accept(l)
	}
	p.first = wanted[0]
	p.mu.Unlock()
	for _, l := range former {
		_ = l.Close() // ends its accept loop
	}
	return nil
}
