// Package snapshot owns file formats: Apache ZooKeeper's snapshot and
// transaction log, read and write, and zooraft's own block beside them.
//
// It knows bytes, not meaning: nodes come and go through callbacks, so it
// imports neither the tree nor the session table. It may not know Raft, may
// not decide when a snapshot is taken, and opens no files: a caller hands in a
// reader or a writer.
//
// # Layout of a snapshot
//
//	int  magic "ZKSN" | int version 2 | long database id
//	int  sessions     | { long id, int timeout }...
//	int  ACL lists    | { long key, vector of ACL }...
//	{ ustring path, buffer data, long ACL key, StatPersisted }...   pre-order, the root as ""
//	ustring "/"
//	SEAL 1             Apache 3.4 and 3.5 end here
//	long zxid | int digest version 2 | long digest
//	SEAL 2             Apache 3.6 to 3.8 end here
//	long zxid
//	SEAL 3             Apache 3.9 ends here
//	long "zooraft1" | int version 1 | long nodes | buffer the owner's block | int CRC-32C
//	SEAL 4             only in files of ours
//
//	SEAL = long Adler-32 of every byte before it, ustring "/"
//
// Apache looks at the last five bytes of a file to tell whether it was
// finished, reads up to the last seal that it knows, and ignores the database
// id. So a file of ours is a valid file of Apache's. Our own database id says
// that the fourth part must follow; without it a file cut exactly behind one
// of the first three seals would pass for an older, complete one. Adler-32 is
// weak on short input and blind to some multi-byte damage; the CRC-32C covers
// every byte from the first one on.
package snapshot

import "errors"

// Sentinels of this room; compare with errors.Is. Each comes wrapped with what
// was being read.
var (
	// ErrNotSnapshot is returned when the input does not begin like a snapshot:
	// it is some other file.
	ErrNotSnapshot = errors.New("snapshot: not a ZooKeeper snapshot")
	// ErrNotLog is returned when the input does not begin like a transaction log.
	ErrNotLog = errors.New("snapshot: not a ZooKeeper transaction log")
	// ErrTruncated is returned when the input ends inside a part: a copy that
	// was cut off or a write that never finished.
	ErrTruncated = errors.New("snapshot: the file ends too early")
	// ErrCorrupt is returned when the bytes contradict their checksum or the
	// format.
	ErrCorrupt = errors.New("snapshot: the file is damaged")
	// ErrBadContent is returned by writers when the caller's callback yields
	// what the format cannot hold, or something else on its second pass.
	ErrBadContent = errors.New("snapshot: content cannot be written")
)
