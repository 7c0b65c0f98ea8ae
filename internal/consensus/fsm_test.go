package consensus

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
)

type unreadable struct{ *journal }

var errUnreadable = errors.New("consensus: cannot be read, in a test")

func (unreadable) Restore(io.Reader) error { return errUnreadable }

// The state machine of a server that runs has let its state go when it finds
// that the snapshot cannot be read: nothing more may be applied to it. At the
// start an older snapshot is tried instead.
func TestASnapshotThatCannotBeReadStopsAServerThatRuns(t *testing.T) {
	for name, test := range map[string]struct {
		applied uint64
		stops   bool
	}{
		"at the start": {0, false},
		"running":      {5, true},
	} {
		var stopped, spoiled error
		f := &fsm{
			sm: unreadable{newJournal()}, broken: func(err error) { stopped = err }, spoiled: func(err error) { spoiled = err },
			restoring: func() uint64 { return 9 }, observe: &Observer{}, logger: slog.New(slog.DiscardHandler),
		}
		f.done.Store(test.applied)
		err := f.Restore(io.NopCloser(strings.NewReader("")))
		if !errors.Is(err, errUnreadable) || !errors.Is(spoiled, errUnreadable) {
			t.Errorf("%s: %v; the snapshot is spoiled for %v", name, err, spoiled)
		}
		if f.refused.Load() != test.stops || errors.Is(stopped, errUnreadable) != test.stops || f.done.Load() != test.applied {
			t.Errorf("%s: refuses %t, stopped for %v, applied up to %d", name, f.refused.Load(), stopped, f.done.Load())
		}
	}
}
