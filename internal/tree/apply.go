package tree

import (
	"errors"

	"github.com/zooraft/zooraft/internal/proto"
)

// Txn is what apply knows of a command besides its body: all of it comes from
// the log.
type Txn struct {
	Zxid       proto.Zxid
	TimeMillis int64 // Unix ms, stamped by the leader
	Session    proto.SessionID
	Identities []proto.ID
	Switches   uint32 // proto.Switch…
	// LocalSession tells that the session may not own ephemerals.
	LocalSession bool
}

// Change is one cause of watch events. Changes come in the order in which
// watches fire; a deletion is one Change for the node and one for its parent.
type Change struct {
	Type proto.EventType
	Path string
	Zxid proto.Zxid
	// ACL is the list by which delivery is judged: the node's own, for a
	// deletion the one it had, for NodeChildrenChanged the parent's.
	ACL *ACLSet
	// DataLength is how many bytes the command wrote, for the creation of a
	// node and a change of its data; else 0.
	DataLength int
}

// Result is the outcome of a command.
type Result struct {
	// Type is the op's own; in the Sub of a multi it is the type on the wire:
	// OpError for every part of a multi that failed.
	Type proto.OpCode
	Err  proto.ErrCode
	Path string // of the node; for creates with its sequence number
	Data []byte // of a reconfig: the new text of /zookeeper/config
	Stat proto.Stat
	// Sub holds the parts of a multi. The Err of a multi that failed in one
	// of its ops is ErrOK, as in its reply header: see Failed.
	Sub []Result
	// NoZxid tells that the request was malformed in the way for which Apache
	// takes no zxid.
	NoZxid bool
	// QuotaOver is the path of a quota that this write exceeds: a soft limit,
	// or a hard one while quotas are not enforced.
	QuotaOver string
	// SequenceLow tells that the parent's counter has little left: see
	// SequenceLowAt.
	SequenceLow bool
}

// Failed tells whether the command changed nothing because of an error.
func (r *Result) Failed() bool {
	if r.Err != proto.ErrOK {
		return true
	}
	return len(r.Sub) > 0 && r.Sub[0].Type == proto.OpError
}

// Apply decodes body as the record of op, checks it in Apache's order and
// applies it. A failed op changes nothing. Apply appends what watches must
// hear to changes.
//
// Every op is first planned, which reads only and may fail, and then carried
// out, which cannot fail. In a multi all ops are planned before the first is
// carried out; each sees the planned effects of those before it.
func (t *Tree) Apply(txn Txn, op proto.OpCode, body []byte, changes []Change) (Result, []Change) {
	if op == proto.OpMulti {
		return t.applyMulti(&txn, body, changes)
	}
	m, err := decodeOp(op, body)
	if err != nil {
		return Result{Type: op, Err: proto.ErrMarshalling, NoZxid: true}, changes
	}
	c := checker{t: t, txn: &txn}
	p, code := c.plan(&m)
	if code != proto.ErrOK {
		return Result{Type: op, Err: code, Path: p.path, QuotaOver: p.over}, changes
	}
	return t.carryOut(&txn, &p, changes)
}

// errOp is returned for an op that a client may not send as a write.
var errOp = errors.New("tree: no write op")

// request is one decoded write of any type.
type request struct {
	proto.MultiOp
	acl  proto.SetACLRequest
	reap Reap
}

func decodeOp(op proto.OpCode, body []byte) (request, error) {
	d := proto.NewDecoder(body)
	r := request{MultiOp: proto.MultiOp{Type: op}}
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		r.Create = d.CreateRequest(op)
	case proto.OpDelete:
		r.Version = d.PathVersion()
	case proto.OpSetData:
		r.Data = d.SetDataRequest()
	case proto.OpSetACL:
		r.acl = d.SetACLRequest()
	case proto.OpDeleteContainer:
		r.reap = decodeReap(d)
	default:
		return r, errOp
	}
	return r, d.Err()
}

// applyMulti applies all ops of a multi or none.
func (t *Tree) applyMulti(txn *Txn, body []byte, changes []Change) (Result, []Change) {
	res := Result{Type: proto.OpMulti}
	ops, err := proto.DecodeMulti(body)
	if err != nil {
		res.Err, res.NoZxid = proto.ErrMarshalling, errors.Is(err, proto.ErrNullField)
		return res, changes
	}
	for i := range ops {
		if path := multiPath(&ops[i]); path == proto.NullString || ops[i].Type == proto.OpGetData || ops[i].Type == proto.OpGetChildren {
			res.Err = proto.ErrMarshalling
			return res, changes
		}
	}
	c := checker{t: t, txn: txn, pending: make(map[string]target, 2*len(ops))}
	plans := make([]plan, 0, len(ops))
	for i := range ops {
		p, code := c.plan(&request{MultiOp: ops[i]})
		if code == proto.ErrMarshalling {
			res.Err = code
			return res, changes
		}
		if code != proto.ErrOK {
			res.Path, res.QuotaOver, res.Sub = p.path, p.over, failedMulti(len(ops), i, code)
			return res, changes
		}
		plans = append(plans, p)
	}
	res.Sub = make([]Result, len(plans))
	for i := range plans {
		plans[i].node, plans[i].parent = none, none
		res.Sub[i], changes = t.carryOut(txn, &plans[i], changes)
		res.SequenceLow = res.SequenceLow || res.Sub[i].SequenceLow
		if res.QuotaOver == "" {
			res.QuotaOver = res.Sub[i].QuotaOver
		}
	}
	return res, changes
}

// failedMulti is the answer to a multi whose op at index bad failed: nothing
// is wrong with those before it, and those after it were not looked at.
func failedMulti(n, bad int, code proto.ErrCode) []Result {
	sub := make([]Result, n)
	for i := range sub {
		sub[i].Type = proto.OpError
		switch {
		case i == bad:
			sub[i].Err = code
		case i > bad:
			sub[i].Err = proto.ErrRuntimeInconsistency
		}
	}
	return sub
}

func multiPath(op *proto.MultiOp) string {
	switch op.Type {
	case proto.OpDelete, proto.OpCheck:
		return op.Version.Path
	case proto.OpSetData:
		return op.Data.Path
	default:
		return op.Create.Path
	}
}

// AppendResult adds the reply's body to dst: what follows the header of the
// reply to op. A result with an error has none.
func AppendResult(dst []byte, op proto.OpCode, r *Result) []byte {
	if r.Err != proto.ErrOK {
		return dst
	}
	switch op {
	case proto.OpCreate:
		return proto.AppendString(dst, r.Path)
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return proto.AppendStat(proto.AppendString(dst, r.Path), &r.Stat)
	case proto.OpSetData, proto.OpSetACL:
		return proto.AppendStat(dst, &r.Stat)
	case proto.OpReconfig:
		return proto.AppendStat(proto.AppendBuffer(dst, r.Data), &r.Stat)
	case proto.OpMulti:
		for i := range r.Sub {
			dst = appendSub(dst, &r.Sub[i])
		}
		return proto.AppendMultiHeader(dst, proto.MultiEnd)
	}
	return dst
}

func appendSub(dst []byte, r *Result) []byte {
	h := proto.MultiHeader{Type: r.Type, Err: r.Err}
	switch r.Type {
	case proto.OpError:
		return proto.AppendInt(proto.AppendMultiHeader(dst, h), int32(r.Err))
	case proto.OpCreateContainer, proto.OpCreateTTL:
		h.Type = proto.OpCreate2
	}
	return AppendResult(proto.AppendMultiHeader(dst, h), h.Type, r)
}
