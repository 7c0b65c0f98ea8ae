package snapshot

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// The files were written by the real ZooKeeper 3.9.5; test/snapshot renews them
// with -update, and proves more with a living one.
func TestSnapshotsOfTheRealServerAreRead(t *testing.T) {
	for _, ext := range []string{"plain", "gz", "snappy"} {
		b, err := os.ReadFile(filepath.Join("testdata", "apache-3.9.5."+ext))
		if err != nil {
			t.Fatal(err)
		}
		got, trailer, err := readAll(b)
		if err != nil {
			t.Errorf("%s: %v", ext, err)
			continue
		}
		if !trailer.HasZxid || !trailer.HasDigest || trailer.DigestZxid != trailer.Zxid || trailer.Extension != nil {
			t.Errorf("%s: trailer %+v", ext, trailer)
		}
		owners := map[string]proto.OwnerKind{
			"/": proto.OwnerNone, "/zookeeper/config": proto.OwnerNone, "/null/empty": proto.OwnerNone,
			"/eph": proto.OwnerSession, "/container": proto.OwnerContainer, "/ttl": proto.OwnerTTL,
		}
		for _, n := range got.nodes {
			if want, listed := owners[n.path]; listed {
				if kind, _ := proto.ClassifyOwner(n.st.EphemeralOwner); kind != want {
					t.Errorf("%s: %s has owner %x", ext, n.path, n.st.EphemeralOwner)
				}
				delete(owners, n.path)
			}
			switch n.path {
			case "/null":
				if n.data != nil {
					t.Errorf("%s: null became %q", ext, n.data)
				}
			case "/null/empty":
				if n.data == nil || len(n.data) > 0 {
					t.Errorf("%s: empty became %v", ext, n.data)
				}
			case "/container/x":
				if !bytes.Equal(n.data, bytes.Repeat([]byte("abc"), 1000)) {
					t.Errorf("%s: %d bytes of data", ext, len(n.data))
				}
			case "/secret":
				if len(n.acl) != 1 || n.acl[0].ID.Scheme != "digest" || n.st.Version != 1 {
					t.Errorf("%s: %+v", ext, n)
				}
			}
		}
		if len(owners) > 0 {
			t.Errorf("%s: missing %v", ext, owners)
		}
		if !slices.ContainsFunc(got.sessions, func(s Session) bool { return s.TimeoutMillis == 40000 }) {
			t.Errorf("%s: sessions %v", ext, got.sessions)
		}
	}
}

func TestALogOfTheRealServerIsRead(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "apache-3.9.5.log"))
	if err != nil {
		t.Fatal(err)
	}
	recs, off, err := readLog(b)
	if !errors.Is(err, io.EOF) || len(recs) < 15 {
		t.Fatalf("%d records, %v at byte %d", len(recs), err, off)
	}
	last := recs[len(recs)-1]
	if c, ok := last.Body.(CloseSessionTxn); !ok || !slices.Equal(c.Paths, []string{"/eph"}) {
		t.Errorf("the last record is %+v", last)
	}
	// Written again, it is the same file.
	if again := writeLog(t, recs); !bytes.Equal(again, b[:off]) {
		t.Error("a log that is read and written again differs")
	}
}
