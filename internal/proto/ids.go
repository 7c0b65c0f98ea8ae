package proto

import "strconv"

// Zxid is ZooKeeper's transaction id: the high 32 bits are the epoch, the low
// 32 bits a counter within it. It is signed on the wire, as in ZooKeeper.
type Zxid int64

// MakeZxid joins an epoch and a counter.
func MakeZxid(epoch, counter uint32) Zxid {
	return Zxid(uint64(epoch)<<32 | uint64(counter))
}

// Epoch returns the high 32 bits.
func (z Zxid) Epoch() uint32 { return uint32(uint64(z) >> 32) }

// Counter returns the low 32 bits.
func (z Zxid) Counter() uint32 { return uint32(uint64(z)) }

// String prints the zxid as ZooKeeper's tools do: 0x and lower-case hex.
func (z Zxid) String() string { return "0x" + strconv.FormatUint(uint64(z), 16) }

// SessionID identifies a client session. 0 means no session.
type SessionID int64

// String prints the id as ZooKeeper's tools do: 0x and lower-case hex.
func (s SessionID) String() string { return "0x" + strconv.FormatUint(uint64(s), 16) }

// PasswordLen is the length of a session password in bytes (ZooKeeper's).
const PasswordLen = 16

// ContainerOwner is the persisted ephemeralOwner of a container node; no
// session may have it as its id.
const ContainerOwner int64 = -0x8000000000000000

// MaxTTLMillis is the longest lifetime of a TTL node, in milliseconds.
const MaxTTLMillis int64 = 0xffffffffff

// ttlOwnerMark is the top byte of the persisted ephemeralOwner of a TTL node.
const ttlOwnerMark = uint64(0xff) << 56

// TTLOwner returns the persisted ephemeralOwner of a node that lives for
// ttlMillis without being changed.
func TTLOwner(ttlMillis int64) int64 {
	return int64(ttlOwnerMark | uint64(ttlMillis))
}

// OwnerKind tells what a persisted ephemeralOwner stands for.
type OwnerKind uint8

// The kinds of persisted ephemeralOwner.
const (
	OwnerNone OwnerKind = iota
	OwnerSession
	OwnerContainer
	OwnerTTL
)

// ClassifyOwner tells what the persisted ephemeralOwner stands for and, for
// TTL nodes, the lifetime in milliseconds. The answer depends on the value
// alone, not on a switch of the server, so that replicas agree: session ids
// with the top byte 0xff are never minted here, as no server has the number 255.
func ClassifyOwner(owner int64) (kind OwnerKind, ttlMillis int64) {
	switch {
	case owner == 0:
		return OwnerNone, 0
	case owner == ContainerOwner:
		return OwnerContainer, 0
	case uint64(owner)>>56 == 0xff:
		return OwnerTTL, owner & MaxTTLMillis
	default:
		return OwnerSession, 0
	}
}
