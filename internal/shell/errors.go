package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// Exit codes of a command. docs/shell.md has the same list.
const (
	ExitOK           = 0
	ExitFailed       = 1   // the command failed in a way that has no code of its own
	ExitUsage        = 2   // the command line is wrong; nothing was sent
	ExitNoConnection = 3   // no server, or the connection was lost before the answer: a write's fate is unknown
	ExitNoNode       = 4   // the node does not exist
	ExitNodeExists   = 5   // the node exists already
	ExitBadVersion   = 6   // the version given or read is not the node's
	ExitNotPermitted = 7   // the access list or the authentication forbids it
	ExitNotEmpty     = 8   // the node has children
	ExitExpired      = 9   // the session expired
	ExitDifferent    = 10  // diff found differences
	ExitNotFound     = 127 // there is no such command (zkCli's)
	ExitInterrupted  = 130 // ended by an interrupt
)

var (
	// ErrUsage is returned when the words of a command are wrong.
	ErrUsage = errors.New("usage")
	// ErrNoCommand is returned when there is no command of a name.
	ErrNoCommand = errors.New("command not found")
	// ErrPath is returned when a path cannot name a node.
	ErrPath = errors.New("bad path")
	// ErrDifferent is returned by diff when the trees differ.
	ErrDifferent = errors.New("the trees differ")
	// ErrNotTold is returned when a server does not tell what was asked.
	ErrNotTold = errors.New("not told")
	// ErrInput is returned when data handed to a command makes no sense.
	ErrInput = errors.New("bad input")
	// ErrTooLarge is returned when a subtree is too large for one transaction.
	ErrTooLarge = errors.New("too large for one transaction")
	// errQuit ends the interactive shell.
	errQuit = errors.New("quit")
)

// failure is an error with the text that zkCli prints for it.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// failf makes an error with a text of its own; its kind or cause decides the
// exit code.
func failf(kind error, format string, args ...any) error {
	return &failure{text: fmt.Sprintf(format, args...), cause: kind}
}

// ExitCode returns the exit code of a command's error.
func ExitCode(err error) int {
	var server *client.ServerError
	switch {
	case err == nil, errors.Is(err, errQuit):
		return ExitOK
	case errors.Is(err, ErrNoCommand):
		return ExitNotFound
	case errors.Is(err, ErrUsage), errors.Is(err, ErrPath):
		return ExitUsage
	case errors.Is(err, ErrDifferent):
		return ExitDifferent
	case errors.As(err, &server):
		return codeExit(server.Code)
	case errors.Is(err, client.ErrNoServer), errors.Is(err, client.ErrClosed), errors.Is(err, client.ErrSilent),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, client.ErrProtocol):
		return ExitNoConnection
	case errors.Is(err, client.ErrExpired):
		return ExitExpired
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitFailed
}

func codeExit(code proto.ErrCode) int {
	switch code {
	case proto.ErrNoNode:
		return ExitNoNode
	case proto.ErrNodeExists:
		return ExitNodeExists
	case proto.ErrBadVersion:
		return ExitBadVersion
	case proto.ErrNoAuth, proto.ErrAuthFailed, proto.ErrSessionClosedRequireSASLAuth:
		return ExitNotPermitted
	case proto.ErrNotEmpty:
		return ExitNotEmpty
	case proto.ErrSessionExpired:
		return ExitExpired
	case proto.ErrConnectionLoss:
		return ExitNoConnection
	}
	return ExitFailed
}

// sentences are what zkCli says for an error code in place of the code's name.
var sentences = map[proto.ErrCode]string{
	proto.ErrNoNode:                  "Node does not exist: ",
	proto.ErrNoChildrenForEphemerals: "Ephemerals cannot have children: ",
	proto.ErrNodeExists:              "Node already exists: ",
	proto.ErrNotEmpty:                "Node not empty: ",
	proto.ErrNotReadOnly:             "Not a read-only call: ",
	proto.ErrInvalidACL:              "Acl is not valid : ",
	proto.ErrNoAuth:                  "Insufficient permission : ",
	proto.ErrBadArguments:            "Arguments are not valid : ",
	proto.ErrBadVersion:              "version No is not valid : ",
	proto.ErrQuotaExceeded:           "Quota has exceeded : ",
}

// Message returns the text of an error, in zkCli's words where it has some.
func Message(err error) string {
	var server *client.ServerError
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.text
	case !errors.As(err, &server):
		return err.Error()
	case server.Code == proto.ErrReconfigInProgress:
		return "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)"
	case server.Code == proto.ErrNewConfigNoQuorum:
		return "No quorum of new config is connected and up-to-date with the leader of last commmitted config" +
			" - try invoking reconfiguration after new servers are connected and synced"
	case server.Path == "" && sentences[server.Code] != "":
		return sentences[server.Code] + "null"
	case sentences[server.Code] != "":
		return sentences[server.Code] + server.Path
	case server.Path == "":
		return "KeeperErrorCode = " + server.Code.String()
	}
	return "KeeperErrorCode = " + server.Code.String() + " for " + server.Path
}

// errorReport is an error as JSON.
type errorReport struct {
	Error struct {
		Message string `json:"message"`
		Code    int32  `json:"code,omitempty"` // ZooKeeper's
		Name    string `json:"name,omitempty"` // ZooKeeper's
		Path    string `json:"path,omitempty"`
		Exit    int    `json:"exit"`
	} `json:"error"`
}

func reportOf(err error) errorReport {
	var report errorReport
	report.Error.Message, report.Error.Exit = Message(err), ExitCode(err)
	var server *client.ServerError
	if errors.As(err, &server) {
		report.Error.Code, report.Error.Name, report.Error.Path = int32(server.Code), server.Code.String(), server.Path
	}
	return report
}
