package consensus

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// Environment of the child process: its data directory, log store, the number
// of commands after which it ends (0: never), and whether it waits for each.
const (
	childDir   = "CONSENSUS_TEST_DIR"
	childStore = "CONSENSUS_TEST_STORE"
	childCount = "CONSENSUS_TEST_COUNT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(runChild(dir))
	}
	os.Exit(toolchain.Main(m))
}

// runChild writes numbered commands for ever, or a given number one by one,
// and says "ack N" on standard output once N commands have been applied.
func runChild(dir string) int {
	c := testConfig(dir)
	c.LogStore = os.Getenv(childStore)
	count, _ := strconv.Atoi(os.Getenv(childCount))
	oneByOne := count > 0
	if !oneByOne {
		c.SnapCount = 400
	}
	c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	j, o := newJournal(), newObserver()
	n, err := Open(c, j, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-o.leading
	proposed := j.len()
	fmt.Printf("ack %d\n", proposed)
	ahead := 200
	if oneByOne {
		ahead = 1
	}
	for !oneByOne || proposed < count {
		for done := j.len(); proposed < done+ahead; proposed++ {
			command := fmt.Sprintf("command-%d", proposed+1)
			if err := n.Propose(uint64(proposed), []byte(command)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		<-j.changed
		for oneByOne && j.len() < proposed {
			<-j.changed
		}
		fmt.Printf("ack %d\n", j.len())
	}
	_ = n.Close()
	return 0
}

func childCommand(dir, store string, count int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childStore+"="+store, childCount+"="+strconv.Itoa(count))
	return cmd
}

// TestAKilledProcessLosesNoAcknowledgedCommand stands for what a user sees of
// kill -9: snapshots, segments and truncations going on, killed at any moment.
func TestAKilledProcessLosesNoAcknowledgedCommand(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		for life := range 6 {
			cmd := childCommand(c.DataDir, c.LogStore, 0)
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			acknowledged, begun := 0, -1
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				_, number, _ := strings.Cut(lines.Text(), " ")
				acknowledged, _ = strconv.Atoi(number)
				if begun < 0 {
					begun = acknowledged
				}
				if acknowledged > begun+300+life*137 {
					break
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, out)
			_ = cmd.Wait()
			if acknowledged <= begun {
				t.Fatalf("the child made no progress:\n%s", complaints.String())
			}
			n := start(t, c)
			got := n.journal.list()
			if len(got) < acknowledged || !slices.Equal(got, numbered(1, len(got))) {
				t.Fatalf("life %d: %d commands are left, %d were acknowledged", life, len(got), acknowledged)
			}
			n.close(t)
		}
	})
}

var (
	traceWrite = regexp.MustCompile(`pwrite64\((\d+)<([^>]*)>`)
	traceSync  = regexp.MustCompile(`(?:fdatasync|fsync)\((\d+)<([^>]*)>`)
	traceAck   = regexp.MustCompile(`write\(1<[^>]*>, "ack (\d+)`)
)

// TestEachAcknowledgementFollowsASyncThatCoversIt looks at the system calls: a
// kill proves nothing about syncs, and bbolt's file layer cannot be replaced.
// The child writes one command at a time, so when it acknowledges one, no write
// to the log may be without a sync behind it.
func TestEachAcknowledgementFollowsASyncThatCoversIt(t *testing.T) {
	toolchain.Need(t, "strace")
	eachLogStore(t, func(t *testing.T, c Config) {
		const count = 40
		trace := filepath.Join(t.TempDir(), "trace")
		child := childCommand(c.DataDir, c.LogStore, count)
		cmd := exec.Command("strace", "-f", "-y", "-s", "32", "-o", trace,
			"-e", "trace=write,pwrite64,fdatasync,fsync", child.Path)
		cmd.Env = child.Env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		checkTrace(t, string(text), filepath.Join(c.DataDir, "zooraft", "log-"+c.LogStore), count)
	})
}

func checkTrace(t *testing.T, trace, logDir string, count int) {
	t.Helper()
	inLog := func(path string) bool {
		return strings.HasPrefix(path, logDir) && (strings.HasSuffix(path, ".wal") || strings.HasSuffix(path, ".db"))
	}
	unsynced := map[string]int{}   // writes to a file since its last sync
	syncing := map[string]string{} // the file that a process is syncing
	covered := map[string]int{}    // writes before that sync began
	writes, syncs, acks := 0, 0, 0
	for _, line := range strings.Split(trace, "\n") {
		process, _, _ := strings.Cut(line, " ")
		if m := traceWrite.FindStringSubmatch(line); m != nil && inLog(m[2]) {
			unsynced[m[2]]++
			writes++
		}
		if m := traceSync.FindStringSubmatch(line); m != nil && inLog(m[2]) {
			syncing[process], covered[process] = m[2], unsynced[m[2]]
		}
		done := strings.HasSuffix(line, "= 0") && (traceSync.MatchString(line) || strings.Contains(line, "sync resumed>"))
		if path := syncing[process]; done && path != "" {
			unsynced[path] -= covered[process]
			syncs++
			delete(syncing, process)
		}
		if m := traceAck.FindStringSubmatch(line); m != nil {
			acks++
			if m[1] != "0" && (writes == 0 || syncs == 0) {
				t.Fatalf("ack %s came with %d writes and %d syncs since the one before", m[1], writes, syncs)
			}
			for path, n := range unsynced {
				if n > 0 {
					t.Fatalf("ack %s came while %d writes to %s had no sync", m[1], n, path)
				}
			}
			writes, syncs = 0, 0
		}
	}
	if acks != count+1 {
		t.Fatalf("the trace shows %d acknowledgements, want %d", acks, count+1)
	}
}

func TestTheTraceCheckNoticesAMissingSync(t *testing.T) {
	// A check that cannot fail proves nothing: the same lines without a sync.
	good := "1 pwrite64(3</d/log-bolt/log.db>, \"\", 1, 0) = 1\n1 fdatasync(3</d/log-bolt/log.db>) = 0\n1 write(1<pipe:[1]>, \"ack 1\\n\", 6) = 6\n"
	for _, c := range []struct{ name, trace string }{
		{"no sync", strings.Replace(good, "fdatasync", "getpid", 1)},
		{"failed sync", strings.Replace(good, "= 0", "= -1 EIO", 1)},
		{"sync before the write", strings.Join([]string{strings.Split(good, "\n")[1], strings.Split(good, "\n")[0], strings.Split(good, "\n")[2]}, "\n")},
	} {
		failed := make(chan bool)
		go func() {
			probe := &testing.T{}
			defer func() { failed <- probe.Failed() }()
			checkTrace(probe, c.trace, "/d/log-bolt", 0)
		}()
		if !<-failed {
			t.Errorf("%s was not noticed", c.name)
		}
	}
	checkTrace(t, good, "/d/log-bolt", 0)
}
