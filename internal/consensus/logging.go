package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// raftLogger hands the library's log lines to slog, one level lower: what Raft
// calls information is of interest only to someone debugging Raft. A line that
// the library repeats, as it does several times a second while another server is
// down, is handed over once; that server's return is told by who leads.
type raftLogger struct {
	out     *slog.Logger
	seen    *seenLines
	name    string
	implied []any
}

var _ hclog.Logger = (*raftLogger)(nil)

func newRaftLogger(out *slog.Logger, name string) *raftLogger {
	return &raftLogger{out: out.With("part", name), name: name, seen: &seenLines{}}
}

// seenLines are the warnings and errors of late, without what varies in them.
type seenLines struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu
}

// seenQuiet is how long a line must not have come before it is told again. The
// library's pauses between attempts grow to half a minute.
const seenQuiet = 2 * time.Minute

// again tells whether the line came not long ago.
func (s *seenLines) again(line string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, seen := s.last[line]
	if s.last == nil || len(s.last) > 1000 {
		s.last = map[string]time.Time{}
	}
	s.last[line] = now
	return seen && now.Sub(last) < seenQuiet
}

// lineOf is a line with the server that it is about.
func lineOf(msg string, args []any) string {
	for i := 0; i+1 < len(args); i += 2 {
		if key := args[i]; key == "peer" || key == "id" || key == "to" || key == "target" || key == "candidate" {
			return msg + fmt.Sprint(args[i+1])
		}
	}
	return msg
}

func slogLevel(level hclog.Level) slog.Level {
	switch level {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// ordinary are lines of the library that it warns with and that tell of nothing to
// act on: a server joins or has been away, a leader learns of the next one, an empty
// server waits to become a member; or that this room tells in its own words.
var ordinary = map[string]bool{
	"failed to get previous log":                 true,
	"previous log term mis-match":                true,
	"appendEntries rejected, sending older logs": true,
	"peer has newer term, stopping replication":  true,
	"no known peers, aborting election":          true,
	"failed to take snapshot":                    true,
}

// gravity is the level of a line. A connection that this server has closed is
// nothing to tell, and one that another server has lost, as each does that is
// restarted, is no error of this one.
func gravity(level hclog.Level, msg string, args []any) slog.Level {
	if ordinary[msg] {
		return slog.LevelDebug
	}
	to := slogLevel(level)
	for i := 0; i+1 < len(args); i += 2 {
		err, ok := args[i+1].(error)
		if !ok || args[i] != "error" {
			continue
		}
		var op *net.OpError
		switch {
		case errors.Is(err, net.ErrClosed):
			return slog.LevelDebug
		case errors.As(err, &op), errors.Is(err, io.EOF):
			return min(to, slog.LevelWarn)
		}
	}
	return to
}

// Log implements hclog.Logger.
func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := gravity(level, msg, args)
	if to > slog.LevelDebug && l.seen.again(lineOf(msg, args), time.Now()) {
		to = slog.LevelDebug
	}
	if !l.out.Enabled(context.Background(), to) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args = append([]any(nil), args...)
			args[i] = slog.AnyValue(f)
		}
	}
	l.out.Log(context.Background(), to, msg, args...)
}

// Trace implements hclog.Logger.
func (l *raftLogger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }

// Debug implements hclog.Logger.
func (l *raftLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }

// Info implements hclog.Logger.
func (l *raftLogger) Info(msg string, args ...any) { l.Log(hclog.Info, msg, args...) }

// Warn implements hclog.Logger.
func (l *raftLogger) Warn(msg string, args ...any) { l.Log(hclog.Warn, msg, args...) }

// Error implements hclog.Logger.
func (l *raftLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *raftLogger) enabled(level hclog.Level) bool {
	return l.out.Enabled(context.Background(), slogLevel(level))
}

// IsTrace implements hclog.Logger.
func (l *raftLogger) IsTrace() bool { return l.enabled(hclog.Trace) }

// IsDebug implements hclog.Logger.
func (l *raftLogger) IsDebug() bool { return l.enabled(hclog.Debug) }

// IsInfo implements hclog.Logger.
func (l *raftLogger) IsInfo() bool { return l.enabled(hclog.Info) }

// IsWarn implements hclog.Logger.
func (l *raftLogger) IsWarn() bool { return l.enabled(hclog.Warn) }

// IsError implements hclog.Logger.
func (l *raftLogger) IsError() bool { return l.enabled(hclog.Error) }

// ImpliedArgs implements hclog.Logger.
func (l *raftLogger) ImpliedArgs() []any { return l.implied }

// With implements hclog.Logger.
func (l *raftLogger) With(args ...any) hclog.Logger {
	implied := append(append([]any(nil), l.implied...), args...)
	return &raftLogger{out: l.out.With(args...), name: l.name, implied: implied, seen: l.seen}
}

// Name implements hclog.Logger.
func (l *raftLogger) Name() string { return l.name }

// Named implements hclog.Logger.
func (l *raftLogger) Named(name string) hclog.Logger {
	return &raftLogger{out: l.out, name: l.name + "." + name, implied: l.implied, seen: l.seen}
}

// ResetNamed implements hclog.Logger.
func (l *raftLogger) ResetNamed(name string) hclog.Logger {
	return &raftLogger{out: l.out, name: name, implied: l.implied, seen: l.seen}
}

// SetLevel implements hclog.Logger; the level is slog's.
func (l *raftLogger) SetLevel(hclog.Level) {}

// GetLevel implements hclog.Logger.
func (l *raftLogger) GetLevel() hclog.Level {
	switch {
	case l.IsDebug():
		return hclog.Debug
	case l.IsWarn():
		return hclog.Warn
	}
	return hclog.Error
}

// StandardLogger implements hclog.Logger.
func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.out.Handler(), slog.LevelDebug)
}

// StandardWriter implements hclog.Logger.
func (l *raftLogger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}
