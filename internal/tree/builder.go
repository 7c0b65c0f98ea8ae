package tree

import (
	"errors"
	"fmt"

	"github.com/zooraft/zooraft/internal/proto"
)

// Errors of a Builder.
var (
	// ErrNoParent is returned when a node is added before its parent.
	ErrNoParent = errors.New("tree: node has no parent")
	// ErrDuplicate is returned when a path is added twice.
	ErrDuplicate = errors.New("tree: node is there twice")
	// ErrEphemeralParent is returned for a child of an ephemeral, which no
	// server lets come into being.
	ErrEphemeralParent = errors.New("tree: node is below an ephemeral")
	// ErrPath is returned for a path that is none.
	ErrPath = errors.New("tree: impossible path")
)

// Builder makes a tree from the nodes of a snapshot.
type Builder struct {
	// Recount makes Tree write the true usage into all quota stats nodes. It
	// is for snapshots that Apache wrote while writes went on; in our own the
	// stats are exact, and what a client stored there must stay equal on all
	// replicas.
	Recount bool

	t       *Tree
	hasRoot bool
	// The parent of the node before: siblings mostly follow each other.
	parentPath string
	parent     uint32
}

// NewBuilder returns a builder without nodes.
func NewBuilder() *Builder {
	b := &Builder{t: newEmpty()}
	b.t.insertRoot([]byte{}, proto.OpenACL, proto.StatPersisted{})
	return b
}

// Add adds a node; its parent must be there, and the root ("" or "/") comes
// first if at all. Data and acl are kept. A nil acl stands for Apache's
// shorthand of world:anyone with all permissions.
func (b *Builder) Add(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
	if acl == nil {
		acl = proto.OpenACL
	}
	if path == "" || path == proto.PathRoot {
		if b.hasRoot || b.t.nodes > 1 {
			return fmt.Errorf("%w: /", ErrDuplicate)
		}
		b.hasRoot = true
		b.t = newEmpty()
		b.t.insertRoot(data, acl, st)
		return nil
	}
	parent, name, ok := proto.SplitPath(path)
	if !ok || name == "" {
		return fmt.Errorf("%w: %q", ErrPath, path)
	}
	p := b.parent
	if p == none || parent != b.parentPath {
		if p = b.t.find(parent); p == none {
			return fmt.Errorf("%w: %q", ErrNoParent, path)
		}
		b.parentPath, b.parent = parent, p
	}
	if kind, _ := proto.ClassifyOwner(b.t.at(p).stat.EphemeralOwner); kind == proto.OwnerSession {
		return fmt.Errorf("%w: %q", ErrEphemeralParent, path)
	}
	h := b.t.index.hash(path)
	if b.t.findHashed(h, path) != none {
		return fmt.Errorf("%w: %q", ErrDuplicate, path)
	}
	b.t.insertHashed(h, p, path, data, acl, st)
	if prefix, kind, ok := quotaNode(path); ok && kind == quotaLimitsName {
		b.t.quotas[prefix] = struct{}{}
	}
	return nil
}

// Tree returns the tree, with those nodes added that every server has. The
// builder must not be used any more.
func (b *Builder) Tree() (*Tree, error) {
	t := b.t
	t.addSystemNodes()
	if b.Recount {
		for prefix := range t.quotas {
			t.recount(prefix)
		}
	}
	return t, nil
}
