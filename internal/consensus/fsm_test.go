package consensus

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// A stop does not wait for a large snapshot, and does not put it aside.
func TestAStopEndsASnapshotThatIsBeingRead(t *testing.T) {
	stop, j := make(chan struct{}), newJournal()
	f := &fsm{
		sm: j, stop: stop, restoring: func() uint64 { return 9 }, observe: &Observer{}, logger: slog.New(slog.DiscardHandler),
		broken:  func(err error) { t.Errorf("stopped for %v", err) },
		spoiled: func(err error) { t.Errorf("put aside for %v", err) },
	}
	f.done.Store(5)
	endless := readFunc(func(b []byte) (int, error) {
		select {
		case <-stop:
		default:
			close(stop) // while it is being read
		}
		return copy(b, "\x01a"), nil
	})
	if err := f.Restore(io.NopCloser(endless)); !errors.Is(err, ErrStopped) || !f.refused.Load() || f.done.Load() != 5 || j.restores != 0 {
		t.Errorf("%v; refuses %t, applied up to %d, %d restores", err, f.refused.Load(), f.done.Load(), j.restores)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

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

// observed tells what had been let go when the state machine was given the leader's
// snapshot.
type observed struct {
	*journal
	released bool
	before   bool // released when Restore was called
}

func (o *observed) Restore(io.Reader) error { o.before = o.released; return nil }

// A server's own snapshot does not keep the former state beside the one that the
// leader sends, whether it is being written or has not been begun.
func TestAnOwnSnapshotIsGivenUpForTheLeaders(t *testing.T) {
	for name, begun := range map[string]bool{"being written": true, "not begun": false} {
		o := &observed{journal: newJournal()}
		f := &fsm{sm: o, restoring: func() uint64 { return 9 }, observe: &Observer{}, logger: slog.New(slog.DiscardHandler), stop: make(chan struct{})}
		writes := make(chan struct{}, 1)
		f.own = newFrozen(func(w io.Writer) error {
			for { // as large as it takes
				if _, err := w.Write([]byte("a")); err != nil {
					return err
				}
				select {
				case writes <- struct{}{}:
				default:
				}
			}
		}, func() { o.released = true })
		own, wrote := f.own, make(chan error, 1)
		persist := func() { wrote <- own.Persist(discardSink{}); own.Release() }
		if begun {
			go persist()
			<-writes
		}
		err := f.Restore(io.NopCloser(strings.NewReader("")))
		if !begun {
			persist()
		}
		if persisted := <-wrote; err != nil || !o.before || !isGivenUp(persisted) {
			t.Errorf("%s: restore %v, the former state was released before it: %t; the own snapshot: %v", name, err, o.before, persisted)
		}
		if err := f.Restore(io.NopCloser(strings.NewReader(""))); err != nil {
			t.Errorf("%s: another one: %v", name, err)
		}
	}
}

// A disk that hangs under the own snapshot does not keep the server from stopping.
func TestAStopEndsTheWaitForAnOwnSnapshotThatHangs(t *testing.T) {
	hangs, begun, stop := make(chan struct{}), make(chan struct{}), make(chan struct{})
	f := &fsm{sm: newJournal(), restoring: func() uint64 { return 9 }, observe: &Observer{}, logger: slog.New(slog.DiscardHandler), stop: stop}
	f.own = newFrozen(func(io.Writer) error { close(begun); <-hangs; return nil }, func() {})
	own, ended := f.own, make(chan struct{})
	go func() { defer close(ended); _ = own.Persist(discardSink{}) }()
	<-begun
	close(stop)
	if err := f.Restore(io.NopCloser(strings.NewReader(""))); !errors.Is(err, ErrStopped) || !f.refused.Load() {
		t.Errorf("%v; refuses %t", err, f.refused.Load())
	}
	close(hangs)
	<-ended
}

type discardSink struct{}

func (discardSink) Write(b []byte) (int, error) { return len(b), nil }
func (discardSink) Close() error                { return nil }
func (discardSink) ID() string                  { return "discarded" }
func (discardSink) Cancel() error               { return nil }
