package tree

import "github.com/zooraft/zooraft/internal/proto"

// indexedFrom is the length from which an ACL list is asked by its index: 33
// entries. A shorter one is read as fast.
const indexedFrom = 33

// aclIndex answers for a long list what Allowed does, by looking identities up:
// a frame holds a list of 45,000 entries, a connection 370 identities, and
// comparing each with each takes 50 ms in which everybody waits. It is never
// changed.
type aclIndex struct {
	world   int32                 // permissions of world:anyone
	exact   map[proto.ID]int32    // of the schemes whose ids compare as text
	sasl    int32                 // of any sasl entry: those of sasl:super
	ranges  map[ipRange]int32     // of the ip entries
	lengths map[ipLength]struct{} // that the ranges have: 162 at most
}

// ipLength is the length of a prefix in an address of 4 or 16 bytes.
type ipLength struct{ addr, bits int }

// ipRange is the addresses that begin alike; what follows the prefix is 0.
type ipRange struct {
	prefix [16]byte
	length ipLength
}

func newIPRange(addr []byte, bits int) ipRange {
	r := ipRange{length: ipLength{len(addr), bits}}
	for i := range addr {
		r.prefix[i] = addr[i] & prefixMask(bits-8*i)
	}
	return r
}

func newACLIndex(acl []proto.ACL) *aclIndex {
	x := &aclIndex{exact: make(map[proto.ID]int32, len(acl)), ranges: map[ipRange]int32{}, lengths: map[ipLength]struct{}{}}
	for _, a := range acl {
		switch a.ID.Scheme {
		case schemeWorld:
			if a.ID.ID == idAnyone {
				x.world |= a.Perms
			}
		case schemeSASL:
			x.sasl |= a.Perms
			x.exact[a.ID] |= a.Perms
		case schemeDigest, schemeX509:
			x.exact[a.ID] |= a.Perms
		case schemeIP:
			if addr, bits, ok := parseIPRange(a.ID.ID); ok {
				r := newIPRange(addr, bits)
				x.ranges[r] |= a.Perms
				x.lengths[r.length] = struct{}{}
			}
		}
	}
	return x
}

// of returns the permissions of one identity, world's aside.
func (x *aclIndex) of(id proto.ID) int32 {
	switch id.Scheme {
	case schemeIP:
		return x.ofAddr(parseIP(id.ID))
	case schemeSASL:
		if id.ID == idSuper {
			return x.sasl
		}
		return x.exact[id]
	case schemeDigest, schemeX509:
		return x.exact[id]
	}
	return 0
}

func (x *aclIndex) ofAddr(addr []byte) int32 {
	var perms int32
	for l := range x.lengths {
		if l.addr == len(addr) {
			perms |= x.ranges[newIPRange(addr, l.bits)]
		}
	}
	return perms
}

// Allowed is the function Allowed for this list. It may be called beside
// others.
func (s *ACLSet) Allowed(perm int32, ids []proto.ID) bool {
	if len(s.acl) < indexedFrom {
		return Allowed(s.acl, perm, ids)
	}
	x := s.index.Load()
	if x == nil {
		x = newACLIndex(s.acl) // several readers at once make equal ones
		s.index.Store(x)
	}
	if x.world&perm != 0 || isSuper(ids) {
		return true
	}
	for _, id := range ids {
		if x.of(id)&perm != 0 {
			return true
		}
	}
	return false
}
