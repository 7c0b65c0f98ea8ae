package snapshot

import (
	"errors"
	"fmt"

	"github.com/zooraft/zooraft/internal/proto"
)

// LogBody is the body of a transaction; its kind follows from the header's
// type. A closeSession without a list and a type that has none have nil.
type LogBody interface {
	append(dst []byte) ([]byte, error)
}

// The bodies, each with the types that carry it.
type (
	// CreateSessionTxn belongs to OpCreateSession.
	CreateSessionTxn struct{ TimeoutMillis int32 }
	// CloseSessionTxn belongs to OpCloseSession: the ephemerals that went with
	// it. Logs before 3.6 lack it.
	CloseSessionTxn struct{ Paths []string }
	// CreateTxn belongs to OpCreate and OpCreate2. ParentCVersion is the
	// parent's persisted cversion afterwards; −1 where a log of 3.4's
	// predecessors has none (Legacy), which asks the replayer to count itself.
	CreateTxn struct {
		Path           string
		Data           []byte
		ACL            []proto.ACL
		Ephemeral      bool
		ParentCVersion int32
		Legacy         bool
	}
	// CreateContainerTxn belongs to OpCreateContainer.
	CreateContainerTxn struct {
		Path           string
		Data           []byte
		ACL            []proto.ACL
		ParentCVersion int32
	}
	// CreateTTLTxn belongs to OpCreateTTL.
	CreateTTLTxn struct {
		Path           string
		Data           []byte
		ACL            []proto.ACL
		ParentCVersion int32
		TTLMillis      int64
	}
	// DeleteTxn belongs to OpDelete and OpDeleteContainer.
	DeleteTxn struct{ Path string }
	// SetDataTxn belongs to OpSetData and OpReconfig; Version is the resulting one.
	SetDataTxn struct {
		Path    string
		Data    []byte
		Version int32
	}
	// SetACLTxn belongs to OpSetACL; Version is the resulting aversion.
	SetACLTxn struct {
		Path    string
		ACL     []proto.ACL
		Version int32
	}
	// CheckTxn belongs to OpCheck, which occurs in multis only.
	CheckTxn struct {
		Path    string
		Version int32
	}
	// ErrorTxn belongs to OpError: a write that failed yet took a zxid.
	ErrorTxn struct{ Err proto.ErrCode }
	// MultiTxn belongs to OpMulti. All parts are ErrorTxn when it failed.
	MultiTxn struct{ Parts []MultiPart }
	// MultiPart is one operation of a multi.
	MultiPart struct {
		Type proto.OpCode
		Body LogBody
	}
)

var errBadBody = errors.New("the transaction's body does not fit its type")

// decodeRecord decodes the bytes of a record whose checksum was right.
func decodeRecord(b []byte) (LogRecord, error) {
	d := proto.NewDecoder(b)
	rec := LogRecord{LogHeader: LogHeader{
		Session: proto.SessionID(d.Long()), Cxid: d.Int(), Zxid: proto.Zxid(d.Long()),
		TimeMillis: d.Long(), Type: proto.OpCode(d.Int()),
	}}
	if d.Err() != nil {
		return rec, errBadBody
	}
	body, rest, err := decodeBody(rec.Type, d.Rest(), true)
	if err != nil {
		return rec, err
	}
	rec.Body = body
	if len(rest) == 0 {
		return rec, nil
	}
	d = proto.NewDecoder(rest)
	rec.DigestVersion, rec.Digest, rec.HasDigest = d.Int(), uint64(d.Long()), true
	if d.Err() != nil || len(d.Rest()) > 0 {
		return rec, fmt.Errorf("%w: type %d leaves %d bytes", errBadBody, rec.Type, len(rest))
	}
	return rec, nil
}

