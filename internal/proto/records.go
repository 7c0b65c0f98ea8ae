package proto

import "strings"

// Permission bits of an ACL entry. Higher bits are stored as given.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// ID is an identity: of a connection, or named by an ACL entry. Either field
// may be NullString when it came from a client.
type ID struct {
	Scheme, ID string
}

// UserName is what whoAmI shows of an identity: a digest's user, the id of
// other schemes that have one, nothing for the rest.
func (id ID) UserName() string {
	switch id.Scheme {
	case "digest":
		user, _, _ := strings.Cut(id.ID, ":")
		return user
	case "ip", "sasl", "x509":
		return id.ID
	}
	return ""
}

// ACL is one access control entry.
type ACL struct {
	Perms int32
	ID    ID
}

// OpenACL is world:anyone with all permissions.
var OpenACL = []ACL{{Perms: PermAll, ID: ID{Scheme: "world", ID: "anyone"}}}

// StatLen is the encoded length of a Stat in bytes.
const StatLen = 68

// Stat is a node's metadata as a client sees it: CVersion counts creates and
// deletes of children, EphemeralOwner is 0 for all but ephemerals.
type Stat struct {
	Czxid, Mzxid   Zxid
	Ctime, Mtime   int64 // Unix ms
	Version        int32
	CVersion       int32
	AVersion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          Zxid
}

// AppendStat adds the record to dst.
func AppendStat(dst []byte, s *Stat) []byte {
	dst = AppendLong(dst, int64(s.Czxid))
	dst = AppendLong(dst, int64(s.Mzxid))
	dst = AppendLong(dst, s.Ctime)
	dst = AppendLong(dst, s.Mtime)
	dst = AppendInt(dst, s.Version)
	dst = AppendInt(dst, s.CVersion)
	dst = AppendInt(dst, s.AVersion)
	dst = AppendLong(dst, s.EphemeralOwner)
	dst = AppendInt(dst, s.DataLength)
	dst = AppendInt(dst, s.NumChildren)
	return AppendLong(dst, int64(s.Pzxid))
}

// Stat reads a Stat record.
func (d *Decoder) Stat() Stat {
	return Stat{
		Czxid: Zxid(d.Long()), Mzxid: Zxid(d.Long()), Ctime: d.Long(), Mtime: d.Long(),
		Version: d.Int(), CVersion: d.Int(), AVersion: d.Int(), EphemeralOwner: d.Long(),
		DataLength: d.Int(), NumChildren: d.Int(), Pzxid: Zxid(d.Long()),
	}
}

// ACLs reads a vector of ACL entries; nil stands for null.
func (d *Decoder) ACLs() []ACL {
	n := d.Count(12)
	if n < 0 || d.err != nil {
		return nil
	}
	out := make([]ACL, 0, n)
	for range n {
		out = append(out, ACL{Perms: d.Int(), ID: ID{Scheme: d.String(), ID: d.String()}})
	}
	if d.err != nil {
		return nil
	}
	return out
}

// AppendACLs adds a vector of ACL entries; nil becomes null.
func AppendACLs(dst []byte, acls []ACL) []byte {
	if acls == nil {
		return AppendInt(dst, -1)
	}
	dst = AppendInt(dst, int32(len(acls)))
	for _, a := range acls {
		dst = AppendString(AppendString(AppendInt(dst, a.Perms), a.ID.Scheme), a.ID.ID)
	}
	return dst
}

// RequestHeader starts every request after the connect request: 8 bytes.
type RequestHeader struct {
	Xid  int32
	Type OpCode
}

// RequestHeader reads the record.
func (d *Decoder) RequestHeader() RequestHeader {
	return RequestHeader{Xid: d.Int(), Type: OpCode(d.Int())}
}

// ReplyHeader starts every reply: 16 bytes. When Err is not ErrOK no body
// follows (the exceptions are listed in docs/protocol.md).
type ReplyHeader struct {
	Xid  int32
	Zxid Zxid
	Err  ErrCode
}

// ReplyHeader reads the record.
func (d *Decoder) ReplyHeader() ReplyHeader {
	return ReplyHeader{Xid: d.Int(), Zxid: Zxid(d.Long()), Err: ErrCode(d.Int())}
}

// AppendReplyHeader adds the record to dst.
func AppendReplyHeader(dst []byte, h ReplyHeader) []byte {
	return AppendInt(AppendLong(AppendInt(dst, h.Xid), int64(h.Zxid)), int32(h.Err))
}

// ConnectRequest is the first frame of a connection; it has no header.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    Zxid
	TimeoutMillis   int32
	SessionID       SessionID
	Password        []byte
	ReadOnly        bool
	// HasReadOnly tells whether the optional last byte was there; the answer
	// carries its own only then.
	HasReadOnly bool
}

// DecodeConnectRequest reads a connect frame.
func DecodeConnectRequest(frame []byte) (ConnectRequest, error) {
	d := NewDecoder(frame)
	r := ConnectRequest{
		ProtocolVersion: d.Int(), LastZxidSeen: Zxid(d.Long()), TimeoutMillis: d.Int(),
		SessionID: SessionID(d.Long()), Password: d.Buffer(),
	}
	if d.err == nil && len(d.Rest()) > 0 {
		r.ReadOnly, r.HasReadOnly = d.Bool(), true
	}
	return r, d.err
}

// Append adds the record to dst.
func (r *ConnectRequest) Append(dst []byte) []byte {
	dst = AppendLong(AppendInt(dst, r.ProtocolVersion), int64(r.LastZxidSeen))
	dst = AppendLong(AppendInt(dst, r.TimeoutMillis), int64(r.SessionID))
	dst = AppendBuffer(dst, r.Password)
	if r.HasReadOnly {
		dst = AppendBool(dst, r.ReadOnly)
	}
	return dst
}

// ConnectResponse answers a connect frame. A zero TimeoutMillis and SessionID
// with a zero password mean that the session has expired.
type ConnectResponse struct {
	ProtocolVersion int32
	TimeoutMillis   int32
	SessionID       SessionID
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// DecodeConnectResponse reads a connect answer.
func DecodeConnectResponse(frame []byte) (ConnectResponse, error) {
	d := NewDecoder(frame)
	r := ConnectResponse{
		ProtocolVersion: d.Int(), TimeoutMillis: d.Int(),
		SessionID: SessionID(d.Long()), Password: d.Buffer(),
	}
	if d.err == nil && len(d.Rest()) > 0 {
		r.ReadOnly, r.HasReadOnly = d.Bool(), true
	}
	return r, d.err
}

// Append adds the record to dst.
func (r *ConnectResponse) Append(dst []byte) []byte {
	dst = AppendInt(AppendInt(dst, r.ProtocolVersion), r.TimeoutMillis)
	dst = AppendBuffer(AppendLong(dst, int64(r.SessionID)), r.Password)
	if r.HasReadOnly {
		dst = AppendBool(dst, r.ReadOnly)
	}
	return dst
}

// AuthPacket carries credentials.
type AuthPacket struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// AuthPacket reads the record.
func (d *Decoder) AuthPacket() AuthPacket {
	return AuthPacket{Type: d.Int(), Scheme: d.String(), Auth: d.Buffer()}
}

// Append adds the record to dst.
func (r *AuthPacket) Append(dst []byte) []byte {
	return AppendBuffer(AppendString(AppendInt(dst, r.Type), r.Scheme), r.Auth)
}
