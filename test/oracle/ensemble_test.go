package oracle

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

var (
	flagTurns     = flag.String("turns", "", "the turns of an ensemble under its scripts, one digit each; empty takes another one for each script")
	flagOnlySeeds = flag.Bool("onlyseeds", false, "ensembles: no corpus and no self-test")
	flagFull      = flag.Bool("full", false, "ensembles: the whole corpus, under each of its configurations and at every turn")
)

// ensembleSeeds is how many fresh seeds an ensemble gets when nobody says.
const ensembleSeeds = 3

// ensembleConfigs are the configurations under which seeds run over ensembles.
// Where the membership may be changed, neither seeds nor the corpus run: what they
// ask for would take the ensemble apart. test/ensemble compares such changes.
var ensembleConfigs = []string{"", "enforceQuota=true", "skipACL=yes"}

// Three servers answer as three real ones do, whichever of them a client is
// connected to, and wherever its session goes.
func TestEnsemblesGiveTheSameAnswers(t *testing.T) {
	var used, kinds Use
	configs := []string{*flagConfig}
	if *flagFull && *flagConfig == "" {
		scripts, _ := ensembleCorpus(t)
		configs = Configs(scripts)
	}
	for _, config := range configs {
		t.Run(name(config), func(t *testing.T) { runEnsembles(t, config, &used, &kinds) })
	}
	PrintUse(os.Stdout, Rows, &used)
}

func runEnsembles(t *testing.T, config string, used, kinds *Use) {
	pair := NewEnsemblePair(t, config, *flagOurs)
	defer pair.Close()
	if !*flagOnlySeeds {
		t.Run("corpus", func(t *testing.T) {
			scripts, own := ensembleCorpus(t)
			for i, s := range scripts {
				if s.Config != config || strings.Contains(config, "reconfigEnabled=true") || !*flagFull && (restarts(s) || peer.LogStore() != "wal" && i >= own) {
					continue
				}
				for _, turn := range turns(i, s) {
					s.Turn, s.Fixed = turn, true
					t.Run(fmt.Sprintf("%s, turn %d", s.Name, turn), func(t *testing.T) { runOne(t, pair, s, used) })
				}
			}
		})
		if config == "" {
			t.Run("words", func(t *testing.T) { compareWords(t, pair) })
			t.Run("planted", func(t *testing.T) { plantInEnsemble(t, pair) })
		}
	}
	if slices.Contains(ensembleConfigs, config) {
		t.Run("seeds", func(t *testing.T) { runGenerated(t, pair, GenerateEnsemble, freshSeeds(), used, kinds) })
	}
	if config == "" && !*flagOnlySeeds {
		t.Run("a write that cannot be read stops the real one only", func(t *testing.T) { stopTheReal(t, pair) })
	}
}

// stopTheReal sends what a script is spared from. The real ensemble, which is
// of no use afterwards, answers no later write; ours answers all.
func stopTheReal(t *testing.T, pair *Pair) {
	const silence = 5 * time.Second // of a server that answers a write in milliseconds
	ops := []string{"create /x cut=1", "multi [ create /x acl=null ]", "setData / cut=2", "create /stop"}
	want := []proto.ErrCode{proto.ErrMarshalling, proto.ErrMarshalling, proto.ErrMarshalling, proto.ErrOK}
	for _, target := range []*Target{pair.Real, pair.Ours} {
		if err := errors.Join(target.open(), target.sortByRole()); err != nil {
			t.Fatal(err)
		}
		c := peer.Dial(t, target.sites[1].addr())
		req := proto.ConnectRequest{TimeoutMillis: 30000, Password: make([]byte, proto.PasswordLen)}
		if _, err := c.Connect(req, patience); err != nil {
			t.Fatal(err)
		}
		for i, op := range ops {
			r, err := values{}.encode(step("%s", op).Tokens, int32(i+1))
			if err == nil {
				err = c.SendRequest(r.xid, r.op, r.body)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var got []proto.ErrCode
		for len(got) < len(ops) {
			b, err := c.Receive(silence)
			if err != nil {
				break
			}
			got = append(got, proto.NewDecoder(b).ReplyHeader().Err)
		}
		if target == pair.Real && len(got) == len(ops) {
			t.Errorf("the real ensemble answers %v: the row malformed-write-in-ensemble is out of date", got)
		}
		if target == pair.Ours && pair.ours != "apache" && !slices.Equal(got, want) {
			t.Errorf("ours answers %v, want %v", got, want)
		}
	}
}

// restarts tells whether a script starts all servers anew, which takes an
// ensemble some seconds: such scripts are for -full.
func restarts(s Script) bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Verb() == "restart" })
}

// freshSeeds returns the seeds of the flags, or a few new ones.
func freshSeeds() (seeds []uint64) {
	first, count := *flagSeed, ensembleSeeds
	if first == 0 {
		first = uint64(time.Now().UnixNano() % 1e9)
	}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "seeds" {
			count = *flagSeeds
		}
	})
	fmt.Printf("ensembles: seeds %d to %d, %d operations each\n", first, first+uint64(count)-1, *flagOps)
	for s := first; s < first+uint64(count); s++ {
		seeds = append(seeds, s)
	}
	return seeds
}

// turns returns the turns at which the n-th script runs.
func turns(n int, s Script) (all []int) {
	digits := *flagTurns
	if digits == "" && *flagFull {
		digits = "012"
	}
	switch {
	case s.Fixed:
		return []int{s.Turn}
	case digits == "":
		return []int{n % ensembleSize}
	}
	for _, c := range digits {
		all = append(all, int(c-'0'))
	}
	return all
}