// decodeBody decodes a body and returns what follows it. whole tells that b is
// the rest of a record, where old forms may occur, and not a part of a multi.
func decodeBody(t proto.OpCode, b []byte, whole bool) (LogBody, []byte, error) {
	d := proto.NewDecoder(b)
	var body LogBody
	switch t {
	case proto.OpCreateSession:
		body = CreateSessionTxn{d.Int()}
	case proto.OpCloseSession:
		return decodeClose(b)
	case proto.OpCreate, proto.OpCreate2:
		return decodeCreate(b, whole && t == proto.OpCreate)
	case proto.OpCreateContainer:
		body = CreateContainerTxn{d.String(), d.Buffer(), d.ACLs(), d.Int()}
	case proto.OpCreateTTL:
		body = CreateTTLTxn{d.String(), d.Buffer(), d.ACLs(), d.Int(), d.Long()}
	case proto.OpDelete, proto.OpDeleteContainer:
		body = DeleteTxn{d.String()}
	case proto.OpSetData, proto.OpReconfig:
		body = SetDataTxn{d.String(), d.Buffer(), d.Int()}
	case proto.OpSetACL:
		body = SetACLTxn{d.String(), d.ACLs(), d.Int()}
	case proto.OpCheck:
		body = CheckTxn{d.String(), d.Int()}
	case proto.OpError:
		body = ErrorTxn{proto.ErrCode(d.Int())}
	case proto.OpMulti:
		if !whole {
			return nil, nil, fmt.Errorf("%w: a multi in a multi", errBadBody)
		}
		m, err := decodeMulti(d)
		if err != nil {
			return nil, nil, err
		}
		body = m
	default:
		return nil, nil, fmt.Errorf("%w: unknown type %d", errBadBody, t)
	}
	if d.Err() != nil {
		return nil, nil, fmt.Errorf("%w: type %d", errBadBody, t)
	}
	return body, d.Rest(), nil
}

// digestLen is the length of a record's digest in bytes.
const digestLen = 12

// decodeClose tells the list of ephemerals from its absence by what is left:
// nothing or a digest.
func decodeClose(b []byte) (LogBody, []byte, error) {
	d := proto.NewDecoder(b)
	paths := d.Strings()
	if left := len(d.Rest()); d.Err() == nil && (left == 0 || left == digestLen) {
		return CloseSessionTxn{paths}, d.Rest(), nil
	}
	if len(b) == 0 || len(b) == digestLen {
		return nil, b, nil
	}
	return nil, nil, fmt.Errorf("%w: closeSession", errBadBody)
}

func decodeCreate(b []byte, mayBeLegacy bool) (LogBody, []byte, error) {
	d := proto.NewDecoder(b)
	c := CreateTxn{Path: d.String(), Data: d.Buffer(), ACL: d.ACLs(), Ephemeral: d.Bool()}
	if mayBeLegacy && d.Err() == nil && len(d.Rest()) == 0 {
		c.ParentCVersion, c.Legacy = -1, true
		return c, nil, nil
	}
	c.ParentCVersion = d.Int()
	if d.Err() != nil {
		return nil, nil, fmt.Errorf("%w: create", errBadBody)
	}
	return c, d.Rest(), nil
}

func decodeMulti(d *proto.Decoder) (LogBody, error) {
	n := d.Count(8)
	m := MultiTxn{Parts: make([]MultiPart, 0, max(n, 0))}
	for range n {
		t, b := proto.OpCode(d.Int()), d.Buffer()
		if d.Err() != nil {
			return nil, fmt.Errorf("%w: multi", errBadBody)
		}
		body, rest, err := decodeBody(t, b, false)
		if err != nil {
			return nil, err
		}
		if len(rest) > 0 {
			return nil, fmt.Errorf("%w: type %d in a multi leaves %d bytes", errBadBody, t, len(rest))
		}
		m.Parts = append(m.Parts, MultiPart{t, body})
	}
	return m, nil
}

// appendRecord encodes a record.
func appendRecord(dst []byte, rec LogRecord) ([]byte, error) {
	dst = proto.AppendInt(proto.AppendLong(dst, int64(rec.Session)), rec.Cxid)
	dst = proto.AppendLong(proto.AppendLong(dst, int64(rec.Zxid)), rec.TimeMillis)
	dst = proto.AppendInt(dst, int32(rec.Type))
	if !bodyFits(rec.Type, rec.Body) {
		return nil, fmt.Errorf("%w: type %d with a %T", ErrBadContent, rec.Type, rec.Body)
	}
	if rec.Body != nil {
		var err error
		if dst, err = rec.Body.append(dst); err != nil {
			return nil, err
		}
	}
	if rec.HasDigest {
		dst = proto.AppendLong(proto.AppendInt(dst, rec.DigestVersion), int64(rec.Digest))
	}
	return dst, nil
}

