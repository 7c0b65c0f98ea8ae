package client

import (
	"errors"
	"fmt"

	"github.com/zooraft/zooraft/internal/proto"
)

var (
	// ErrClosed is returned when the connection ended before the answer came.
	ErrClosed = errors.New("client: connection closed")
	// ErrExpired is returned by Dial when the session to resume is gone or its
	// password is wrong.
	ErrExpired = errors.New("client: session expired")
	// ErrSilent is returned when the server said nothing for a whole session
	// timeout.
	ErrSilent = errors.New("client: server is silent")
	// ErrProtocol is returned when the server's bytes make no sense.
	ErrProtocol = errors.New("client: protocol violated")
	// ErrNoServer is returned when no server of a Session could be reached.
	ErrNoServer = errors.New("client: no server can be reached")
	// ErrEventsFull is returned when watch events came faster than they were
	// taken and Options.EventBuffer was full.
	ErrEventsFull = errors.New("client: event buffer full")
)

// ServerError is an answer whose error code is not OK.
type ServerError struct {
	Op   proto.OpCode
	Path string
	Code proto.ErrCode
}

func (e *ServerError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%v: %v", e.Op, e.Code)
	}
	return fmt.Sprintf("%v %s: %v", e.Op, e.Path, e.Code)
}

// Code returns the error code of a ServerError, ErrOK for nil, and
// ErrConnectionLoss for every other error.
func Code(err error) proto.ErrCode {
	var server *ServerError
	switch {
	case err == nil:
		return proto.ErrOK
	case errors.As(err, &server):
		return server.Code
	}
	return proto.ErrConnectionLoss
}
