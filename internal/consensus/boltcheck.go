package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

/*
bbolt maps its file and trusts it: it dies of a bus error when the file is
shorter than its meta page says, and panics on goroutines of its own, where
nobody can recover, when a page makes no sense: also when keys are out of order,
which it finds out when it gathers the free pages. So the structure is walked here
before bbolt sees it. Values are not looked at: those of the log carry
checksums of their own, and so does the one record of the stable store.

	page     id u64, flags u16, count u16, overflow u32, then elements
	meta     magic u32, version u32, page size u32, flags u32, root u64,
	         sequence u64, free list u64, pages u64, transaction u64, fnv64a u64
	branch   per element: position u32, key size u32, page u64
	leaf     per element: flags u32, position u32, key size u32, value size u32;
	         flag 1 is a bucket, whose value begins with its root page u64 and
	         sequence u64; root 0 means that a leaf page follows inline

Numbers are in the machine's byte order.
*/
const (
	boltMagic       = 0xED0CDAED
	boltVersion     = 2
	boltHeaderLen   = 16
	boltMetaLen     = 64
	boltChecksumLen = 56
	boltBranch      = 0x01
	boltLeaf        = 0x02
	boltElementLen  = 16
	boltBucketLen   = 16
	boltBucketFlag  = 0x01
	boltMaxDepth    = 64
)

var boltOrder = binary.NativeEndian

// boltWalk checks one file.
type boltWalk struct {
	file     *os.File
	pageSize uint64
	pages    uint64 // pages in use end here
	seen     map[uint64]struct{}
}

// checkBoltFile refuses a file that bbolt could not read.
func checkBoltFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w := &boltWalk{file: f, seen: map[uint64]struct{}{}}
	root, err := w.newestRoot()
	if err == nil {
		_, err = w.page(root, 0, keyRange{})
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
	}
	return nil
}

// newestRoot reads the two meta pages and returns the root page of the newer.
func (w *boltWalk) newestRoot() (root uint64, err error) {
	info, err := w.file.Stat()
	if err != nil {
		return 0, err
	}
	var newest uint64
	for _, offset := range []int64{0, int64(os.Getpagesize())} {
		var b [boltMetaLen]byte
		if _, err := w.file.ReadAt(b[:], offset+boltHeaderLen); err != nil {
			continue
		}
		sum := fnv.New64a()
		_, _ = sum.Write(b[:boltChecksumLen])
		if boltOrder.Uint32(b[0:]) != boltMagic || boltOrder.Uint32(b[4:]) != boltVersion ||
			boltOrder.Uint64(b[boltChecksumLen:]) != sum.Sum64() {
			continue
		}
		if transaction := boltOrder.Uint64(b[48:]); w.pageSize == 0 || transaction > newest {
			newest = transaction
			w.pageSize = uint64(boltOrder.Uint32(b[8:]))
			root, w.pages = boltOrder.Uint64(b[16:]), boltOrder.Uint64(b[40:])
		}
	}
	if w.pageSize == 0 {
		return 0, errors.New("no valid meta page")
	}
	if uint64(info.Size()) < w.pages*w.pageSize {
		return 0, fmt.Errorf("%d bytes, of %d in use", info.Size(), w.pages*w.pageSize)
	}
	return root, nil
}

// keyRange is where the keys of a page must lie: from, included, to, excluded;
// nil for no bound.
type keyRange struct{ from, to []byte }

