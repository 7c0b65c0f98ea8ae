package faults

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// membershipFaults are changes of the members while clients work.
func membershipFaults() []fault {
	return []fault{
		{name: "two servers join, or leave again", needs: changingMembers, run: func(r *runner) { r.joinOrLeave(r.harm()) }},
		{name: "a member is replaced by an empty one at another address", needs: changingMembers, run: func(r *runner) { r.replace(r.pick(r.e.ids)) }},
		{name: "the leader is replaced by an empty server at another address", needs: changingMembers, run: func(r *runner) { r.replace(r.leaderNow()) }},
		{name: "a member's role changes", needs: changingMembers, run: func(r *runner) { r.changeRole() }},
	}
}

// guests are the numbers of the servers that join and leave.
func (e *ensemble) guests() []int {
	first := e.options.servers + e.options.observers + 1
	return []int{first, first + 1}
}

func (r *runner) joinOrLeave(harm func()) {
	if slices.Contains(r.e.ids, r.e.guests()[0]) {
		r.leave(harm)
	} else {
		r.join(harm)
	}
}

// join adds the guests, with empty directories or with what they had when they
// left.
func (r *runner) join(harm func()) {
	e := r.e
	e.awaitAll()
	before := maps.Clone(e.lines)
	again := e.servers[e.guests()[0]] != nil && r.rng.IntN(2) == 0
	for _, id := range e.guests() {
		at, client := e.freeAddress(), ""
		if again {
			at, client = e.net.targets[id], e.address(id)
		}
		e.net.join(e.t, id, at)
		e.name(id, participant, client)
	}
	for _, id := range e.guests() {
		if again {
			e.rewrite(id)
			e.servers[id].Launch(e.t)
		} else {
			e.replaceProcess(id)
		}
	}
	e.ids = append(e.ids, e.guests()...)
	r.changeMembers(before, harm)
	e.openDoors()
}

// leave takes the guests out, and ends them some time later.
func (r *runner) leave(harm func()) {
	e := r.e
	e.awaitAll()
	before := maps.Clone(e.lines)
	for _, id := range e.guests() {
		delete(e.lines, id)
	}
	e.ids = slices.DeleteFunc(e.ids, func(id int) bool { return slices.Contains(e.guests(), id) })
	r.changeMembers(before, harm)
	r.hold(2 * time.Second)
	for _, id := range e.guests() {
		e.kill(id)
	}
	e.openDoors()
	if r.rng.IntN(2) == 0 {
		r.haunt()
	}
}

// haunt starts the guests again that have left, with their old data and files,
// and clients knock at their doors: they may disturb nobody. By a reconfig they
// follow and serve on if they are back before the leader has missed them.
func (r *runner) haunt() {
	e := r.e
	doors := e.doors()
	for _, id := range e.guests() {
		e.restart(id)
		doors = append(doors, door{id, e.address(id)})
	}
	e.open.Store(&doors)
	r.hold(4 * time.Second)
	for _, id := range e.guests() {
		if e.options.members == byFiles && e.takesClients(id) {
			r.wrong("server %d has left and takes clients", id)
		}
	}
	for _, id := range e.guests() {
		e.kill(id)
	}
	e.openDoors()
	r.count("returns of servers that have left")
}

// replace puts an empty server in the place of a member.
func (r *runner) replace(id int) {
	e := r.e
	e.awaitAll()
	before := maps.Clone(e.lines)
	role := e.role(id)
	e.kill(id)
	e.net.join(e.t, id, e.freeAddress())
	e.name(id, role, "")
	e.replaceProcess(id)
	e.openDoors()
	r.changeMembers(before, func() {})
	r.awaitMember(id)
}

// replaceProcess starts an empty server under a number.
func (e *ensemble) replaceProcess(id int) {
	if old := e.servers[id]; old != nil {
		e.former = append(e.former, old)
		if err := os.RemoveAll(old.DataDir); err != nil {
			e.t.Fatal(err)
		}
	}
	e.add(id)
}

// changeRole makes some member an observer, or an observer a participant. Three
// participants remain at least.
func (r *runner) changeRole() {
	e := r.e
	e.awaitAll()
	before := maps.Clone(e.lines)
	participants := slices.DeleteFunc(slices.Clone(e.ids), func(id int) bool { return e.role(id) == observer })
	observers := e.without(participants)
	from, to := observers, participant
	if len(participants) > 3 && (len(observers) == 0 || r.rng.IntN(2) == 0) {
		from, to = participants, observer
	}
	if len(from) == 0 {
		return
	}
	id := r.pick(from)
	e.lines[id] = strings.Replace(e.lines[id], ":"+e.role(id), ":"+to, 1)
	r.changeMembers(before, r.harm())
}

// without are the members that are not among these.
func (e *ensemble) without(ids []int) (others []int) {
	for _, id := range e.ids {
		if !slices.Contains(ids, id) {
			others = append(others, id)
		}
	}
	return others
}
