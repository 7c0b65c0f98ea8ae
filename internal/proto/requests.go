package proto

import "errors"

// ErrNullField is returned when a multi names a null ACL list: ZooKeeper's
// server fails on it outside its decoder, so that no zxid is taken.
var ErrNullField = errors.New("proto: a field is null that may not be")

// ErrMultiOps is returned when a multi has an op of a type or with a create
// flag that it may not have, or mixes reads with writes.
var ErrMultiOps = errors.New("proto: multi has an illegal op")

// Create flags (CreateMode).
const (
	CreatePersistent              int32 = 0
	CreateEphemeral               int32 = 1
	CreatePersistentSequential    int32 = 2
	CreateEphemeralSequential     int32 = 3
	CreateContainer               int32 = 4
	CreatePersistentTTL           int32 = 5
	CreatePersistentSequentialTTL int32 = 6
)

// CreateRequest is the body of create, create2, createContainer and, with TTL,
// createTTL. Path may be NullString, Data nil for null, ACL nil for null.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
	TTL   int64 // ms; −1 where the record has none
}

// CreateRequest reads the record of op.
func (d *Decoder) CreateRequest(op OpCode) CreateRequest {
	r := CreateRequest{Path: d.String(), Data: d.Buffer(), ACL: d.ACLs(), Flags: d.Int(), TTL: -1}
	if op == OpCreateTTL {
		r.TTL = d.Long()
	}
	return r
}

// Append adds the record of op to dst.
func (r *CreateRequest) Append(dst []byte, op OpCode) []byte {
	dst = AppendACLs(AppendBuffer(AppendString(dst, r.Path), r.Data), r.ACL)
	dst = AppendInt(dst, r.Flags)
	if op == OpCreateTTL {
		dst = AppendLong(dst, r.TTL)
	}
	return dst
}

// PathVersion is the body of delete and check.
type PathVersion struct {
	Path    string
	Version int32 // −1 matches any
}

// PathVersion reads the record.
func (d *Decoder) PathVersion() PathVersion {
	return PathVersion{Path: d.String(), Version: d.Int()}
}

// Append adds the record to dst.
func (r *PathVersion) Append(dst []byte) []byte {
	return AppendInt(AppendString(dst, r.Path), r.Version)
}

// SetDataRequest is the body of setData.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// SetDataRequest reads the record.
func (d *Decoder) SetDataRequest() SetDataRequest {
	return SetDataRequest{Path: d.String(), Data: d.Buffer(), Version: d.Int()}
}

// Append adds the record to dst.
func (r *SetDataRequest) Append(dst []byte) []byte {
	return AppendInt(AppendBuffer(AppendString(dst, r.Path), r.Data), r.Version)
}

// SetACLRequest is the body of setACL; Version is compared with aversion.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// SetACLRequest reads the record.
func (d *Decoder) SetACLRequest() SetACLRequest {
	return SetACLRequest{Path: d.String(), ACL: d.ACLs(), Version: d.Int()}
}

// Append adds the record to dst.
func (r *SetACLRequest) Append(dst []byte) []byte {
	return AppendInt(AppendACLs(AppendString(dst, r.Path), r.ACL), r.Version)
}

// PathWatch is the body of exists, getData, getChildren and getChildren2.
type PathWatch struct {
	Path  string
	Watch bool
}

// PathWatch reads the record.
func (d *Decoder) PathWatch() PathWatch { return PathWatch{Path: d.String(), Watch: d.Bool()} }

// Append adds the record to dst.
func (r *PathWatch) Append(dst []byte) []byte {
	return AppendBool(AppendString(dst, r.Path), r.Watch)
}

// PathType is the body of checkWatches and removeWatches (a WatcherType) and
// of addWatch (a mode).
type PathType struct {
	Path string
	Type int32
}

// PathType reads the record.
func (d *Decoder) PathType() PathType { return PathType{Path: d.String(), Type: d.Int()} }

// Append adds the record to dst.
func (r *PathType) Append(dst []byte) []byte { return AppendInt(AppendString(dst, r.Path), r.Type) }

// ReconfigRequest is the body of reconfig. The strings may be NullString.
type ReconfigRequest struct {
	Joining, Leaving, NewMembers string
	CurConfigID                  int64
}

// ReconfigRequest reads the record.
func (d *Decoder) ReconfigRequest() ReconfigRequest {
	return ReconfigRequest{Joining: d.String(), Leaving: d.String(), NewMembers: d.String(), CurConfigID: d.Long()}
}

// Append adds the record to dst.
func (r *ReconfigRequest) Append(dst []byte) []byte {
	dst = AppendString(AppendString(AppendString(dst, r.Joining), r.Leaving), r.NewMembers)
	return AppendLong(dst, r.CurConfigID)
}

// MultiHeader stands before each op of a multi request and each result of its
// answer, and with Done closes the list.
type MultiHeader struct {
	Type OpCode
	Done bool
	Err  ErrCode
}

// MultiHeader reads the record.
func (d *Decoder) MultiHeader() MultiHeader {
	return MultiHeader{Type: OpCode(d.Int()), Done: d.Bool(), Err: ErrCode(d.Int())}
}

