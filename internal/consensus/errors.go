package consensus

import "errors"

// Errors that callers compare by identity with errors.Is.
var (
	// ErrNotLeader is returned by Propose when this server does not lead.
	ErrNotLeader = errors.New("consensus: this server is not the leader")
	// ErrStopped is returned when the node is closed, or has stopped itself for the reason in Node.Err.
	ErrStopped = errors.New("consensus: the node has stopped")
	// ErrDiskFull is returned by Propose while the log cannot grow for want of space.
	ErrDiskFull = errors.New("consensus: the disk of the log is full")
	// ErrQueueFull is returned by Propose when the commands that wait to be packed reach a limit.
	ErrQueueFull = errors.New("consensus: too many commands are waiting")
	// ErrCommandTooLarge is returned by Propose for a command that no log store could read back.
	ErrCommandTooLarge = errors.New("consensus: the command is larger than a log entry may be")
	// ErrMember is returned when an operator asks for a change of members that cannot be made; the text says why.
	ErrMember = errors.New("consensus: the members cannot be changed so")
	// ErrInvalidConfig is returned by Validate and Open; the text names the field.
	ErrInvalidConfig = errors.New("consensus: invalid configuration")

	// ErrLocked is returned by Open when another server holds the data directory.
	ErrLocked = errors.New("consensus: the data directory is in use by another server")
	// ErrCorrupt is returned by Open when bytes that were acknowledged no longer have their checksum.
	ErrCorrupt = errors.New("consensus: stored data is corrupt")
	// ErrLess is returned by Open when the disk holds less than what is known to have been acknowledged.
	ErrLess = errors.New("consensus: stored data ends before what was acknowledged")
	// ErrSuperseded is the reason of a node that stopped because another member was recovered from the loss of a majority.
	ErrSuperseded = errors.New("consensus: this server's ensemble was given up when 'zooraft recover' was run on another member")
	// ErrForgotten is the reason of a node that stopped because the leader lacks what the ensemble has acknowledged.
	ErrForgotten = errors.New("consensus: the leader's log lacks what the ensemble has acknowledged, so some server lost it or runs on an old copy of its data")
	// ErrLogStoreMismatch is returned by Open when the log lies in the other log store; see MoveLog.
	ErrLogStoreMismatch = errors.New("consensus: the log is kept in another log store")
	// ErrIdentityMismatch is returned by Open when the data directory belongs to another server.
	ErrIdentityMismatch = errors.New("consensus: the data directory belongs to another server")

	// ErrStateMachine is the reason of a node that stopped because Apply refused an entry.
	ErrStateMachine = errors.New("consensus: the state machine refused a log entry")
	// ErrNewer is wrapped by what a StateMachine returns for an entry or a snapshot of a later version of the program.
	ErrNewer = errors.New("consensus: written by a newer version")
	// ErrDiskFailed is the reason of a node that stopped because a write or sync of its log failed.
	ErrDiskFailed = errors.New("consensus: writing the log failed")
	// ErrEntryFormat is returned by the entry decoder for bytes that it did not write.
	ErrEntryFormat = errors.New("consensus: a log entry has an unknown format")
	// ErrCloseTimeout is returned by Close when Raft did not end in time; the data directory stays locked.
	ErrCloseTimeout = errors.New("consensus: raft did not end in time and was abandoned")
	// errPromised is returned when an empty server has promised to become a
	// member of one ensemble and is to become one of another.
	errPromised = errors.New("consensus: the server has agreed to form another ensemble")
)
