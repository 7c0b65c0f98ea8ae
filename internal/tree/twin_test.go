package tree

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// twin is the tree written a second time in the simplest way: a map of paths,
// copied whole before each command so that a failed one can be forgotten.
type twin struct {
	nodes map[string]twinNode
}

type twinNode struct {
	data []byte
	acl  []proto.ACL
	st   proto.StatPersisted
}

func newTwin() *twin {
	return &twin{nodes: map[string]twinNode{
		"/":                 {data: []byte{}, acl: proto.OpenACL},
		"/zookeeper":        {data: []byte{}, acl: proto.OpenACL},
		"/zookeeper/quota":  {data: []byte{}, acl: proto.OpenACL},
		"/zookeeper/config": {data: []byte{}, acl: []proto.ACL{{Perms: 1, ID: proto.OpenACL[0].ID}}, st: proto.StatPersisted{AVersion: -1}},
	}}
}

func (w *twin) clone() *twin {
	c := &twin{nodes: make(map[string]twinNode, len(w.nodes))}
	for p, n := range w.nodes {
		c.nodes[p] = n
	}
	return c
}

func twinParent(path string) string {
	if p := path[:strings.LastIndex(path, "/")]; p != "" {
		return p
	}
	return "/"
}

func (w *twin) children(path string) int {
	n := 0
	for p := range w.nodes {
		if p != "/" && twinParent(p) == path {
			n++
		}
	}
	return n
}

func (w *twin) stat(path string) proto.Stat {
	n := w.nodes[path]
	return n.st.Wire(len(n.data), w.children(path))
}

func (w *twin) count() int { return len(w.nodes) + 1 }

// twinDo is one command on the way: base is the state before it.
type twinDo struct {
	*twin
	base    *twin
	txn     *Txn
	changes []Change
}

// apply returns the reply body, the error and the changes.
func (w *twin) apply(txn Txn, op proto.OpCode, body []byte) ([]byte, proto.ErrCode, []Change) {
	do := &twinDo{twin: w.clone(), base: w, txn: &txn}
	if op != proto.OpMulti {
		m := proto.MultiOp{Type: op}
		d := proto.NewDecoder(body)
		var acl proto.SetACLRequest
		switch op {
		case proto.OpDelete:
			m.Version = d.PathVersion()
		case proto.OpSetData:
			m.Data = d.SetDataRequest()
		case proto.OpSetACL:
			acl = d.SetACLRequest()
		default:
			m.Create = d.CreateRequest(op)
		}
		if d.Err() != nil {
			return nil, proto.ErrMarshalling, nil
		}
		res, code := do.one(&m, &acl)
		if code != proto.ErrOK {
			return nil, code, nil
		}
		w.nodes = do.nodes
		return AppendResult(nil, op, &res), code, do.changes
	}
	ops, err := proto.DecodeMulti(body)
	if err != nil {
		return nil, proto.ErrMarshalling, nil
	}
	all := Result{}
	for i := range ops {
		if multiPath(&ops[i]) == proto.NullString || ops[i].Type == proto.OpGetData || ops[i].Type == proto.OpGetChildren {
			return nil, proto.ErrMarshalling, nil
		}
	}
	for i := range ops {
		res, code := do.one(&ops[i], nil)
		if code == proto.ErrMarshalling {
			return nil, code, nil
		}
		if code != proto.ErrOK {
			var out []byte
			for j := range ops {
				c := proto.ErrOK
				if j == i {
					c = code
				} else if j > i {
					c = -2
				}
				out = proto.AppendInt(proto.AppendMultiHeader(out, proto.MultiHeader{Type: -1, Err: c}), int32(c))
			}
			return proto.AppendMultiHeader(out, proto.MultiEnd), proto.ErrOK, nil
		}
		all.Sub = append(all.Sub, res)
	}
	w.nodes = do.nodes
	return AppendResult(nil, op, &all), proto.ErrOK, do.changes
}

