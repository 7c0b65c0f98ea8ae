package snapshot

import (
	"bufio"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"io"
	"math"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// bufferSize is the size of the one buffer that a writer or reader holds, in
// bytes, whatever the size of the file.
const bufferSize = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write writes a snapshot. Its memory does not grow with the number of nodes,
// only with the number of distinct ACL lists. It does not sync or close w.
func Write(w io.Writer, c Content) error {
	acls, nodes, err := collectACLs(c.Nodes)
	if err != nil {
		return err
	}
	out := newSealedWriter(w)
	database := apacheDatabase
	if c.Extension != nil {
		database = ourDatabase
	}
	b := proto.AppendInt(proto.AppendInt(out.buf[:0], magicSnapshot), formatVersion)
	b = proto.AppendLong(b, database)
	if len(c.Sessions) > math.MaxInt32 || len(c.Extension) > math.MaxInt32 {
		return fmt.Errorf("%w: %d sessions, an extension of %d bytes", ErrBadContent, len(c.Sessions), len(c.Extension))
	}
	out.emit(proto.AppendInt(b, int32(len(c.Sessions))))
	for _, s := range c.Sessions {
		out.emit(proto.AppendInt(proto.AppendLong(out.buf[:0], int64(s.ID)), s.TimeoutMillis))
	}
	out.emit(proto.AppendInt(out.buf[:0], int32(len(acls.lists))))
	for i, encoded := range acls.lists {
		out.emit(append(proto.AppendLong(out.buf[:0], int64(i)+1), encoded...))
	}
	if err := writeNodes(out, c.Nodes, acls, nodes); err != nil {
		return err
	}
	out.emit(proto.AppendString(out.buf[:0], endOfNodes))
	out.seal()
	b = proto.AppendInt(proto.AppendLong(out.buf[:0], int64(c.Zxid)), digestVersion)
	out.emit(proto.AppendLong(b, int64(c.Digest)))
	out.seal()
	out.emit(proto.AppendLong(out.buf[:0], int64(c.Zxid)))
	out.seal()
	if c.Extension != nil {
		writeExtension(out, c.Extension, nodes)
	}
	return out.flush()
}

func writeExtension(out *sealedWriter, block []byte, nodes int64) {
	b := proto.AppendInt(proto.AppendLong(out.buf[:0], extensionMagic), extensionVersion)
	out.emit(proto.AppendInt(proto.AppendLong(b, nodes), int32(len(block))))
	out.emit(block)
	out.emit(proto.AppendInt(out.buf[:0], int32(out.crc)))
	out.seal()
}

// writeNodes is the second pass over the nodes.
func writeNodes(out *sealedWriter, each func(NodeFunc) error, acls *aclTable, want int64) error {
	var got int64
	err := each(func(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
		key, ok := acls.key(acl)
		if !ok {
			return fmt.Errorf("%w: %s has an ACL list that it had not in the first pass", ErrBadContent, path)
		}
		if got++; got == 1 {
			path = ""
		}
		b := proto.AppendString(out.buf[:0], path)
		if data == nil {
			b = proto.AppendInt(b, -1)
		} else {
			b = proto.AppendInt(b, int32(len(data)))
		}
		out.emit(b)
		out.emit(data)
		out.emit(proto.AppendStatPersisted(proto.AppendLong(out.buf[:0], key), &st))
		return out.err
	})
	if err == nil && got != want {
		err = fmt.Errorf("%w: %d nodes in the second pass, %d in the first", ErrBadContent, got, want)
	}
	return err
}

// aclTable gives each distinct ACL list a key, from 1 in order of appearance.
type aclTable struct {
	keys    map[string]int64 // encoded list → key
	lists   []string         // encoded; lists[i] has key i+1
	scratch []byte
	open    string

	// The lookup of the node before: neighbours mostly share one slice.
	lastList []proto.ACL
	lastKey  int64
}

// collectACLs is the first pass over the nodes; it also judges the paths.
func collectACLs(each func(NodeFunc) error) (*aclTable, int64, error) {
	t := &aclTable{keys: map[string]int64{}, open: string(proto.AppendACLs(nil, proto.OpenACL))}
	var nodes int64
	err := each(func(path string, data []byte, acl []proto.ACL, _ proto.StatPersisted) error {
		if nodes++; !writablePath(path, nodes == 1) || len(data) > math.MaxInt32 {
			return fmt.Errorf("%w: path %q with %d bytes of data as node %d", ErrBadContent, path, len(data), nodes)
		}
		if _, ok := t.key(acl); !ok {
			t.lists = append(t.lists, string(t.scratch))
			t.lastKey = int64(len(t.lists))
			t.keys[string(t.scratch)] = t.lastKey
			t.lastList = acl
		}
		return nil
	})
	if err == nil && nodes == 0 {
		err = fmt.Errorf("%w: no root node", ErrBadContent)
	}
	return t, nodes, err
}

// key looks the list up and leaves its encoding in scratch when it is unknown.
func (t *aclTable) key(acl []proto.ACL) (int64, bool) {
	if acl == nil {
		return openACLKey, true
	}
	if len(acl) > 0 && len(acl) == len(t.lastList) && &acl[0] == &t.lastList[0] {
		return t.lastKey, true
	}
	t.scratch = proto.AppendACLs(t.scratch[:0], acl)
	key, ok := t.keys[string(t.scratch)]
	if string(t.scratch) == t.open {
		key, ok = openACLKey, true
	}
	if ok {
		t.lastList, t.lastKey = acl, key
	}
	return key, ok
}

// writablePath tells whether the format can hold the path in that place. It
// asks for no more than the reader's side does: which names are allowed is not
// this room's business.
func writablePath(path string, root bool) bool {
	if root {
		return path == "" || path == endOfNodes
	}
	return len(path) > 1 && path[0] == '/' && !strings.HasSuffix(path, "/")
}

// sealedWriter counts every byte into both checksums on its way out. The first
// error sticks.
type sealedWriter struct {
	w     *bufio.Writer
	adler hash.Hash32
	crc   uint32
	buf   []byte // scratch for small parts, reused by each emit
	err   error
}

func newSealedWriter(w io.Writer) *sealedWriter {
	return &sealedWriter{w: bufio.NewWriterSize(w, bufferSize), adler: adler32.New(), buf: make([]byte, 0, 512)}
}

// emit writes b, which may be built on buf.
func (s *sealedWriter) emit(b []byte) {
	if s.err != nil {
		return
	}
	if _, s.err = s.w.Write(b); s.err != nil {
		return
	}
	s.adler.Write(b)
	s.crc = crc32.Update(s.crc, castagnoli, b)
}

func (s *sealedWriter) seal() {
	b := proto.AppendLong(s.buf[:0], int64(s.adler.Sum32()))
	s.emit(proto.AppendString(b, endOfNodes))
}

func (s *sealedWriter) flush() error {
	if s.err == nil {
		s.err = s.w.Flush()
	}
	return s.err
}
