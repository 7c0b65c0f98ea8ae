package client

import (
	"bufio"
	"fmt"

	"github.com/zooraft/zooraft/internal/proto"
)

// writeLoop hands to the socket, in one piece, whatever has gathered while the
// last piece was written.
func (c *Conn) writeLoop() {
	for {
		c.mu.Lock()
		for len(c.out) == 0 && c.err == nil {
			c.wake.Wait()
		}
		if c.err != nil {
			c.mu.Unlock()
			return
		}
		batch := c.out
		c.out, c.spare = c.spare[:0], nil
		c.mu.Unlock()

		_, err := c.socket.Write(batch)
		if err != nil {
			c.end(fmt.Errorf("%w: %v", ErrClosed, err))
			return
		}
		c.mu.Lock()
		c.spare = batch[:0]
		c.mu.Unlock()
	}
}

// readLoop completes calls until the connection ends, and then fails the rest.
func (c *Conn) readLoop(reader *bufio.Reader) {
	var frame []byte
	for {
		var err error
		frame, err = proto.ReadFrame(reader, frame[:0], c.options.MaxFrame)
		if err != nil {
			c.end(fmt.Errorf("%w: %v", ErrClosed, err))
			break
		}
		c.heard.Store(true)
		if err := c.receive(frame); err != nil {
			c.end(err)
			break
		}
	}
	c.failAll()
	close(c.events)
	close(c.ended)
}

// receive handles one frame.
func (c *Conn) receive(frame []byte) error {
	d := proto.NewDecoder(frame)
	header := d.ReplyHeader()
	if d.Err() != nil {
		return fmt.Errorf("%w: %v", ErrProtocol, d.Err())
	}
	if header.Xid == proto.XidNotification {
		return c.notify(header, d)
	}
	c.mu.Lock()
	call := c.queueOf(header.Xid).pop()
	c.mu.Unlock()
	switch {
	case call == nil:
		return fmt.Errorf("%w: answer to xid %d, which nobody asked", ErrProtocol, header.Xid)
	case call.Xid != header.Xid:
		call.Err = fmt.Errorf("%w: answer to xid %d where %d was next", ErrProtocol, header.Xid, call.Xid)
		call.Done <- call
		return call.Err
	}
	if header.Zxid > 0 && int64(header.Zxid) > c.lastZxid.Load() {
		c.lastZxid.Store(int64(header.Zxid))
	}
	call.Header = header
	call.Reply = append(call.Reply[:0], d.Rest()...)
	if call.answered != nil {
		call.answered(call)
	}
	call.Done <- call
	return nil
}

func (c *Conn) notify(header proto.ReplyHeader, d *proto.Decoder) error {
	event := Event{WatcherEvent: d.WatcherEvent(), Zxid: header.Zxid}
	if d.Err() != nil {
		return fmt.Errorf("%w: %v", ErrProtocol, d.Err())
	}
	if c.options.Notify != nil {
		c.options.Notify(event)
		return nil
	}
	select {
	case c.events <- event:
		return nil
	default:
		return ErrEventsFull
	}
}

// failAll completes what will never be answered.
func (c *Conn) failAll() {
	c.mu.Lock()
	reason := c.err
	var rest []*Call
	for _, queue := range []*fifo{&c.replies, &c.auths, &c.pings} {
		for call := queue.pop(); call != nil; call = queue.pop() {
			rest = append(rest, call)
		}
	}
	c.mu.Unlock()
	for _, call := range rest {
		call.Err = reason
		call.Done <- call
	}
}