func (d *twinDo) may(path string, perm int32) bool {
	if d.txn.Switches&proto.SwitchSkipACL != 0 {
		return true
	}
	for _, a := range d.nodes[path].acl {
		for _, id := range append([]proto.ID{{Scheme: "world", ID: "anyone"}}, d.txn.Identities...) {
			if id.Scheme == "super" || a.Perms&perm != 0 && a.ID == id {
				return true
			}
		}
	}
	return false
}

func (d *twinDo) event(t proto.EventType, path string, written int) {
	d.changes = append(d.changes, Change{Type: t, Path: path, Zxid: d.txn.Zxid, ACL: &ACLSet{acl: d.nodes[path].acl}, DataLength: written})
}

// fix knows the schemes that the random histories use.
func (d *twinDo) fix(acl []proto.ACL) []proto.ACL {
	var out []proto.ACL
	for i, a := range acl {
		if slices.Index(acl, a) < i {
			continue
		}
		switch a.ID.Scheme {
		case "world", "digest":
			out = append(out, a)
		case "auth":
			n := len(out)
			for _, id := range d.txn.Identities {
				if id.Scheme == "digest" {
					out = append(out, proto.ACL{Perms: a.Perms, ID: id})
				}
			}
			if n == len(out) {
				return nil
			}
		default:
			return nil
		}
	}
	return out
}

func (d *twinDo) one(m *proto.MultiOp, acl *proto.SetACLRequest) (Result, proto.ErrCode) {
	switch m.Type {
	case proto.OpDelete:
		return d.delete(m.Version.Path, m.Version.Version)
	case proto.OpSetData:
		return d.set(m.Data.Path, m.Data.Data, m.Data.Version)
	case proto.OpSetACL:
		return d.setACL(acl.Path, acl.ACL, acl.Version)
	case proto.OpCheck:
		path := m.Version.Path
		n, ok := d.nodes[path]
		switch {
		case !proto.ValidPath(path):
			return Result{}, proto.ErrBadArguments
		case !ok:
			return Result{}, proto.ErrNoNode
		case !d.may(path, proto.PermRead):
			return Result{}, proto.ErrNoAuth
		case m.Version.Version != -1 && m.Version.Version != n.st.Version:
			return Result{}, proto.ErrBadVersion
		}
		return Result{Type: m.Type}, proto.ErrOK
	}
	return d.create(m.Type, m.Create)
}

func (d *twinDo) create(op proto.OpCode, r proto.CreateRequest) (Result, proto.ErrCode) {
	isTTL := r.Flags == 5 || r.Flags == 6
	owner := int64(0)
	switch {
	case r.Flags < 0 || r.Flags > 6:
		return Result{}, proto.ErrBadArguments
	case isTTL && d.txn.Switches&proto.SwitchExtendedTypes == 0:
		return Result{}, proto.ErrUnimplemented
	case isTTL != (op == proto.OpCreateTTL), isTTL && (r.TTL < 1 || r.TTL > 0xffffffffff):
		return Result{}, proto.ErrBadArguments
	case r.Path == proto.NullString:
		return Result{}, proto.ErrMarshalling
	case !strings.Contains(r.Path, "/"), strings.Contains(r.Path, "\x00"):
		return Result{}, proto.ErrBadArguments
	case op == proto.OpCreateContainer:
		owner = -1 << 63
	case isTTL:
		owner = -1<<56 + r.TTL
	case r.Flags == 1 || r.Flags == 3:
		owner = int64(d.txn.Session)
	}
	acl := d.fix(r.ACL)
	if len(acl) == 0 {
		return Result{}, proto.ErrInvalidACL
	}
	parentPath := twinParent(r.Path)
	parent, ok := d.nodes[parentPath]
	if !ok {
		return Result{}, proto.ErrNoNode
	}
	if !d.may(parentPath, proto.PermCreate) {
		return Result{}, proto.ErrNoAuth
	}
	path := r.Path
	if r.Flags == 2 || r.Flags == 3 || r.Flags == 6 {
		path += fmt.Sprintf("%010d", parent.st.CVersion)
	}
	if !proto.ValidPath(path) {
		return Result{}, proto.ErrBadArguments
	}
	if _, ok := d.nodes[path]; ok {
		return Result{}, proto.ErrNodeExists
	}
	if o := parent.st.EphemeralOwner; o > 0 {
		return Result{}, proto.ErrNoChildrenForEphemerals
	}
	if d.overQuota(path, len(r.Data), 1) {
		return Result{}, proto.ErrQuotaExceeded
	}
	parent.st.CVersion++
	parent.st.Pzxid = d.txn.Zxid
	d.nodes[parentPath] = parent
	z, ms := d.txn.Zxid, d.txn.TimeMillis
	d.nodes[path] = twinNode{data: r.Data, acl: acl, st: proto.StatPersisted{
		Czxid: z, Mzxid: z, Pzxid: z, Ctime: ms, Mtime: ms, EphemeralOwner: owner,
	}}
	res := Result{Type: op, Path: path, Stat: d.stat(path)}
	if strings.HasPrefix(path, "/zookeeper/quota/") && strings.HasSuffix(path, "/zookeeper_stats") {
		d.recount(path)
	}
	d.book(path, len(r.Data), 1)
	d.event(proto.EventNodeCreated, path, len(r.Data))
	d.event(proto.EventNodeChildrenChanged, parentPath, 0)
	return res, proto.ErrOK
}

