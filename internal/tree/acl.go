package tree

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zooraft/zooraft/internal/proto"
)

// Schemes of identities and ACL entries that ZooKeeper knows by itself.
const (
	schemeWorld  = "world"
	schemeAuth   = "auth"
	schemeSuper  = "super"
	schemeIP     = "ip"
	schemeDigest = "digest"
	schemeSASL   = "sasl"
	schemeX509   = "x509"

	idAnyone = "anyone"
	idSuper  = "super"
)

// ACLSet is one ACL list, shared by all nodes that have it. The list is never
// changed.
type ACLSet struct {
	acl   []proto.ACL
	refs  int                      // nodes that have it
	index atomic.Pointer[aclIndex] // of a long list that was asked; reads make it beside each other
}

// aclTable interns ACL lists. Invariant: an entry is there ⇔ refs > 0.
type aclTable struct {
	sets map[string]*ACLSet // by encoded list
	buf  []byte
	last *ACLSet // acquired last: the nodes of a snapshot mostly share one slice
}

func newACLTable() aclTable { return aclTable{sets: map[string]*ACLSet{}} }

// acquire returns the set of the list, which it may keep.
func (x *aclTable) acquire(acl []proto.ACL) *ACLSet {
	if s := x.last; s != nil && s.refs > 0 && len(acl) > 0 && len(acl) == len(s.acl) && &acl[0] == &s.acl[0] {
		s.refs++
		return s
	}
	x.buf = proto.AppendACLs(x.buf[:0], acl)
	s := x.sets[string(x.buf)]
	if s == nil {
		s = &ACLSet{acl: acl}
		x.sets[string(x.buf)] = s
	}
	s.refs++
	x.last = s
	return s
}

func (x *aclTable) release(s *ACLSet) {
	if s.refs--; s.refs == 0 {
		x.buf = proto.AppendACLs(x.buf[:0], s.acl)
		delete(x.sets, string(x.buf))
	}
}

// Allowed tells whether one of the identities has any of the permission bits
// in perm. A node without ACL allows everything, and so does any identity of
// scheme super.
func Allowed(acl []proto.ACL, perm int32, ids []proto.ID) bool {
	if len(acl) == 0 {
		return true
	}
	if isSuper(ids) {
		return true
	}
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		if a.ID.Scheme == schemeWorld && a.ID.ID == idAnyone {
			return true
		}
		for _, id := range ids {
			if id.Scheme == a.ID.Scheme && matches(id, a.ID.ID) {
				return true
			}
		}
	}
	return false
}

func isSuper(ids []proto.ID) bool {
	return slices.ContainsFunc(ids, func(id proto.ID) bool { return id.Scheme == schemeSuper })
}

// matches compares an identity with the id of an ACL entry of its scheme.
func matches(id proto.ID, want string) bool {
	switch id.Scheme {
	case schemeIP:
		return ipMatches(id.ID, want)
	case schemeDigest, schemeX509:
		return id.ID == want
	case schemeSASL:
		return id.ID == want || id.ID == idSuper
	}
	return false
}

// fixACL checks the list of a create or setACL and replaces auth entries by
// the asker's identities. Beside ErrInvalidACL it can fail with ErrMarshalling,
// where Apache's server trips over a null field.
func fixACL(txn *Txn, acl []proto.ACL) ([]proto.ACL, proto.ErrCode) {
	acl, code := withoutDuplicates(acl)
	if code != proto.ErrOK {
		return nil, code
	}
	if len(acl) == 0 {
		return nil, proto.ErrInvalidACL
	}
	var out []proto.ACL // nil until the first auth entry
	for i, a := range acl {
		if a.ID.Scheme == schemeAuth {
			if out == nil {
				out = append(make([]proto.ACL, 0, len(acl)), acl[:i]...)
			}
			before := len(out)
			if out = appendAuthenticated(out, txn, a.Perms); len(out) == before || len(out) > maxExpandedACL {
				return nil, proto.ErrInvalidACL
			}
			continue
		}
		if code := checkEntry(txn, a.ID); code != proto.ErrOK {
			return nil, code
		}
		if out != nil {
			out = append(out, a)
		}
	}
	if out == nil {
		return acl, proto.ErrOK
	}
	return slices.Clip(out), proto.ErrOK
}

// maxExpandedACL is how many entries a list may have whose auth entries have
// been replaced: 65,536. A frame of auth entries and a few hundred identities
// would else make tens of millions, in a list that no client could read back. A whole
// multi is judged where it is proposed: see OverExpanded.
const maxExpandedACL = 1 << 16