// page checks one page and all below it, and returns its last key.
func (w *boltWalk) page(id uint64, depth int, keys keyRange) (last []byte, err error) {
	if id < 2 || id >= w.pages || depth > boltMaxDepth {
		return nil, fmt.Errorf("page %d of %d does not exist", id, w.pages)
	}
	head := make([]byte, boltHeaderLen)
	if _, err := w.file.ReadAt(head, int64(id*w.pageSize)); err != nil {
		return nil, err
	}
	overflow := uint64(boltOrder.Uint32(head[12:]))
	if got := boltOrder.Uint64(head); got != id || id+overflow >= w.pages {
		return nil, fmt.Errorf("page %d says that it is page %d with %d more", id, got, overflow)
	}
	for i := id; i <= id+overflow; i++ {
		if _, twice := w.seen[i]; twice {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		w.seen[i] = struct{}{}
	}
	body := make([]byte, (overflow+1)*w.pageSize)
	if _, err := w.file.ReadAt(body, int64(id*w.pageSize)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return w.elements(id, body, depth, keys)
}

// elements checks what a page holds; body begins with the page's header.
func (w *boltWalk) elements(id uint64, body []byte, depth int, keys keyRange) (last []byte, err error) {
	if len(body) < boltHeaderLen {
		return nil, fmt.Errorf("page %d is cut short", id)
	}
	kind, count := boltOrder.Uint16(body[8:]), int(boltOrder.Uint16(body[10:]))
	if kind != boltBranch && kind != boltLeaf || kind == boltBranch && count == 0 {
		return nil, fmt.Errorf("page %d is of kind %#x with %d elements", id, kind, count)
	}
	if boltHeaderLen+count*boltElementLen > len(body) {
		return nil, fmt.Errorf("page %d has no room for %d elements", id, count)
	}
	var next []byte
	for i := range count {
		key := next
		if i == 0 {
			if key, err = boltKey(id, body, kind, 0); err != nil {
				return nil, err
			}
		}
		next = keys.to
		if i+1 < count {
			if next, err = boltKey(id, body, kind, i+1); err != nil {
				return nil, err
			}
		}
		if i == 0 && keys.from != nil && bytes.Compare(key, keys.from) < 0 || i > 0 && bytes.Compare(key, last) <= 0 ||
			keys.to != nil && bytes.Compare(key, keys.to) >= 0 {
			return nil, fmt.Errorf("page %d, key %d is out of order", id, i)
		}
		if last, err = w.element(id, body, kind, i, depth, keyRange{key, next}); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// boltKey is the key of one element of a page.
func boltKey(id uint64, body []byte, kind uint16, i int) ([]byte, error) {
	at := boltHeaderLen + i*boltElementLen
	position, size := boltOrder.Uint32(body[at:]), boltOrder.Uint32(body[at+4:])
	if kind == boltLeaf {
		position, size = size, boltOrder.Uint32(body[at+8:])
	}
	begin := at + int(position)
	if end := begin + int(size); size == 0 || end > len(body) {
		return nil, fmt.Errorf("page %d, key %d is empty or ends outside", id, i)
	}
	return body[begin : begin+int(size)], nil
}

// element checks what one element leads to, and returns the last key there. keys
// begin with its own.
func (w *boltWalk) element(id uint64, body []byte, kind uint16, i, depth int, keys keyRange) (last []byte, err error) {
	at := boltHeaderLen + i*boltElementLen
	element := body[at : at+boltElementLen]
	if kind == boltBranch {
		return w.page(boltOrder.Uint64(element[8:]), depth+1, keys)
	}
	begin := at + int(boltOrder.Uint32(element[4:])) + int(boltOrder.Uint32(element[8:]))
	end := begin + int(boltOrder.Uint32(element[12:]))
	if end > len(body) {
		return nil, fmt.Errorf("page %d, value %d ends outside", id, i)
	}
	if boltOrder.Uint32(element)&boltBucketFlag != 0 {
		if err := w.bucket(id, body[begin:end], depth); err != nil {
			return nil, err
		}
	}
	return keys.from, nil
}

func (w *boltWalk) bucket(id uint64, value []byte, depth int) error {
	if len(value) < boltBucketLen {
		return fmt.Errorf("page %d has a bucket of %d bytes", id, len(value))
	}
	if root := boltOrder.Uint64(value); root != 0 {
		_, err := w.page(root, depth+1, keyRange{})
		return err
	}
	if depth > boltMaxDepth {
		return fmt.Errorf("page %d nests buckets too deep", id)
	}
	_, err := w.elements(id, value[boltBucketLen:], depth+1, keyRange{})
	return err
}
