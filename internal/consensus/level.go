package consensus

import (
	"fmt"
	"slices"
)

/*
Command levels. What the state machine's commands are encoded in has a version,
and each server supports versions up to some level. This room never looks into a
command, but it knows who the members are and holds what they get:

  - Each hello and welcome tells what its sender supports, and which level is in
    force in its state machine.
  - The leader keeps what came with each stream, and says what all members
    support (CommonLevel). The server room raises the level by a command.
  - Two servers one of which does not support what is in force at the other hold
    no connection, whoever dials: it gets no entry that it could not apply, and
    its vote and its campaigns reach nobody.

A server replaced by an older build in the very moment in which the level rises
may get that entry all the same. Its state machine refuses it, and it stops.
*/

// levels are the command levels of one server. Builds that know only level 1
// do not send them.
type levels struct {
	// Supports is the highest that the server's state machine can apply.
	Supports int `json:"supports,omitempty"`
	// InForce is that of its state.
	InForce int `json:"level,omitempty"`
}

func (n *Node) levels() levels {
	inForce, supports := n.cfg.CommandLevels()
	return levels{Supports: supports, InForce: inForce}
}

// misfit says why this server and another of its ensemble cannot work together;
// empty if they can. If this server is the older one it says so for itself too.
func (n *Node) misfit(id string, other levels) string {
	own := n.levels()
	older := func(id string, supports, inForce int) string {
		return fmt.Sprintf("server %s supports command level %d at most, and the ensemble is at level %d: it needs a newer version of zooraft",
			id, supports, inForce)
	}
	switch {
	case max(other.Supports, 1) < own.InForce:
		return older(id, max(other.Supports, 1), own.InForce)
	case own.Supports < other.InForce:
		text := older(n.stable.identity().raftID(), own.Supports, other.InForce)
		n.mu.Lock()
		known := n.outdated != ""
		n.outdated = text
		n.mu.Unlock()
		if !known {
			n.logger.Error("this server takes no part in its ensemble", "reason", text)
		}
		return text
	}
	return ""
}

// CommonLevel is the highest command level that every server supports which is
// a member or is to be one, observers included, and who keeps it from what this
// server supports. Each counts with what it said when its present stream to this
// leader began; one without a stream may come back as an older build, and holds
// the level at 1. It is meant for a leader.
func (n *Node) CommonLevel() (level int, waitsFor []int) {
	own := n.levels().Supports
	level = own
	if n.cfg.alone() {
		return level, nil
	}
	reported := n.followers.supports()
	missing := map[int]bool{}
	for _, p := range n.wanted.list() {
		missing[p.ID] = true
	}
	least := func(number, supports int) {
		if number != n.cfg.ServerID && supports < own {
			level = min(level, supports)
			waitsFor = append(waitsFor, number)
		}
	}
	servers, committed := n.configuration()
	if !committed {
		level = 1 // a member may be on its way out, and come back with the former leader's log
	}
	for _, s := range servers {
		number, _ := splitRaftID(string(s.ID))
		delete(missing, number)
		least(number, max(reported[string(s.ID)], 1))
	}
	for number := range missing {
		least(number, 1)
	}
	slices.Sort(waitsFor)
	return level, slices.Compact(waitsFor)
}

// supports is what the servers with a stream support, by Raft id.
func (f *followers) supports() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]int{}
	for id, o := range f.open {
		out[id] = o.supports
	}
	return out
}
