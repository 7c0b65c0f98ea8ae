package state

import (
	"errors"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/tree"
)

/*
A change of the membership takes several entries, because Raft changes one
server at a time while clients see one change with one version:

	reconfig   the client's command. Apply checks it and keeps it as the one
	           change under way; nobody is answered, no zxid is taken.
	accept     the leader has found that a majority of the new participants is
	           there. From now on it moves Raft, and a new leader goes on.
	finish     Raft has arrived: /zookeeper/config changes, its watches fire,
	           the asker is answered; this command takes the zxid, which is the
	           version.
	abandon    instead of accept, or after it when the servers that were to
	           join stay away: the asker gets an error, nothing has changed.

The last three are the leader's own and name the change by its id; one that is
not under way is ignored. So a leader killed at any point leaves a state from
which the next one finishes or goes back.
*/

// Reconfig is a change of the membership under way.
type Reconfig struct {
	// ID is the Raft index of the entry that asked for it.
	ID uint64
	// Next are the members wanted; the version is not known yet.
	Next proto.Membership
	// Accepted tells that Raft is being moved.
	Accepted bool
	asker    proto.TxnHeader
}

// AskedBy tells whether the connection waits for the end of the change. Its
// request is no write of unknown fate: the log has it.
func (r *Reconfig) AskedBy(o proto.Origin) bool { return r != nil && r.asker.Origin == o }

// Kinds of the server's own commands of type OpReconfig: the first byte of the
// body.
const (
	reconfigPublish = 'P' // then the text
	reconfigAccept  = 'A' // then the id
	reconfigFinish  = 'F' // then the id
	reconfigAbandon = 'X' // then the id and an error code
)

// PublishBody is the command that makes a configured membership known.
func PublishBody(m proto.Membership) []byte {
	return append([]byte{reconfigPublish}, m.String()...)
}

// AcceptBody, FinishBody and AbandonBody are the steps of a change.
func AcceptBody(id uint64) []byte { return proto.AppendLong([]byte{reconfigAccept}, int64(id)) }

// FinishBody is the last step.
func FinishBody(id uint64) []byte { return proto.AppendLong([]byte{reconfigFinish}, int64(id)) }

// AbandonBody is the step back.
func AbandonBody(id uint64, code proto.ErrCode) []byte {
	return proto.AppendInt(proto.AppendLong([]byte{reconfigAbandon}, int64(id)), int32(code))
}

// stepReconfig applies a command of the server's own.
func (m *Machine) stepReconfig(t *proto.Txn, timeMillis int64) bool {
	if len(t.Body) == 0 {
		return false
	}
	if t.Body[0] == reconfigPublish {
		m.publish(t, timeMillis)
		return false
	}
	d := proto.NewDecoder(t.Body[1:])
	id := uint64(d.Long())
	if m.reconfig == nil || m.reconfig.ID != id || d.Err() != nil {
		return false
	}
	switch t.Body[0] {
	case reconfigAccept:
		accepted := *m.reconfig // the former one may have been handed out
		accepted.Accepted = true
		m.reconfig = &accepted
		m.hook.MembershipChanged()
	case reconfigFinish:
		return m.finishReconfig(t, timeMillis)
	case reconfigAbandon:
		code := proto.ErrCode(d.Int())
		asker := m.reconfig.asker
		m.reconfig = nil
		m.hook.MembershipChanged()
		return m.hook.Applied(&asker, &Outcome{Zxid: m.take(m.nextZxid()), Result: tree.Result{Type: proto.OpReconfig, Err: code}})
	}
	return false
}

// publish puts a configured membership into /zookeeper/config. As on Apache's
// server that takes no zxid: the node's mzxid is the configuration's version.
// With reconfig allowed the first one gets a version, and later only a reconfig
// makes another.
func (m *Machine) publish(t *proto.Txn, timeMillis int64) {
	next, err := proto.ParseMembership(string(t.Body[1:]))
	if err != nil || m.reconfig != nil {
		return
	}
	if m.switches&proto.SwitchReconfig != 0 {
		if Membership(m.tree).Version != 0 {
			return
		}
		if next.Version == 0 {
			next.Version = int64(m.zxid)
		}
	}
	if next.String() == string(m.tree.ConfigText()) {
		return
	}
	m.setMembership(t, next, proto.Zxid(next.Version), timeMillis)
}

func (m *Machine) setMembership(t *proto.Txn, next proto.Membership, zxid proto.Zxid, timeMillis int64) proto.Stat {
	st, changes := m.tree.SetConfig(m.txn(t, zxid, timeMillis), []byte(next.String()), m.changes[:0])
	m.changes = changes
	m.fire(zxid)
	m.hook.MembershipChanged()
	return st
}