func (d *twinDo) delete(path string, version int32) (Result, proto.ErrCode) {
	switch {
	case path == proto.NullString:
		return Result{}, proto.ErrMarshalling
	case !strings.Contains(path, "/"), strings.Contains(path, "\x00"), systemPath(path):
		return Result{}, proto.ErrBadArguments
	}
	parentPath := twinParent(path)
	n, ok := d.nodes[path]
	switch _, parentOK := d.nodes[parentPath]; {
	case !parentOK:
		return Result{}, proto.ErrNoNode
	case !d.may(parentPath, proto.PermDelete):
		return Result{}, proto.ErrNoAuth
	case !ok:
		return Result{}, proto.ErrNoNode
	case version != -1 && version != n.st.Version:
		return Result{}, proto.ErrBadVersion
	case d.children(path) > 0:
		return Result{}, proto.ErrNotEmpty
	}
	d.remove(path)
	return Result{Type: proto.OpDelete, Path: path}, proto.ErrOK
}

func (d *twinDo) remove(path string) {
	n, parentPath := d.nodes[path], twinParent(path)
	d.event(proto.EventNodeDeleted, path, 0)
	delete(d.nodes, path)
	parent := d.nodes[parentPath]
	parent.st.Pzxid = d.txn.Zxid
	d.nodes[parentPath] = parent
	d.event(proto.EventNodeChildrenChanged, parentPath, 0)
	d.book(path, -len(n.data), -1)
}

func (d *twinDo) set(path string, data []byte, version int32) (Result, proto.ErrCode) {
	n, ok := d.nodes[path]
	switch {
	case !proto.ValidPath(path):
		return Result{}, proto.ErrBadArguments
	case !ok:
		return Result{}, proto.ErrNoNode
	case !d.may(path, proto.PermWrite):
		return Result{}, proto.ErrNoAuth
	case d.overQuota(path, len(data)-len(n.data), 0):
		return Result{}, proto.ErrQuotaExceeded
	case version != -1 && version != n.st.Version:
		return Result{}, proto.ErrBadVersion
	}
	grown := len(data) - len(n.data)
	n.data = data
	n.st.Version++
	n.st.Mzxid, n.st.Mtime = d.txn.Zxid, d.txn.TimeMillis
	d.nodes[path] = n
	res := Result{Type: proto.OpSetData, Path: path, Stat: d.stat(path)}
	d.book(path, grown, 0)
	d.event(proto.EventNodeDataChanged, path, len(data))
	return res, proto.ErrOK
}