// ensembleCorpus is the scripts that need several servers, which come first, and
// the corpus. What a reply says does not depend on the store of the log, so the
// second run with the other store takes only the first ones.
func ensembleCorpus(t *testing.T) (scripts []Script, own int) {
	t.Helper()
	if *flagScript != "" {
		scripts = corpus(t)
		return scripts, len(scripts)
	}
	files, err := filepath.Glob(filepath.Join("corpus", "ensemble", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts for ensembles: %v", err)
	}
	scripts = readScripts(t, files)
	return append(scripts, corpus(t)...), len(scripts)
}

// plantInEnsemble plants differences into what a real ensemble says to two
// scripts, and compares with what it said before. Two runs without a plant are
// alike: what servers do at their own pace is no difference.
func plantInEnsemble(t *testing.T, pair *Pair) {
	for _, c := range []struct {
		file string
		all  []difference
	}{
		{filepath.Join("corpus", "selftest.txt"), planted},
		{filepath.Join("corpus", "ensemble", "selftest.txt"), plantedInEnsemble},
	} {
		script := readScripts(t, []string{c.file})[0]
		var said [2]Transcript
		for i := range said {
			var err error
			if said[i], err = pair.Real.Run(script); err != nil {
				t.Fatal(err)
			}
			// Ours goes along, so that both have done the same when seeds follow.
			if _, err = pair.Ours.Run(script); err != nil {
				t.Fatal(err)
			}
		}
		if d := Compare(script, said[0], said[1], Rows, nil); d != nil {
			t.Fatalf("the real ensemble differs from itself: %v", d)
		}
		findPlanted(t, script, said[0], said[1], c.all)
	}
}

// plantedInEnsemble are what a server that is behind, or that does not hear of
// others' sessions, would say to corpus/ensemble/selftest.txt.
var plantedInEnsemble = []difference{
	{"old data behind a sync", replace(nth{"c", "getData", 1}, nth{"c", "getData", 0})},
	{"an old zxid in the reply to a read", whereNth(nth{"c", "exists", 0}, frame(func(b []byte) []byte { b[11]--; return b }))},
	{"an event that a follower misses", whereNth(nth{"b", "event", 0}, remove)},
	{"an event behind the sync that shows its change", func(items []Item) ([]Item, bool) {
		i := nth{"c", "event", 1}.in(items)
		j := nth{"c", "sync", 1}.in(items)
		if i < 0 || j < i {
			return items, false
		}
		items[i], items[j] = items[j], items[i]
		return items, true
	}},
	{"an ephemeral of a session at another server is not seen", whereNth(nth{"c", "exists", 0}, setErr(proto.ErrNoNode))},
	{"an ephemeral of a session that ended elsewhere is still there", where(failed(proto.ErrNoNode), setErr(proto.ErrOK))},
	{"a session that moved is taken for unknown", where(moved, func(items []Item, i int) []Item {
		items[i].Frame = make([]byte, len(items[i].Frame))
		return items
	})},
	{"a session that moved gets a new id", where(moved, frame(func(b []byte) []byte { add64(b[8:]); return b }))},
	{"a session that ended elsewhere is taken for alive", where(refusedConnect, frame(func(b []byte) []byte { b[7], b[15] = 1, 1; return b }))},
	{"a sequence number twice", replace(nth{"b", "create", 1}, nth{"b", "create", 0})},
	{"a write through a follower that takes two zxids", whereNth(nth{"b", "setData", 0}, frame(func(b []byte) []byte { add64(b[4:]); return b }))},
	{"two pipelined replies in the other order", func(items []Item) ([]Item, bool) {
		i := nth{"b", "getACL", 0}.in(items)
		if i < 1 || items[i-1].Conn != "b" {
			return items, false
		}
		items[i-1], items[i] = items[i], items[i-1]
		return items, true
	}},
	{"a connection that a follower closes for no reason", whereNth(nth{"b", "getACL", 0}, func(items []Item, i int) []Item {
		return slices.Insert(items, i+1, Item{Step: items[i].Step, Conn: "b", Kind: KindClose})
	})},
}

// nth finds the n-th frame of an exchange on a connection, counted from 0.
type nth struct {
	conn, exchange string
	n              int
}

func (k nth) in(items []Item) int {
	n := k.n
	return slices.IndexFunc(items, func(it Item) bool {
		if it.Conn != k.conn || it.Exch != k.exchange || it.Kind != KindFrame {
			return false
		}
		n--
		return n < 0
	})
}

// whereNth changes a certain frame.
func whereNth(k nth, change func(items []Item, i int) []Item) plant {
	return func(items []Item) ([]Item, bool) {
		i := k.in(items)
		if i < 0 {
			return items, false
		}
		return change(items, i), true
	}
}

// replace puts what one frame says into the place of another.
func replace(at, by nth) plant {
	return func(items []Item) ([]Item, bool) {
		i, j := at.in(items), by.in(items)
		if i < 0 || j < 0 {
			return items, false
		}
		b := slices.Clone(items[j].Frame)
		copy(b, items[i].Frame[:4]) // the reply's own xid
		items[i].Frame = b
		return items, true
	}
}

// moved matches the answer to a connect that resumes a session elsewhere, and
// refusedConnect one that says the session is unknown.
func moved(it Item) bool {
	return it.Kind == KindConnect && it.Conn == "m"
}

func refusedConnect(it Item) bool {
	return it.Kind == KindConnect && it.Conn == "n"
}
