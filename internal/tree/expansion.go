package tree

import "github.com/zooraft/zooraft/internal/proto"

// authEntryMinBytes is the shortest encoding of an auth entry: perms, two
// lengths and the scheme.
const authEntryMinBytes = 16

// OverExpanded tells whether the auth entries of a multi would become more than
// maxExpandedACL for these identities: 23,000 creates in one frame and some
// hundred identities make millions of entries, and every server would keep
// them. What apply decides may not depend on the build, so whoever proposes a
// multi asks this, and answers with the result: that of a multi one of whose
// ops has a list that is too long. A body that cannot be read is left to apply.
func OverExpanded(body []byte, ids []proto.ID) (Result, bool) {
	each := 0
	for _, id := range ids {
		switch id.Scheme {
		case schemeDigest, schemeSASL, schemeX509:
			each++
		}
	}
	if each*(len(body)/authEntryMinBytes) <= maxExpandedACL {
		return Result{}, false // without decoding it
	}
	ops, err := proto.DecodeMulti(body)
	if err != nil {
		return Result{}, false
	}
	sum := 0
	for i := range ops {
		if sum += each * authEntries(ops[i].Create.ACL); sum > maxExpandedACL {
			return Result{Type: proto.OpMulti, Path: ops[i].Create.Path, Sub: failedMulti(len(ops), i, proto.ErrInvalidACL)}, true
		}
	}
	return Result{}, false
}

// authEntries counts the auth entries of a list, equal ones once.
func authEntries(acl []proto.ACL) int {
	seen := map[proto.ACL]struct{}{}
	for _, a := range acl {
		if a.ID.Scheme == schemeAuth {
			seen[a] = struct{}{}
		}
	}
	return len(seen)
}