// AppendMultiHeader adds the record to dst.
func AppendMultiHeader(dst []byte, h MultiHeader) []byte {
	return AppendInt(AppendBool(AppendInt(dst, int32(h.Type)), h.Done), int32(h.Err))
}

// MultiEnd is the header that closes a multi.
var MultiEnd = MultiHeader{Type: OpError, Done: true, Err: -1}

// MultiOp is one operation of a multi. Type tells which field is set, and may
// differ from the type on the wire where ZooKeeper too takes another one from
// the create flag.
type MultiOp struct {
	Type    OpCode
	Create  CreateRequest  // create, create2, createContainer, createTTL
	Version PathVersion    // delete, check
	Data    SetDataRequest // setData
	Read    PathWatch      // getData, getChildren
}

// path is the path that the op is about.
func (o *MultiOp) path() string {
	switch o.Type {
	case OpDelete, OpCheck:
		return o.Version.Path
	case OpSetData:
		return o.Data.Path
	case OpGetData, OpGetChildren:
		return o.Read.Path
	}
	return o.Create.Path
}

// RequestPath is the path that a request's body begins with; false if it begins
// with none or is broken.
func RequestPath(op OpCode, body []byte) (string, bool) {
	switch op {
	case OpMulti, OpMultiRead, OpPing, OpCloseSession, OpWhoAmI, OpSetWatches, OpSetWatches2, OpReconfig, OpAuth, OpSASL:
		return "", false
	}
	d := NewDecoder(body)
	path := d.String()
	return path, d.Err() == nil
}

// RequestPaths are the paths of all ops of a multi or multiRead, or the one of
// another request. A broken request has none.
func RequestPaths(op OpCode, body []byte) (paths []string) {
	if op != OpMulti && op != OpMultiRead {
		if path, ok := RequestPath(op, body); ok {
			paths = append(paths, path)
		}
		return paths
	}
	ops, err := DecodeMulti(body)
	if err != nil {
		return nil
	}
	for i := range ops {
		paths = append(paths, ops[i].path())
	}
	return paths
}

// isRead tells whether the op belongs into a multiRead.
func (o *MultiOp) isRead() bool { return o.Type == OpGetData || o.Type == OpGetChildren }

// DecodeMulti reads the body of multi or multiRead. Errors are ErrTruncated,
// ErrMultiOps and ErrNullField; each is ErrMarshalling to the client.
func DecodeMulti(body []byte) ([]MultiOp, error) {
	d := NewDecoder(body)
	var ops []MultiOp
	for {
		h := d.MultiHeader()
		if d.err != nil {
			return nil, d.err
		}
		if h.Done {
			return ops, nil
		}
		op, err := d.multiOp(h.Type)
		if err != nil {
			return nil, err
		}
		if d.err != nil {
			return nil, d.err
		}
		if len(ops) > 0 && ops[0].isRead() != op.isRead() {
			return nil, ErrMultiOps
		}
		ops = append(ops, op)
	}
}

func (d *Decoder) multiOp(t OpCode) (MultiOp, error) {
	op := MultiOp{Type: t}
	switch t {
	case OpCreate, OpCreate2, OpCreateContainer:
		op.Create = d.CreateRequest(t)
		switch f := op.Create.Flags; {
		case d.err != nil:
		case f < CreatePersistent || f > CreatePersistentSequentialTTL:
			return op, ErrMultiOps
		case op.Create.ACL == nil:
			return op, ErrNullField
		case f >= CreatePersistentTTL:
			return op, ErrMultiOps
		case f == CreateContainer:
			op.Type = OpCreateContainer
		}
	case OpCreateTTL:
		op.Create = d.CreateRequest(t)
		switch f := op.Create.Flags; {
		case f == CreatePersistentTTL || f == CreatePersistentSequentialTTL:
		case f == CreateContainer:
			op.Type, op.Create.TTL = OpCreateContainer, -1
		default:
			op.Type, op.Create.TTL = OpCreate, -1
		}
	case OpDelete, OpCheck:
		op.Version = d.PathVersion()
	case OpSetData:
		op.Data = d.SetDataRequest()
	case OpGetData, OpGetChildren:
		// ZooKeeper drops the watch flag here: a multiRead sets no watch.
		op.Read = PathWatch{Path: d.PathWatch().Path}
	default:
		return op, ErrMultiOps
	}
	return op, nil
}

// AppendMulti adds a multi request's body to dst.
func AppendMulti(dst []byte, ops []MultiOp) []byte {
	for i := range ops {
		op := &ops[i]
		dst = AppendMultiHeader(dst, MultiHeader{Type: op.Type, Err: -1})
		switch op.Type {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			dst = op.Create.Append(dst, op.Type)
		case OpDelete, OpCheck:
			dst = op.Version.Append(dst)
		case OpSetData:
			dst = op.Data.Append(dst)
		case OpGetData, OpGetChildren:
			dst = op.Read.Append(dst)
		}
	}
	return AppendMultiHeader(dst, MultiEnd)
}