func bodyFits(t proto.OpCode, body LogBody) bool {
	ok := false
	switch t {
	case proto.OpCreateSession:
		_, ok = body.(CreateSessionTxn)
	case proto.OpCloseSession:
		_, ok = body.(CloseSessionTxn)
		ok = ok || body == nil
	case proto.OpCreate, proto.OpCreate2:
		_, ok = body.(CreateTxn)
	case proto.OpCreateContainer:
		_, ok = body.(CreateContainerTxn)
	case proto.OpCreateTTL:
		_, ok = body.(CreateTTLTxn)
	case proto.OpDelete, proto.OpDeleteContainer:
		_, ok = body.(DeleteTxn)
	case proto.OpSetData, proto.OpReconfig:
		_, ok = body.(SetDataTxn)
	case proto.OpSetACL:
		_, ok = body.(SetACLTxn)
	case proto.OpCheck:
		_, ok = body.(CheckTxn)
	case proto.OpError:
		_, ok = body.(ErrorTxn)
	case proto.OpMulti:
		_, ok = body.(MultiTxn)
	}
	return ok
}

func (t CreateSessionTxn) append(dst []byte) ([]byte, error) {
	return proto.AppendInt(dst, t.TimeoutMillis), nil
}

func (t CloseSessionTxn) append(dst []byte) ([]byte, error) {
	return proto.AppendStrings(dst, t.Paths), nil
}

func (t CreateTxn) append(dst []byte) ([]byte, error) {
	dst = proto.AppendBuffer(proto.AppendString(dst, t.Path), t.Data)
	dst = proto.AppendBool(proto.AppendACLs(dst, t.ACL), t.Ephemeral)
	if t.Legacy {
		return dst, nil
	}
	return proto.AppendInt(dst, t.ParentCVersion), nil
}

func (t CreateContainerTxn) append(dst []byte) ([]byte, error) {
	dst = proto.AppendBuffer(proto.AppendString(dst, t.Path), t.Data)
	return proto.AppendInt(proto.AppendACLs(dst, t.ACL), t.ParentCVersion), nil
}

func (t CreateTTLTxn) append(dst []byte) ([]byte, error) {
	dst = proto.AppendBuffer(proto.AppendString(dst, t.Path), t.Data)
	dst = proto.AppendInt(proto.AppendACLs(dst, t.ACL), t.ParentCVersion)
	return proto.AppendLong(dst, t.TTLMillis), nil
}

func (t DeleteTxn) append(dst []byte) ([]byte, error) { return proto.AppendString(dst, t.Path), nil }

func (t SetDataTxn) append(dst []byte) ([]byte, error) {
	return proto.AppendInt(proto.AppendBuffer(proto.AppendString(dst, t.Path), t.Data), t.Version), nil
}

func (t SetACLTxn) append(dst []byte) ([]byte, error) {
	return proto.AppendInt(proto.AppendACLs(proto.AppendString(dst, t.Path), t.ACL), t.Version), nil
}

func (t CheckTxn) append(dst []byte) ([]byte, error) {
	return proto.AppendInt(proto.AppendString(dst, t.Path), t.Version), nil
}

func (t ErrorTxn) append(dst []byte) ([]byte, error) { return proto.AppendInt(dst, int32(t.Err)), nil }

func (t MultiTxn) append(dst []byte) ([]byte, error) {
	dst = proto.AppendInt(dst, int32(len(t.Parts)))
	for _, p := range t.Parts {
		if p.Type == proto.OpMulti || !bodyFits(p.Type, p.Body) || p.Body == nil {
			return nil, fmt.Errorf("%w: type %d with a %T in a multi", ErrBadContent, p.Type, p.Body)
		}
		b, err := p.Body.append([]byte{})
		if err != nil {
			return nil, err
		}
		dst = proto.AppendBuffer(proto.AppendInt(dst, int32(p.Type)), b)
	}
	return dst, nil
}
