package state

import (
	"errors"
	"fmt"

	"github.com/zooraft/zooraft/internal/proto"
)

/*
The command level is the newest version in which commands may stand in the log.
It belongs to the state, begins at 1, and is raised by a command of its own,
never lowered:

	a newer build   supports a higher level, and writes commands as the level in
	                its own state says: as the older build does.
	the leader      proposes to raise it once every member has reported that it
	                supports more. Until then the older build can be put back.
	apply           raises it at the same entry on every server. From there on
	                commands of the new version may follow.

A server that meets a level, or a command, that it does not support stops before
the entry has any effect. To skip it would split the replicas.

Refused: a setting by which the operator raises the level. It would have to be
set on every server, at the right time, and never forgotten.
*/

// firstLevel is the level of an ensemble that has never raised it, and of every
// state stored before there were levels.
const firstLevel byte = 1

// ErrCommandLevel is returned for a log entry or a snapshot of a command level
// that this server does not support. Nothing of it has taken effect.
var ErrCommandLevel = errors.New("state: the command level is too high for this version of zooraft")

// Support sets the highest command level that this server supports, in place
// of proto.CommandVersion. It must be called before the first entry.
func (m *Machine) Support(level byte) { m.supports = level }

// Supports is the highest command level that this server can apply.
func (m *Machine) Supports() byte { return m.supports }

// CommandLevel is the level in force, in which commands are to be encoded. It
// takes no lock.
func (m *Machine) CommandLevel() byte { return byte(m.level.Load()) }

// RaiseBody is the record of the command that raises the level.
func RaiseBody(level byte) []byte { return proto.AppendInt(nil, int32(level)) }

// checkLevel returns a stored level if this server supports it.
func checkLevel(level int32, supports byte) (byte, error) {
	if level > int32(supports) {
		return 0, fmt.Errorf("%w: it is %d, and %d is supported at most; start a newer version", ErrCommandLevel, level, supports)
	}
	return byte(max(level, int32(firstLevel))), nil
}

// decode reads a command and checks that this server can apply it.
func (m *Machine) decode(command []byte) (proto.Txn, error) {
	t, err := proto.DecodeTxn(command, m.supports)
	if err == nil && t.Type == proto.OpRaiseLevel && t.Origin == (proto.Origin{}) {
		_, err = checkLevel(proto.NewDecoder(t.Body).Int(), m.supports)
	}
	return t, err
}

// raiseLevel requires the lock. The level was checked with the whole entry.
func (m *Machine) raiseLevel(t *proto.Txn) {
	level, err := checkLevel(proto.NewDecoder(t.Body).Int(), m.supports)
	if err == nil && level > m.CommandLevel() {
		m.level.Store(uint32(level))
	}
}
