package config

import (
	"errors"
	"fmt"
)

// Exit codes of the process, the same numbers that Apache ZooKeeper uses.
const (
	// ExitUnexpected is the code of every error that has no code of its own.
	ExitUnexpected = 1
	// ExitInvalid says that the command line or the configuration is wrong.
	ExitInvalid = 2
	// ExitDataDir says that the data directory cannot be used.
	ExitDataDir = 3
)

var (
	// ErrInvalid is returned when a value is impossible or two values
	// contradict each other.
	ErrInvalid = errors.New("invalid configuration")
	// ErrUnprotected is returned when a setting asks for protection that this
	// version does not have.
	ErrUnprotected = errors.New("protection not available")
	// ErrNotBuilt is returned when a setting asks for something else that this
	// version does not have.
	ErrNotBuilt = errors.New("not available in this version")
	// ErrDataDir is returned when a data directory is missing or unreadable.
	ErrDataDir = errors.New("data directory unusable")
	// ErrForeignData is returned when a data directory holds the data of an
	// Apache ZooKeeper and none of ours.
	ErrForeignData = errors.New("data of another server")
)

// Error is one thing that is wrong with a configuration. Several of them may
// be joined in one error.
type Error struct {
	// Kind is one of this package's sentinels.
	Kind error
	// File and Line say where the value was written; Line counts from 1 and
	// both are zero when the value did not come from a file.
	File string
	Line int
	// Origin says where else the value came from: a -D definition, an
	// environment variable, an argument or a flag.
	Origin string
	// Key is the name of the setting as it was written, or empty.
	Key string
	// Reason is a sentence without a full stop.
	Reason string
}

// Error names the place, the setting and the reason.
func (e *Error) Error() string {
	text := e.Reason
	if e.Key != "" {
		text = e.Key + ": " + text
	}
	switch {
	case e.File != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, text)
	case e.File != "":
		return e.File + ": " + text
	case e.Origin != "":
		return e.Origin + ": " + text
	}
	return text
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Kind }

// ExitCode is the exit code for a process that stops because of e.
func (e *Error) ExitCode() int {
	switch e.Kind {
	case ErrInvalid, ErrUnprotected, ErrNotBuilt:
		return ExitInvalid
	case ErrDataDir, ErrForeignData:
		return ExitDataDir
	}
	return ExitUnexpected
}

func invalid(key, format string, args ...any) *Error {
	return &Error{Kind: ErrInvalid, Key: key, Reason: fmt.Sprintf(format, args...)}
}
