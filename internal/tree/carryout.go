package tree

import (
	"bytes"
	"slices"

	"github.com/zooraft/zooraft/internal/proto"
)

// carryOut does what a plan says. It cannot fail: every reason to fail was
// found by the checker, in the same state.
func (t *Tree) carryOut(txn *Txn, p *plan, changes []Change) (Result, []Change) {
	res := Result{Type: p.op, Path: p.path, QuotaOver: p.over, SequenceLow: p.low}
	switch p.op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		res.Stat, changes = t.create(txn, p, changes)
	case proto.OpDelete, proto.OpDeleteContainer:
		i := p.node
		if i == none {
			i = t.find(p.path)
		}
		changes = t.delete(txn, i, p.path, changes)
	case proto.OpSetData:
		res.Stat, changes = t.setData(txn, p, changes)
	case proto.OpSetACL:
		res.Stat = t.setACL(p)
	}
	return res, changes
}

func (t *Tree) create(txn *Txn, p *plan, changes []Change) (proto.Stat, []Change) {
	parentPath, _ := parentOf(p.path)
	parentPath = rootKey(parentPath)
	if p.parent == none {
		p.parent = t.find(parentPath)
	}
	// A full counter of creates stays as it is, and with it pzxid: Apache
	// takes the new value only if it is greater.
	if parent := t.at(p.parent); p.version > parent.stat.CVersion {
		parent = t.edit(p.parent)
		t.reap.out(p.parent, parent) // insert looks for its new slot
		parent.stat.CVersion, parent.stat.Pzxid = p.version, txn.Zxid
		t.seal(parent, parentPath)
	}
	i := t.insert(p.parent, p.path, bytes.Clone(p.data), p.acl, proto.StatPersisted{
		Czxid: txn.Zxid, Mzxid: txn.Zxid, Pzxid: txn.Zxid, Ctime: txn.TimeMillis, Mtime: txn.TimeMillis, EphemeralOwner: p.owner,
	})
	st := t.stat(t.at(i))
	t.quotaCreated(p.path)
	t.addUsage(p.path, int64(len(p.data)), 1)
	return st, append(changes,
		Change{Type: proto.EventNodeCreated, Path: p.path, Zxid: txn.Zxid, ACL: t.at(i).acl, DataLength: len(p.data)},
		Change{Type: proto.EventNodeChildrenChanged, Path: parentPath, Zxid: txn.Zxid, ACL: t.at(p.parent).acl})
}

func (t *Tree) delete(txn *Txn, i uint32, path string, changes []Change) []Change {
	parentPath, _ := parentOf(path)
	parentPath = rootKey(parentPath)
	n := *t.at(i)
	parent := t.edit(n.parent)
	parent.stat.Pzxid = max(parent.stat.Pzxid, txn.Zxid)
	t.seal(parent, parentPath)
	t.remove(i, path)
	t.quotaDeleted(path)
	t.addUsage(path, -int64(len(n.data)), -1)
	return append(changes,
		Change{Type: proto.EventNodeDeleted, Path: path, Zxid: txn.Zxid, ACL: n.acl},
		Change{Type: proto.EventNodeChildrenChanged, Path: parentPath, Zxid: txn.Zxid, ACL: t.at(n.parent).acl})
}

func (t *Tree) setData(txn *Txn, p *plan, changes []Change) (proto.Stat, []Change) {
	if p.node == none {
		p.node = t.find(p.path)
	}
	n := t.edit(p.node)
	old := len(n.data)
	t.reap.out(p.node, n)
	n.stat.Version, n.stat.Mzxid, n.stat.Mtime = p.version, txn.Zxid, txn.TimeMillis
	t.reap.in(p.node, n)
	t.putData(n, p.path, bytes.Clone(p.data))
	t.seal(n, p.path)
	st, acl := t.stat(n), n.acl
	t.addUsage(p.path, int64(len(p.data)-old), 0)
	return st, append(changes,
		Change{Type: proto.EventNodeDataChanged, Path: p.path, Zxid: txn.Zxid, ACL: acl, DataLength: len(p.data)})
}

func (t *Tree) setACL(p *plan) proto.Stat {
	n := t.edit(p.node)
	n.stat.AVersion = p.version
	old := n.acl
	n.acl = t.acls.acquire(p.acl)
	t.acls.release(old)
	t.seal(n, p.path)
	return t.stat(n)
}

// SetConfig publishes the membership text in /zookeeper/config: its version is
// −1 always and its mzxid tells the configuration's version.
func (t *Tree) SetConfig(txn Txn, text []byte, changes []Change) (proto.Stat, []Change) {
	p := plan{op: proto.OpSetData, path: proto.PathConfig, data: text, version: -1}
	return t.setData(&txn, &p, changes)
}

// CloseSession removes the session's ephemerals in the order of their paths.
func (t *Tree) CloseSession(txn Txn, changes []Change) []Change {
	set := t.owned[txn.Session]
	type item struct {
		path   string
		number uint32
	}
	items := make([]item, 0, len(set))
	for i := range set {
		items = append(items, item{t.path(i), i})
	}
	slices.SortFunc(items, func(a, b item) int {
		if a.path < b.path {
			return -1
		}
		return 1
	})
	for _, it := range items {
		changes = t.delete(&txn, it.number, it.path, changes)
	}
	delete(t.owned, txn.Session)
	return changes
}

// MayWrite tells whether the asker may write to a node.
func (t *Tree) MayWrite(txn Txn, path string) bool {
	c := checker{t: t, txn: &txn}
	n, ok := c.look(path)
	return ok && c.allowed(n.acl, proto.PermWrite)
}

// ConfigText is the text in /zookeeper/config.
func (t *Tree) ConfigText() []byte {
	if i := t.find(proto.PathConfig); i != none {
		return t.at(i).data
	}
	return nil
}