// checkEntry judges an entry's id, in Apache's order.
func checkEntry(txn *Txn, id proto.ID) proto.ErrCode {
	switch {
	case id.Scheme == proto.NullString:
		return proto.ErrInvalidACL
	case id.Scheme == schemeWorld && id.ID == idAnyone:
		return proto.ErrOK
	case id.Scheme == schemeWorld && id.ID == proto.NullString:
		return proto.ErrMarshalling
	case id.Scheme == schemeWorld || !txn.hasProvider(id.Scheme):
		return proto.ErrInvalidACL
	case id.ID == proto.NullString:
		return proto.ErrMarshalling
	case !validID(id):
		return proto.ErrInvalidACL
	}
	return proto.ErrOK
}

// appendAuthenticated appends what an auth entry stands for: the asker's
// identities, without ip, which proves nothing, and super, which is no scheme
// of its own.
func appendAuthenticated(out []proto.ACL, txn *Txn, perms int32) []proto.ACL {
	for _, id := range txn.Identities {
		if id.Scheme != schemeIP && txn.hasProvider(id.Scheme) {
			out = append(out, proto.ACL{Perms: perms, ID: id})
		}
	}
	return out
}

// withoutDuplicates drops entries that are equal to an earlier one. Apache
// compares each entry with the earlier ones, perms first and then the strings
// of the later one, and a null string there ends the request. What matters of
// the earlier ones is kept in sets: comparing all pairs of a full frame takes
// the better part of a minute, and everybody waits for it.
func withoutDuplicates(acl []proto.ACL) ([]proto.ACL, proto.ErrCode) {
	if len(acl) < 2 {
		return acl, proto.ErrOK
	}
	type scheme struct {
		perms int32
		name  string
	}
	out := make([]proto.ACL, 0, len(acl))
	perms, schemes, entries := map[int32]struct{}{}, map[scheme]struct{}{}, make(map[proto.ACL]struct{}, len(acl))
	for _, a := range acl {
		s := scheme{a.Perms, a.ID.Scheme}
		_, samePerms := perms[a.Perms]
		_, sameScheme := schemes[s]
		if samePerms && a.ID.Scheme == proto.NullString || sameScheme && a.ID.ID == proto.NullString {
			return nil, proto.ErrMarshalling
		}
		if _, dup := entries[a]; dup {
			continue
		}
		perms[a.Perms], schemes[s], entries[a] = struct{}{}, struct{}{}, struct{}{}
		out = append(out, a)
	}
	return slices.Clip(out), proto.ErrOK
}

// hasProvider tells whether the ensemble authenticates the scheme.
func (t *Txn) hasProvider(scheme string) bool {
	switch scheme {
	case schemeIP:
		return true
	case schemeDigest:
		return t.Switches&proto.SwitchNoDigest == 0
	case schemeSASL:
		return t.Switches&proto.SwitchSASL != 0
	case schemeX509:
		return t.Switches&proto.SwitchX509 != 0
	}
	return false
}

// validID tells whether the provider of the id's scheme accepts it in an ACL.
func validID(id proto.ID) bool {
	switch id.Scheme {
	case schemeDigest:
		// Exactly one colon, trailing ones not counted, as Java splits.
		return strings.Count(strings.TrimRight(id.ID, ":"), ":") == 1
	case schemeIP:
		_, _, ok := parseIPRange(id.ID)
		return ok
	case schemeSASL:
		return validPrincipal(id.ID)
	case schemeX509:
		return validDN(id.ID)
	}
	return false
}

// validPrincipal accepts names without @, and service[/host]@realm.
func validPrincipal(name string) bool {
	local, realm, ok := strings.Cut(name, "@")
	if !ok {
		return true
	}
	return !strings.ContainsAny(realm, "/@") && strings.Count(local, "/") <= 1
}

// mask hides the hash of a digest id: everything from a colon to the end of
// its line becomes ":x".
func mask(id proto.ID) proto.ID {
	if id.Scheme != schemeDigest || !strings.Contains(id.ID, ":") {
		return id
	}
	var b strings.Builder
	hidden := false
	for _, r := range id.ID {
		switch {
		case r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			hidden = false
		case hidden:
			continue
		case r == ':':
			hidden = true
			b.WriteString(":x")
			continue
		}
		b.WriteRune(r)
	}
	return proto.ID{Scheme: id.Scheme, ID: b.String()}
}
