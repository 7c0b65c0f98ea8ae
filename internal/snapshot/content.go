package snapshot

import "github.com/zooraft/zooraft/internal/proto"

// Session is what Apache's format keeps of a session. Passwords and owners
// travel in the extension.
type Session struct {
	ID            proto.SessionID
	TimeoutMillis int32
}

// NodeFunc receives one node. The slices belong to the caller and must not be
// changed; acl may be shared by many nodes.
type NodeFunc func(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error

// Content is what Write puts into a file.
type Content struct {
	Sessions []Session

	// Nodes yields every node in pre-order, a parent before its children, the
	// root first as "/" or "". It stops at the first error and returns it. Write
	// calls it twice, because the table of ACL lists precedes the nodes in the
	// file, and both times it must yield the same: hand in a frozen view.
	//
	// data nil (null) and data of length 0 are kept apart. A nil acl is written
	// as the open one, as Apache does.
	Nodes func(yield NodeFunc) error

	// Zxid is the last transaction contained; Digest the tree's digest (version
	// 2) at that point.
	Zxid   proto.Zxid
	Digest uint64

	// Extension is the owner's block, opaque here. Nil writes a plain Apache
	// file, which cannot be told from an older complete one when it is cut
	// behind one of its seals: for export only.
	Extension []byte
}

// Sink receives what Read finds, sessions before nodes. An error ends the
// reading and is returned by Read as it is.
type Sink interface {
	Session(Session) error

	// Node receives nodes in the file's order, the root first as "/". data is
	// the sink's to keep; acl is shared by all nodes with that list and must not
	// be changed. acl is nil when the file lacks the list, which happens only in
	// Apache's files: they are written while writes go on, and the transaction
	// that brought the list is in the log behind the snapshot.
	//
	// Whether a parent exists is the sink's business, as is what to do with a
	// path that comes twice.
	Node(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error
}

// Trailer is what stands behind the nodes.
type Trailer struct {
	// Zxid is the last transaction contained, from the 3.9 part or from that of
	// the digest. Files before 3.6 have none. In a file of Apache's, nodes may be
	// newer and the log must be replayed from the zxid in its name, which can be
	// lower than this one: it was taken before the writing began.
	Zxid    proto.Zxid
	HasZxid bool

	// Digest is the tree's digest of version 2 at DigestZxid. Apache writes
	// DigestZxid 0 when it has none yet; HasDigest is false then.
	Digest     uint64
	DigestZxid proto.Zxid
	HasDigest  bool

	// Extension is nil in a file of Apache's and never nil in one of ours.
	Extension []byte
}

const (
	magicSnapshot  int32 = 0x5a4b534e // "ZKSN"
	formatVersion  int32 = 2
	apacheDatabase int64 = -1
	ourDatabase    int64 = 0x7a6f6f7261667400 // "zooraft\0"

	extensionMagic   int64 = 0x7a6f6f7261667431 // "zooraft1"
	extensionVersion int32 = 1
	digestVersion    int32 = 2

	// openACLKey stands for world:anyone with all permissions, which is not
	// listed in the table.
	openACLKey int64 = -1

	// sealLen is the length of a seal in bytes.
	sealLen = 8 + 5
	// endOfNodes is the path that ends the nodes; also the text of each seal.
	endOfNodes = "/"
)
