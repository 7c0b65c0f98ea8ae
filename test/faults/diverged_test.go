package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/snapshot"
	"github.com/zooraft/zooraft/internal/tree"
	"github.com/zooraft/zooraft/test/peer"
)

// One server's data are other than the others', and no checksum says so: the
// leader finds it, both say it in log, metric and health, and the third, whose
// data are like the leader's, says nothing. An election of a busy machine's own
// may have two servers find it; then it is tried again.
func TestReplicasThatDifferAreFoundAndSaidByBoth(t *testing.T) {
	t.Parallel()
	for try := 1; !divergeOnce(t); try++ {
		if try == 3 {
			t.Fatal("there was another leader each time")
		}
	}
}

// divergeOnce tells whether the same server led throughout.
func divergeOnce(t *testing.T) bool {
	e := start(t, options{config: map[string]string{"snapCount": "100"}})
	w := newWorld(e, 1)
	w.prepare()
	leader := e.leader(e.ids...)
	bad, good := e.others(leader)[0], e.others(leader)[1]
	w.e.eventually("a snapshot is taken where the data will differ", func() bool {
		w.pass(100)
		return strings.Contains(e.servers[bad].Log(), "snapshot taken")
	})
	e.stop(bad)
	falsify(t, e.servers[bad].DataDir, "/w/0", []byte("false"))
	e.restart(bad)
	e.awaitAll()
	e.eventually("the server whose data are other says so", func() bool {
		w.pass(digestEvery)
		return strings.Contains(e.servers[bad].Log(), "the replicas have diverged")
	})
	if e.leader(e.ids...) != leader {
		t.Logf("server %d led, and no longer does", leader)
		return false
	}
	for _, id := range []int{leader, bad} {
		said := regexp.MustCompile(`level=ERROR msg="the replicas have diverged[^\n]*the states of server (\d) and server (\d) differ at zxid`).
			FindStringSubmatch(e.servers[id].Log())
		if want := []string{strconv.Itoa(leader), strconv.Itoa(bad)}; len(said) == 0 || !slices.Equal(said[1:], want) {
			t.Errorf("server %d's log names %q, the servers that differ are %q", id, said, want)
		}
		if w.digestMismatches(id) == 0 {
			t.Errorf("server %d counts no difference", id)
		}
		h, err := admin.FetchHealth(context.Background(), e.ownDir(id))
		if err != nil || h.Ready || !strings.Contains(h.Reason, fmt.Sprintf("server %d and server %d differ", leader, bad)) {
			t.Errorf("the health of server %d is %+v, %v", id, h, err)
		}
	}
	h, err := admin.FetchHealth(context.Background(), e.ownDir(good))
	if err != nil || !h.Ready || w.digestMismatches(good) > 0 || strings.Contains(e.servers[good].Log(), "diverged") {
		t.Errorf("server %d, whose data are the leader's: health %+v, %v, %d differences", good, h, err, w.digestMismatches(good))
	}
	// The checks at the end of each run find it as well.
	w.checkReplicas()
	w.mustHaveFound(t, "the digests", "has the digest")
	w.problems = nil
	w.compare(w.dumpAll())
	w.mustHaveFound(t, "the nodes", `as "false"`)
	return true
}

// digestMismatches is how many differences a server has counted.
func (w *world) digestMismatches(id int) (n int) {
	w.e.t.Helper()
	text, err := peer.Word(w.e.address(id), "mntr")
	if err != nil {
		w.e.t.Fatal(err)
	}
	_, rest, found := strings.Cut(text, "zk_digest_mismatches_count\t")
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil || !found {
		w.e.t.Fatalf("server %d counts no differences: %v in\n%s", id, err, text)
	}
	return n
}

// falsified is a snapshot with other data of one node.
type falsified struct {
	path     string
	data     []byte
	found    bool
	nodes    []func(snapshot.NodeFunc) error
	sessions []snapshot.Session
	builder  *tree.Builder
}

// Session implements snapshot.Sink.
func (f *falsified) Session(s snapshot.Session) error {
	f.sessions = append(f.sessions, s)
	return nil
}

// Node implements snapshot.Sink.
func (f *falsified) Node(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
	if path == f.path {
		data, f.found = f.data, true
	}
	f.nodes = append(f.nodes, func(yield snapshot.NodeFunc) error { return yield(path, data, acl, st) })
	return f.builder.Add(path, data, acl, st)
}

// falsify gives a node other data in all snapshots of a server that does not
// run, with every checksum and digest as it must be.
func falsify(t *testing.T, dataDir, path string, data []byte) {
	t.Helper()
	snapshots, err := filepath.Glob(filepath.Join(dataDir, "zooraft", "snapshots", "*", "state"))
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("no snapshot below %s: %v", dataDir, err)
	}
	for _, file := range snapshots {
		f := &falsified{path: path, data: data, builder: tree.NewBuilder()}
		old, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		trailer, err := snapshot.Read(bytes.NewReader(old), f)
		if err != nil || !f.found {
			t.Fatalf("%s: %v; %s was found: %v", file, err, path, f.found)
		}
		whole, err := f.builder.Tree()
		if err != nil {
			t.Fatal(err)
		}
		var now bytes.Buffer
		err = snapshot.Write(&now, snapshot.Content{Sessions: f.sessions, Zxid: trailer.Zxid, Digest: whole.Digest(), Extension: trailer.Extension,
			Nodes: func(yield snapshot.NodeFunc) error {
				for _, node := range f.nodes {
					if err := node(yield); err != nil {
						return err
					}
				}
				return nil
			}})
		if err == nil {
			err = os.WriteFile(file, now.Bytes(), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		sealAgain(t, filepath.Join(filepath.Dir(file), "meta"), now.Bytes())
	}
}

// sealAgain makes the record beside a snapshot's state fit it.
func sealAgain(t *testing.T, file string, state []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "\n")
	var record map[string]any
	numbers := json.NewDecoder(strings.NewReader(body))
	numbers.UseNumber()
	if err := numbers.Decode(&record); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	var sums []uint32
	for chunk := range slices.Chunk(state, 1<<20) {
		sums = append(sums, crc32.Checksum(chunk, castagnoli))
	}
	record["Size"], record["ChunkSums"] = len(state), sums
	sealed, err := json.Marshal(record)
	if err == nil {
		sealed = append(fmt.Appendf(nil, "zooraft snapshot 1 %08x\n", crc32.Checksum(sealed, castagnoli)), sealed...)
		err = os.WriteFile(file, sealed, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