func (m *Machine) finishReconfig(t *proto.Txn, timeMillis int64) bool {
	r := m.reconfig
	m.reconfig = nil
	zxid := m.take(m.nextZxid())
	next := r.Next
	next.Version = int64(zxid)
	st := m.setMembership(t, next, zxid, timeMillis)
	return m.hook.Applied(&r.asker, &Outcome{Zxid: zxid, Result: tree.Result{
		Type: proto.OpReconfig, Data: []byte(next.String()), Stat: st}})
}

// askReconfig takes a client's reconfig. If it can be tried it becomes the
// change under way, and its connection waits for the answer.
func (m *Machine) askReconfig(t *proto.Txn, index uint64) bool {
	d := proto.NewDecoder(t.Body)
	r := d.ReconfigRequest()
	o := &Outcome{Zxid: m.zxid, Result: tree.Result{Type: proto.OpReconfig, Err: proto.ErrMarshalling}}
	if d.Err() != nil {
		return m.hook.Applied(&t.TxnHeader, o)
	}
	next, code := m.judgeReconfig(t, &r)
	if code != proto.ErrOK {
		o.Result.Err, o.Zxid = code, m.take(m.nextZxid())
		return m.hook.Applied(&t.TxnHeader, o)
	}
	asker := t.TxnHeader
	asker.Identities = nil
	m.reconfig = &Reconfig{ID: index, Next: next, asker: asker}
	m.hook.MembershipChanged()
	return false
}

// judgeReconfig checks a reconfig in Apache's order, but for the majority of
// the new participants, which only the leader can judge and does afterwards.
func (m *Machine) judgeReconfig(t *proto.Txn, r *proto.ReconfigRequest) (proto.Membership, proto.ErrCode) {
	current := Membership(m.tree)
	next := current
	standalone := m.switches&proto.SwitchStandalone != 0
	switch {
	case m.switches&proto.SwitchReconfig == 0:
		return next, proto.ErrReconfigDisabled
	case m.switches&proto.SwitchEnsemble == 0:
		return next, proto.ErrUnimplemented
	case m.reconfig != nil || len(current.Members) == 0:
		return next, proto.ErrReconfigInProgress
	case r.CurConfigID != -1 && r.CurConfigID != current.Version:
		return next, proto.ErrBadVersion
	}
	var err error
	multiAddress := m.switches&proto.SwitchMultiAddress != 0
	if r.NewMembers != proto.NullString {
		next, err = current.Replace(r.NewMembers, multiAddress)
	} else {
		next, err = current.Change(r.Joining, r.Leaving, multiAddress)
	}
	beyond := errors.Is(err, proto.ErrMemberBeyond)
	switch voters := next.Voters(); {
	case errors.Is(err, proto.ErrMemberRange):
		return next, proto.ErrMarshalling
	case err != nil && !beyond:
		return next, proto.ErrBadArguments
	case r.NewMembers != proto.NullString && contradicts(voters, len(next.Members)-voters, standalone):
		return next, proto.ErrMarshalling
	case voters < 1 || voters < 2 && standalone:
		return next, proto.ErrBadArguments
	}
	if !m.tree.MayWrite(m.txn(t, m.zxid, 0), proto.PathConfig) {
		return next, proto.ErrNoAuth
	}
	if beyond {
		return next, proto.ErrBadArguments
	}
	return next, proto.ErrOK
}

// Membership is what /zookeeper/config says: nobody, as long as it says nothing
// or what only somebody with the right to write to it can have put there.
func Membership(t *tree.Tree) proto.Membership {
	m, err := proto.ParseMembership(string(t.ConfigText()))
	if err != nil {
		return proto.Membership{}
	}
	return m
}

// contradicts tells of a full list of members what Apache's server refuses
// outside its own checks.
func contradicts(voters, observers int, standaloneEnabled bool) bool {
	if standaloneEnabled {
		return voters < 2 && observers > 0
	}
	return voters == 0
}

// append encodes the change for a snapshot of a state with this command level.
func (r *Reconfig) append(dst []byte, level byte) []byte {
	dst = proto.AppendBool(proto.AppendLong(dst, int64(r.ID)), r.Accepted)
	asker := proto.Txn{TxnHeader: r.asker, Body: []byte(r.Next.String())}
	return proto.AppendBuffer(dst, asker.Append(nil, level))
}

// decodeReconfig reads what append wrote at a level up to newest.
func decodeReconfig(d *proto.Decoder, newest byte) (*Reconfig, error) {
	r := &Reconfig{ID: uint64(d.Long()), Accepted: d.Bool()}
	asker, err := proto.DecodeTxn(d.Buffer(), newest)
	if err == nil {
		err = d.Err()
	}
	if err != nil {
		return nil, err
	}
	r.asker = asker.TxnHeader
	r.Next, err = proto.ParseMembership(string(asker.Body))
	return r, err
}
