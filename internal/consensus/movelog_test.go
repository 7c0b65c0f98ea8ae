package consensus

import (
	"errors"
	"os"
	"testing"
)

func TestMoveLogKeepsEveryEntryBothWays(t *testing.T) {
	c := testConfig(t.TempDir())
	want := furnish(t, c)
	for _, to := range []string{LogStoreBolt, LogStoreWAL} {
		if entries, err := MoveLog(c, to); err != nil || entries == 0 {
			t.Fatalf("move to %s: %d entries, %v", to, entries, err)
		}
		if _, err := MoveLog(c, to); !errors.Is(err, ErrLogStoreMismatch) {
			t.Fatalf("a second move to %s: %v", to, err)
		}
		if holdsFiles(c.layout().log(c.LogStore)) {
			t.Fatalf("the log in store %s is still there", c.LogStore)
		}
		if _, err := Open(c, newJournal(), newObserver()); !errors.Is(err, ErrLogStoreMismatch) {
			t.Fatalf("open with the former store: %v", err)
		}
		c.LogStore = to
		n := start(t, c)
		requireCommands(t, n.journal, want)
		n.write(t, "moved to "+to)
		want = append(want, "moved to "+to)
		n.close(t)
	}
}

func TestMoveLogRefusesAndRepeats(t *testing.T) {
	c := testConfig(t.TempDir())
	if _, err := MoveLog(c, LogStoreBolt); err == nil {
		t.Fatal("moved a log that does not exist")
	}
	want := furnish(t, c)
	n := start(t, c)
	if _, err := MoveLog(c, LogStoreBolt); !errors.Is(err, ErrLocked) {
		t.Fatalf("move under a running server: %v", err)
	}
	n.close(t)
	// What a move that was cut short leaves behind.
	if err := os.MkdirAll(c.layout().log(LogStoreBolt), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.layout().log(LogStoreBolt)+"/log.db", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := MoveLog(c, LogStoreBolt); err != nil {
		t.Fatal(err)
	}
	c.LogStore = LogStoreBolt
	requireCommands(t, start(t, c).journal, want)
}

func TestMoveLogRefusesADamagedLog(t *testing.T) {
	c := testConfig(t.TempDir())
	furnish(t, c)
	path := tailFile(t, c.layout().log(LogStoreWAL))
	flip(t, path, 200, 1)
	if _, err := MoveLog(c, LogStoreBolt); err == nil {
		t.Fatal("moved a damaged log")
	}
	c.LogStore = LogStoreBolt
	if _, err := Open(c, newJournal(), newObserver()); !errors.Is(err, ErrLogStoreMismatch) {
		t.Fatalf("a move that failed changed the store: %v", err)
	}
}
