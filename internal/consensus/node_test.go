package consensus

import (
	"errors"
	"strings"
	"testing"
)

func TestALoneVoterOrdersWritesAndFindsThemAfterARestart(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		logs := captureLogs(&c)
		n := start(t, c)
		n.write(t, numbered(1, 100)...)
		n.close(t)
		n = start(t, c)
		n.journal.await(t, 100)
		n.write(t, numbered(101, 200)...)
		requireCommands(t, n.journal, numbered(1, 200))
		s := n.Status()
		if s.Role != "leader" || !s.Leading || s.LeaderID != 0 || s.Term != 3 || s.NotReady != "" || s.Disk != DiskOK {
			t.Errorf("status is %+v", s)
		}
		n.close(t)
		if text := logs.String(); text != "" {
			t.Errorf("a quiet life logged:\n%s", text)
		}
		if err := n.Propose(1, nil); !errors.Is(err, ErrStopped) {
			t.Errorf("propose after close: %v", err)
		}
	})
}

func TestASecondServerOnOneDataDirectoryIsRefused(t *testing.T) {
	c := testConfig(t.TempDir())
	n := start(t, c)
	if _, err := Open(c, newJournal(), newObserver()); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
	other := testConfig(t.TempDir())
	other.LogDir = c.DataDir
	if _, err := Open(other, newJournal(), newObserver()); !errors.Is(err, ErrLocked) {
		t.Fatalf("open with the same log directory: %v", err)
	}
	n.close(t)
	start(t, c)
}

func TestAnotherLogStoreIsRefusedByName(t *testing.T) {
	c := testConfig(t.TempDir())
	n := start(t, c)
	n.close(t)
	c.LogStore = LogStoreBolt
	_, err := Open(c, newJournal(), newObserver())
	if !errors.Is(err, ErrLogStoreMismatch) || !strings.Contains(err.Error(), "move-log") {
		t.Fatalf("open with the other log store: %v", err)
	}
}
