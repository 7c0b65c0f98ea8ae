package consensus

import (
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger hands the library's log lines to slog, one level lower: what Raft
// calls information is of interest only to someone debugging Raft.
type raftLogger struct {
	out     *slog.Logger
	name    string
	implied []any
}

var _ hclog.Logger = (*raftLogger)(nil)

func newRaftLogger(out *slog.Logger, name string) *raftLogger {
	return &raftLogger{out: out.With("part", name), name: name}
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

// Log implements hclog.Logger.
func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slogLevel(level)
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
	return &raftLogger{out: l.out.With(args...), name: l.name, implied: implied}
}

// Name implements hclog.Logger.
func (l *raftLogger) Name() string { return l.name }

// Named implements hclog.Logger.
func (l *raftLogger) Named(name string) hclog.Logger {
	return &raftLogger{out: l.out, name: l.name + "." + name, implied: l.implied}
}

// ResetNamed implements hclog.Logger.
func (l *raftLogger) ResetNamed(name string) hclog.Logger {
	return &raftLogger{out: l.out, name: name, implied: l.implied}
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
