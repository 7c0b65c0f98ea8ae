package oracle

import (
	"errors"

	"github.com/zooraft/zooraft/internal/proto"
)

// spared tells whether a request must not be sent to a real ensemble, because
// it would stop it for good: a plain write whose record cannot be read. The
// leader answers it with the error transaction that it makes for all failed
// writes, but without a zxid of its own: it proposes the last one again, takes
// no acknowledgement for that, and waits for it before all later writes. A
// server alone has nobody to wait for, and there such records are compared.
func (r *runner) spared(op proto.OpCode, body []byte) bool {
	return len(r.target.sites) > 1 && unreadable(op, body)
}

// unreadable tells whether the record of a plain write is cut short or has
// impossible lengths. A multi has a zxid of its own for that, except where a
// create without a list of permissions takes the leader by surprise.
func unreadable(op proto.OpCode, body []byte) bool {
	d := proto.NewDecoder(body)
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		d.CreateRequest(op)
	case proto.OpDelete:
		d.PathVersion()
	case proto.OpSetData:
		d.SetDataRequest()
	case proto.OpSetACL:
		d.SetACLRequest()
	case proto.OpReconfig:
		d.ReconfigRequest()
	case proto.OpMulti:
		_, err := proto.DecodeMulti(body)
		return errors.Is(err, proto.ErrNullField)
	case proto.OpDeleteContainer:
		return d.String() == proto.NullString || d.Err() != nil
	default:
		return false
	}
	return d.Err() != nil
}
