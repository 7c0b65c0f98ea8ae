package tree

import (
	"fmt"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// target is what checks look at in a node.
type target struct {
	number   uint32 // none if the node does not exist yet or may be renumbered
	owner    int64
	version  int32
	aversion int32
	cversion int32
	children int32
	size     int // bytes of data
	acl      *ACLSet
	gone     bool // deleted by an earlier op of the multi
}

// checker plans ops. In a multi, pending holds what earlier ops of it will
// have made of nodes, by path.
type checker struct {
	t       *Tree
	txn     *Txn
	pending map[string]target
	judged  map[judgement]bool
}

// judgement names an ACL list and what was asked of it.
type judgement struct {
	list *ACLSet
	perm int32
}

// judgeOnceFrom is the number of pairs of entries and identities from which a
// multi remembers the judgement: 16.
const judgeOnceFrom = 16

// SequenceLowAt is the value of a sequence counter from which Result.SequenceLow
// is set: two billion of the 2,147,483,647 that it has.
const SequenceLowAt = 2_000_000_000

// plan is an op that has passed all checks and what carrying it out needs.
// Node and parent may be none: then they are found by path.
type plan struct {
	op           proto.OpCode
	path         string
	node, parent uint32
	data         []byte // aliases the request
	acl          []proto.ACL
	owner        int64
	version      int32  // the new version, aversion or, of the parent, cversion
	over         string // see Result.QuotaOver
	low          bool   // see Result.SequenceLow
}

// look finds a node.
func (c *checker) look(path string) (target, bool) {
	if c.pending != nil {
		if p, ok := c.pending[rootKey(path)]; ok {
			return p, !p.gone
		}
	}
	i := c.t.find(path)
	if i == none {
		return target{}, false
	}
	n := c.t.at(i)
	return target{
		number: i, owner: n.stat.EphemeralOwner, version: n.stat.Version, aversion: n.stat.AVersion,
		cversion: n.stat.CVersion, children: n.children, size: len(n.data), acl: n.acl,
	}, true
}

// rootKey maps both names of the root to one.
func rootKey(path string) string {
	if path == "" {
		return proto.PathRoot
	}
	return path
}

// expect notes in a multi what an op will make of a node.
func (c *checker) expect(path string, n target) {
	if c.pending != nil {
		c.pending[rootKey(path)] = n
	}
}

// allowed tells whether the asker has the permission.
func (c *checker) allowed(list *ACLSet, perm int32) bool {
	switch {
	case c.txn.Switches&proto.SwitchSkipACL != 0:
		return true
	case c.pending == nil || len(list.acl)*len(c.txn.Identities) < judgeOnceFrom:
		return list.Allowed(perm, c.txn.Identities)
	}
	// A multi of tens of thousands of ops on one node, from somebody with hundreds
	// of identities, would else hold up everybody for seconds.
	key := judgement{list, perm}
	ok, known := c.judged[key]
	if !known {
		ok = list.Allowed(perm, c.txn.Identities)
		if c.judged == nil {
			c.judged = map[judgement]bool{}
		}
		c.judged[key] = ok
	}
	return ok
}

func (c *checker) enforcesQuota() bool { return c.txn.Switches&proto.SwitchEnforceQuota != 0 }

// plan checks one op. With an error the plan tells only the path.
func (c *checker) plan(r *request) (plan, proto.ErrCode) {
	switch r.Type {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return c.planCreate(r.Type, &r.Create)
	case proto.OpDelete:
		return c.planDelete(&r.Version)
	case proto.OpDeleteContainer:
		return c.planReap(&r.reap)
	case proto.OpSetData:
		return c.planSetData(&r.Data)
	case proto.OpSetACL:
		return c.planSetACL(&r.acl)
	case proto.OpCheck:
		return c.planCheck(&r.Version)
	}
	return plan{op: r.Type}, proto.ErrUnimplemented
}

// parentOf returns everything before the last slash, "" for a top-level node.
// Like Apache it looks at nothing else; a path with NUL has no parent.
func parentOf(path string) (string, bool) {
	cut := strings.LastIndexByte(path, '/')
	if cut < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	return path[:cut], true
}

func sequential(flags int32) bool {
	return flags == proto.CreatePersistentSequential || flags == proto.CreateEphemeralSequential ||
		flags == proto.CreatePersistentSequentialTTL
}

func ephemeral(flags int32) bool {
	return flags == proto.CreateEphemeral || flags == proto.CreateEphemeralSequential
}

// checkMode judges flags and TTL, before anything else of a create.
func (c *checker) checkMode(op proto.OpCode, r *proto.CreateRequest) proto.ErrCode {
	if r.Flags < proto.CreatePersistent || r.Flags > proto.CreatePersistentSequentialTTL {
		return proto.ErrBadArguments
	}
	if r.Flags == proto.CreatePersistentTTL || r.Flags == proto.CreatePersistentSequentialTTL {
		if c.txn.Switches&proto.SwitchExtendedTypes == 0 {
			return proto.ErrUnimplemented
		}
		if r.TTL <= 0 || r.TTL > proto.MaxTTLMillis {
			return proto.ErrBadArguments
		}
	} else if r.TTL >= 0 || op == proto.OpCreateTTL {
		// Apache lets createTTL with a mode without TTL and a negative TTL
		// pass here, and its server ends when it applies it.
		return proto.ErrBadArguments
	}
	if ephemeral(r.Flags) && c.txn.LocalSession {
		return proto.ErrEphemeralOnLocalSession
	}
	return proto.ErrOK
}

// ownerOf returns the persisted ephemeralOwner of a node to be created.
// Container nodes are made by createContainer only, whatever the flags.
func (c *checker) ownerOf(op proto.OpCode, r *proto.CreateRequest) int64 {
	switch {
	case op == proto.OpCreateContainer:
		return proto.ContainerOwner
	case op == proto.OpCreateTTL:
		return proto.TTLOwner(r.TTL)
	case ephemeral(r.Flags):
		return int64(c.txn.Session)
	}
	return 0
}

func (c *checker) planCreate(op proto.OpCode, r *proto.CreateRequest) (plan, proto.ErrCode) {
	p := plan{op: op, path: r.Path, data: r.Data}
	if code := c.checkMode(op, r); code != proto.ErrOK {
		return p, code
	}
	if r.Path == proto.NullString {
		return p, proto.ErrMarshalling
	}
	parentPath, ok := parentOf(r.Path)
	if !ok {
		return p, proto.ErrBadArguments
	}
	var code proto.ErrCode
	if p.acl, code = fixACL(c.txn, r.ACL); code != proto.ErrOK {
		return p, code
	}
	parent, ok := c.look(parentPath)
	if !ok {
		return p, proto.ErrNoNode
	}
	if !c.allowed(parent.acl, proto.PermCreate) {
		return p, proto.ErrNoAuth
	}
	if sequential(r.Flags) {
		p.path = fmt.Sprintf("%s%010d", p.path, parent.cversion)
		p.low = parent.cversion >= SequenceLowAt
	}
	if !proto.ValidPath(p.path) {
		return p, proto.ErrBadArguments
	}
	if _, exists := c.look(p.path); exists {
		return p, proto.ErrNodeExists
	}
	if kind, _ := proto.ClassifyOwner(parent.owner); kind == proto.OwnerSession {
		return p, proto.ErrNoChildrenForEphemerals
	}
	if p.over, code = c.t.checkQuota(p.path, int64(len(r.Data)), 1, c.enforcesQuota()); code != proto.ErrOK {
		return p, code
	}
	p.parent, p.version, p.owner = parent.number, parent.cversion+1, c.ownerOf(op, r)
	if c.pending != nil {
		parent.children++
		parent.cversion = p.version // a full counter wraps within a multi, and only there
		c.expect(parentPath, parent)
		c.expect(p.path, target{owner: p.owner, size: len(r.Data), acl: &ACLSet{acl: p.acl}})
	}
	return p, proto.ErrOK
}

func systemPath(path string) bool {
	return path == proto.PathRoot || path == proto.PathZooKeeper || path == proto.PathQuota || path == proto.PathConfig
}

// planRemoval makes the plan of a deletion that has passed all checks.
func (c *checker) planRemoval(op proto.OpCode, path, parentPath string, n, parent target) plan {
	if c.pending != nil {
		parent.children--
		c.expect(parentPath, parent)
		c.expect(path, target{gone: true})
	}
	return plan{op: op, path: path, node: n.number, parent: parent.number}
}

func (c *checker) planDelete(r *proto.PathVersion) (plan, proto.ErrCode) {
	p := plan{op: proto.OpDelete, path: r.Path}
	if r.Path == proto.NullString {
		return p, proto.ErrMarshalling
	}
	parentPath, ok := parentOf(r.Path)
	if !ok || systemPath(r.Path) {
		return p, proto.ErrBadArguments
	}
	parent, ok := c.look(parentPath)
	if !ok {
		return p, proto.ErrNoNode
	}
	if !c.allowed(parent.acl, proto.PermDelete) {
		return p, proto.ErrNoAuth
	}
	n, ok := c.look(r.Path)
	switch {
	case !ok:
		return p, proto.ErrNoNode
	case !versionFits(n.version, r.Version):
		return p, proto.ErrBadVersion
	case n.children > 0:
		return p, proto.ErrNotEmpty
	}
	return c.planRemoval(proto.OpDelete, r.Path, parentPath, n, parent), proto.ErrOK
}

// versionFits compares a node's version with the one asked for; −1 is any.
func versionFits(have, want int32) bool { return want == -1 || want == have }

func (c *checker) planSetData(r *proto.SetDataRequest) (plan, proto.ErrCode) {
	p := plan{op: proto.OpSetData, path: r.Path, data: r.Data}
	if !proto.ValidPath(r.Path) {
		return p, proto.ErrBadArguments
	}
	n, ok := c.look(r.Path)
	if !ok {
		return p, proto.ErrNoNode
	}
	if !c.allowed(n.acl, proto.PermWrite) {
		return p, proto.ErrNoAuth
	}
	var code proto.ErrCode
	if p.over, code = c.t.checkQuota(r.Path, int64(len(r.Data)-n.size), 0, c.enforcesQuota()); code != proto.ErrOK {
		return p, code
	}
	if !versionFits(n.version, r.Version) {
		return p, proto.ErrBadVersion
	}
	p.node, p.version = n.number, n.version+1
	if c.pending != nil {
		n.version, n.size = p.version, len(r.Data)
		c.expect(r.Path, n)
	}
	return p, proto.ErrOK
}

func (c *checker) planSetACL(r *proto.SetACLRequest) (plan, proto.ErrCode) {
	p := plan{op: proto.OpSetACL, path: r.Path}
	if !proto.ValidPath(r.Path) {
		return p, proto.ErrBadArguments
	}
	var code proto.ErrCode
	if p.acl, code = fixACL(c.txn, r.ACL); code != proto.ErrOK {
		return p, code
	}
	n, ok := c.look(r.Path)
	switch {
	case !ok:
		return p, proto.ErrNoNode
	case !c.allowed(n.acl, proto.PermAdmin):
		return p, proto.ErrNoAuth
	case !versionFits(n.aversion, r.Version):
		return p, proto.ErrBadVersion
	}
	p.node, p.version = n.number, n.aversion+1
	return p, proto.ErrOK
}

func (c *checker) planCheck(r *proto.PathVersion) (plan, proto.ErrCode) {
	p := plan{op: proto.OpCheck, path: r.Path}
	if !proto.ValidPath(r.Path) {
		return p, proto.ErrBadArguments
	}
	n, ok := c.look(r.Path)
	switch {
	case !ok:
		return p, proto.ErrNoNode
	case !c.allowed(n.acl, proto.PermRead):
		return p, proto.ErrNoAuth
	case !versionFits(n.version, r.Version):
		return p, proto.ErrBadVersion
	}
	return p, proto.ErrOK
}
