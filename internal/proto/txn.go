package proto

import (
	"errors"
	"fmt"
)

// CommandVersion is the newest version of the command envelope that this
// build writes and reads. A server writes the version that its own state's
// command level allows, which may be an older one.
const CommandVersion byte = 1

// ErrCommandVersion is returned for a command of a version that this build
// does not know. The server stops on it: skipping a command would split the
// replicas.
var ErrCommandVersion = errors.New("proto: unknown command version")

// Entry switches: what the leader stamps into each log entry beside the time,
// so that apply depends on the log alone.
const (
	SwitchSkipACL       uint32 = 1 << 0 // skipACL=yes
	SwitchEnforceQuota  uint32 = 1 << 1 // enforceQuota=true
	SwitchExtendedTypes uint32 = 1 << 2 // extendedTypesEnabled=true
	SwitchReconfig      uint32 = 1 << 3 // reconfigEnabled=true
	SwitchSASL          uint32 = 1 << 4 // ACL entries of scheme sasl are accepted
	SwitchX509          uint32 = 1 << 5 // ACL entries of scheme x509 are accepted
	SwitchNoDigest      uint32 = 1 << 6 // DigestAuthenticationProvider.enabled=false
	SwitchEnsemble      uint32 = 1 << 7 // the leader is one of several servers, or may become one
	SwitchStandalone    uint32 = 1 << 8 // standaloneEnabled=true: a reconfig may not leave one participant
	SwitchMultiAddress  uint32 = 1 << 9 // multiAddress.enabled=true: a reconfig may give a member several addresses
)

// Origin names the connection that a command came by. A command that the
// server itself proposes has the zero Origin.
type Origin struct {
	Server int32  // server id
	Conn   uint64 // unique among all connections of all runs of that server
}

// SeqLocal is the Seq of every command of a local session: the log has no row
// of it, and its server proposes its commands one by one.
const SeqLocal uint64 = 1 << 63

// TxnHeader is the envelope of a command: who asked, for what, by which
// connection, and as the how-many-eth command of it.
type TxnHeader struct {
	Session    SessionID
	Cxid       int32
	Type       OpCode
	Origin     Origin
	Seq        uint64 // 1 for the first command after create- or renew-session
	Identities []ID   // the connection's, at the time of the request
}

// Txn is a command as the log carries it: the envelope and the request record
// as the client sent it.
type Txn struct {
	TxnHeader
	Body []byte
}

// Append adds the encoded command to dst, in a version that every server of the
// ensemble can read: the command level of the encoder's own state.
func (t *Txn) Append(dst []byte, version byte) []byte {
	dst = append(dst, version)
	dst = AppendLong(dst, int64(t.Session))
	dst = AppendInt(dst, t.Cxid)
	dst = AppendInt(dst, int32(t.Type))
	dst = AppendInt(dst, t.Origin.Server)
	dst = AppendLong(dst, int64(t.Origin.Conn))
	dst = AppendLong(dst, int64(t.Seq))
	dst = AppendInt(dst, int32(len(t.Identities)))
	for _, id := range t.Identities {
		dst = AppendString(AppendString(dst, id.Scheme), id.ID)
	}
	return append(dst, t.Body...)
}

// DecodeTxn reads a command of any version up to newest. Body aliases b. The
// error is ErrCommandVersion, or ErrTruncated for bytes that no version of
// zooraft wrote.
func DecodeTxn(b []byte, newest byte) (Txn, error) {
	if len(b) == 0 {
		return Txn{}, ErrTruncated
	}
	if b[0] == 0 || b[0] > newest {
		return Txn{}, fmt.Errorf("%w %d, newest known is %d", ErrCommandVersion, b[0], newest)
	}
	d := NewDecoder(b[1:])
	t := Txn{TxnHeader: TxnHeader{
		Session: SessionID(d.Long()), Cxid: d.Int(), Type: OpCode(d.Int()),
		Origin: Origin{Server: d.Int(), Conn: uint64(d.Long())}, Seq: uint64(d.Long()),
	}}
	n := d.Count(8)
	for range max(n, 0) {
		t.Identities = append(t.Identities, ID{Scheme: d.String(), ID: d.String()})
	}
	t.Body = d.Rest()
	return t, d.err
}

// CreateSessionBody is the record of createSession and renewSession commands.
type CreateSessionBody struct {
	TimeoutMillis int32 // as negotiated
	LastZxidSeen  Zxid
	Password      []byte // to be stored, or to be compared
}

// CreateSessionBody reads the record.
func (d *Decoder) CreateSessionBody() CreateSessionBody {
	return CreateSessionBody{TimeoutMillis: d.Int(), LastZxidSeen: Zxid(d.Long()), Password: d.Buffer()}
}

// Append adds the record to dst.
func (r *CreateSessionBody) Append(dst []byte) []byte {
	return AppendBuffer(AppendLong(AppendInt(dst, r.TimeoutMillis), int64(r.LastZxidSeen)), r.Password)
}