func (d *twinDo) setACL(path string, list []proto.ACL, version int32) (Result, proto.ErrCode) {
	n, ok := d.nodes[path]
	acl := d.fix(list)
	switch {
	case !proto.ValidPath(path):
		return Result{}, proto.ErrBadArguments
	case len(acl) == 0:
		return Result{}, proto.ErrInvalidACL
	case !ok:
		return Result{}, proto.ErrNoNode
	case !d.may(path, proto.PermAdmin):
		return Result{}, proto.ErrNoAuth
	case version != -1 && version != n.st.AVersion:
		return Result{}, proto.ErrBadVersion
	}
	n.acl = acl
	n.st.AVersion++
	d.nodes[path] = n
	return Result{Type: proto.OpSetACL, Path: path, Stat: d.stat(path)}, proto.ErrOK
}

func (w *twin) closeSession(txn Txn) []Change {
	do := &twinDo{twin: w, base: w, txn: &txn}
	for _, p := range w.ephemerals(txn.Session) {
		do.remove(p)
	}
	return do.changes
}

func (w *twin) ephemerals(id proto.SessionID) []string {
	out := []string{}
	for p, n := range w.nodes {
		if n.st.EphemeralOwner == int64(id) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

func (w *twin) reapable(now, maxNeverUsed int64) []string {
	out := []string{}
	for p, n := range w.nodes {
		age := now - n.st.Mtime
		kind, ttl := proto.ClassifyOwner(n.st.EphemeralOwner)
		if w.children(p) == 0 && (kind == proto.OwnerTTL && age > ttl || kind == proto.OwnerContainer &&
			(n.st.CVersion > 0 || maxNeverUsed > 0 && age > maxNeverUsed)) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// quotaOf returns the deepest path at or above path that has limits.
func (w *twin) quotaOf(path string) string {
	for p := path; p != "/"; p = twinParent(p) {
		if _, ok := w.nodes["/zookeeper/quota"+p+"/zookeeper_limits"]; ok {
			return p
		}
	}
	return ""
}

func (d *twinDo) overQuota(path string, bytes, nodes int) bool {
	q := d.base.quotaOf(path)
	stats, ok := d.base.nodes["/zookeeper/quota"+q+"/zookeeper_stats"]
	if q == "" || !ok || d.txn.Switches&proto.SwitchEnforceQuota == 0 {
		return false
	}
	var maxCount, maxBytes, count, size int
	limits := string(d.base.nodes["/zookeeper/quota"+q+"/zookeeper_limits"].data)
	if _, err := fmt.Sscanf(limits, "count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", &maxBytes, &maxCount); err != nil {
		panic(limits)
	}
	if _, err := fmt.Sscanf(string(stats.data), "count=%d,bytes=%d", &count, &size); err != nil {
		panic(string(stats.data))
	}
	return nodes != 0 && count+nodes > maxCount || bytes != 0 && size+bytes > maxBytes
}

func (d *twinDo) recount(path string) {
	q := strings.TrimSuffix(strings.TrimPrefix(path, "/zookeeper/quota"), "/zookeeper_stats")
	count, size := 0, 0
	for p, n := range d.nodes {
		if p == q || strings.HasPrefix(p, q+"/") {
			count++
			size += len(n.data)
		}
	}
	n := d.nodes[path]
	n.data = fmt.Appendf(nil, "count=%d,bytes=%d", count, size)
	d.nodes[path] = n
}

func (d *twinDo) book(path string, bytes, nodes int) {
	q := d.quotaOf(path)
	statsPath := "/zookeeper/quota" + q + "/zookeeper_stats"
	n, ok := d.nodes[statsPath]
	if q == "" || !ok {
		return
	}
	var count, size int
	if _, err := fmt.Sscanf(string(n.data), "count=%d,bytes=%d", &count, &size); err != nil {
		panic(string(n.data))
	}
	n.data = fmt.Appendf(nil, "count=%d,bytes=%d", count+nodes, size+bytes)
	d.nodes[statsPath] = n
}

// dump lists all nodes in the order of their paths.
func (w *twin) dump() string {
	var b bytes.Buffer
	for _, p := range slices.Sorted(func(yield func(string) bool) {
		for p := range w.nodes {
			if !yield(p) {
				return
			}
		}
	}) {
		n := w.nodes[p]
		fmt.Fprintf(&b, "%s %q %t %v %+v\n", p, n.data, n.data == nil, n.acl, n.st)
	}
	return b.String()
}
