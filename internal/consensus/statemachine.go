package consensus

import "io"

// StateMachine is what the log drives. It is implemented by room state.
//
// Raft's fsm goroutine is the only caller once Open has returned; during Open,
// Restore is called from Open's own goroutine. No two methods overlap, except
// that the persist function which Freeze returned runs beside Apply.
type StateMachine interface {
	// Apply hands over one committed entry, in log order and exactly once per
	// life of the process (entries after the restored snapshot are handed over
	// again after a restart): the entry's Raft index and term, the leader's
	// time in Unix milliseconds, the switch bits the leader stamped, and its
	// commands in the order they were proposed. Within a term the time never
	// runs backwards. Indexes rise but have gaps, because Raft's own entries
	// are not shown.
	//
	// The command slices alias the entry's buffer: they must not be modified,
	// and what is kept should be copied, or a few bytes pin a whole batch.
	//
	// An error means that the entry cannot be understood. The node stops with
	// that reason, and neither this entry nor a later one is applied or
	// covered by a snapshot. Apply may not block.
	Apply(index, term uint64, timeMillis int64, flags uint32, commands [][]byte) error

	// Freeze captures the state for a snapshot. It must be short and do no
	// I/O, because Apply waits for it. persist is called at most once, on
	// another goroutine, beside Apply, and streams the captured state to w;
	// release is called exactly once, after persist or instead of it.
	Freeze() (persist func(w io.Writer) error, release func())

	// Restore replaces the whole state with what persist once wrote. Bytes
	// that r yields have passed their checksum. An error stops the node if
	// anything was applied before, so that two states need not be in memory, or
	// if it is ErrNewer. Else an older snapshot is tried next, and the state must
	// be as it was.
	Restore(r io.Reader) error
}

// Events tells the server what it cannot learn from the state machine. Calls
// come from this room's goroutines, one kind at a time but different kinds
// side by side. No method may block or call back into the Node.
type Events interface {
	// FateUnknown names proposals whose commands may or may not be in the log
	// now or later. The right answer is to close their connections. A token is
	// named at most once; it may be named just after its entry was applied, so
	// tokens that nobody waits for any more are to be ignored.
	FateUnknown(tokens []uint64)

	// LeaderChanged names the server that leads by its number, or -1 when none
	// is known.
	LeaderChanged(serverID int)

	// Leading says that this server has begun to lead and has applied every
	// entry of earlier terms (duties may start), or that it no longer leads.
	Leading(leading bool)

	// Route says, on a server that does not lead, that its proposals have a
	// way to the leader and that it has applied what was committed when it
	// asked; or that the way is broken: the fate of every write still on it is
	// unknown.
	Route(open bool)

	// Message is what the server room of another server sent, from a follower
	// to the leader (Node.Send) or back (Node.Broadcast).
	Message(from int, payload []byte)
}
