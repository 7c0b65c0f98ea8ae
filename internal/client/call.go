package client

import (
	"context"
	"fmt"

	"github.com/zooraft/zooraft/internal/proto"
)

// Call is one request and, once it is complete, its answer. The fields below
// Done may be read after the call was received from Done.
type Call struct {
	// Op and Body are the request; Body is not read after Go returned.
	Op   proto.OpCode
	Body []byte
	// Done receives the call when it is complete. It must have room for every
	// call that names it, so that the read loop never waits.
	Done chan *Call
	// Tag is the caller's own, to tell its calls apart.
	Tag int

	// Xid is what the request carried.
	Xid int32
	// Header is the answer's.
	Header proto.ReplyHeader
	// Reply is the answer's body. Its memory is used again by the next Go of
	// this call.
	Reply []byte
	// Err says why there is no answer; a bad code in Header is no Err.
	Err error

	// answered, when set, is called by the read loop before Done receives the
	// call, so that what it does precedes every later event.
	answered func(*Call)
}

// Do sends a request and returns its call, to be waited for or left alone.
func (c *Conn) Do(op proto.OpCode, body []byte) *Call {
	call := &Call{Op: op, Body: body, Done: make(chan *Call, 1)}
	c.Go(call)
	return call
}

// Go sends a request without waiting; the call is complete when it is received
// from its Done. A call may be sent again after that.
func (c *Conn) Go(call *Call) {
	c.mu.Lock()
	if c.err != nil {
		call.Err = c.err
		c.mu.Unlock()
		call.Done <- call
		return
	}
	call.Err = nil
	call.Xid = c.nextXid(call.Op)
	start := len(c.out)
	c.out = proto.BeginFrame(c.out)
	c.out = proto.AppendInt(c.out, call.Xid)
	c.out = proto.AppendInt(c.out, int32(call.Op))
	c.out = append(c.out, call.Body...)
	c.out = proto.EndFrame(c.out, start)
	c.queueOf(call.Xid).push(call)
	if start == 0 {
		c.wake.Signal()
	}
	c.mu.Unlock()
}

// nextXid returns the reserved xid of an op that has one, else the next number;
// it needs c.mu.
func (c *Conn) nextXid(op proto.OpCode) int32 {
	switch op {
	case proto.OpPing:
		return proto.XidPing
	case proto.OpAuth:
		return proto.XidAuth
	case proto.OpSetWatches, proto.OpSetWatches2:
		return proto.XidSetWatches
	}
	c.xid = max(c.xid, 0) + 1
	return c.xid
}

// queueOf returns where a call with an xid waits; it needs c.mu.
func (c *Conn) queueOf(xid int32) *fifo {
	switch xid {
	case proto.XidPing:
		return &c.pings
	case proto.XidAuth:
		return &c.auths
	}
	return &c.replies
}

// Wait waits for the answer. It returns the body of an answer without an error
// code, a *ServerError for one with, or why there is none.
func (call *Call) Wait(ctx context.Context) ([]byte, error) {
	select {
	case <-call.Done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	call.Done <- call // so that a second Wait returns as well
	return call.Result()
}

// Result is Wait for a call that is complete.
func (call *Call) Result() ([]byte, error) {
	switch {
	case call.Err != nil:
		return nil, fmt.Errorf("%v: %w", call.Op, call.Err)
	case call.Header.Err != proto.ErrOK:
		return nil, &ServerError{Op: call.Op, Code: call.Header.Err}
	}
	return call.Reply, nil
}

// fifo is a queue of calls that keeps its memory.
type fifo struct {
	calls []*Call
	head  int
}

func (f *fifo) push(call *Call) {
	if f.head > 64 && f.head*2 > len(f.calls) {
		n := copy(f.calls, f.calls[f.head:])
		clear(f.calls[n:])
		f.calls, f.head = f.calls[:n], 0
	}
	f.calls = append(f.calls, call)
}

// pop returns nil when the queue is empty.
func (f *fifo) pop() *Call {
	if f.head == len(f.calls) {
		return nil
	}
	call := f.calls[f.head]
	f.calls[f.head] = nil
	f.head++
	return call
}
