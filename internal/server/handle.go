package server

import (
	"bytes"
	"errors"
	"time"

	"github.com/zooraft/zooraft/internal/auth"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/tree"
)

// forClients tells whether a client may send this op code. A check outside a
// multi, deleteContainer and createSession are commands of the server itself.
func forClients(op proto.OpCode) bool {
	switch op {
	case proto.OpCheck, proto.OpDeleteContainer, proto.OpNotification:
		return false
	case proto.OpCloseSession:
		return true
	}
	return op > 0 && op.String()[:min(7, len(op.String()))] != "unknown"
}

// handle takes one frame of an established connection: it answers it, or puts
// it behind the writes that it must wait for, or proposes it. It returns false
// if no more is to be read.
func (c *conn) handle(frame []byte, now time.Duration) bool {
	if c.Gone() {
		return false // its session has moved: the close is on its way
	}
	if c.server.heard.doubtful(c, now) {
		c.close(reasonNotConfirmed, "")
		return false
	}
	c.stats.received.Add(1)
	c.server.metrics.packetsReceived.Add(c.id, 1)
	c.server.metrics.bytesReceived.AddBy(c.id, int64(len(frame)+4))
	d := proto.NewDecoder(frame)
	h := d.RequestHeader()
	if d.Err() != nil {
		c.close(reasonBadFrame, "no request header")
		return false
	}
	body := d.Rest()
	if c.reconfiguring.Load() && c.behindReconfig(h, body, now) {
		return true
	}
	switch {
	case h.Type == proto.OpAuth:
		return c.handleAuth(h, body, now)
	case h.Type == proto.OpSASL:
		return c.handleSASL(h, body, now)
	case !forClients(h.Type):
		c.answerLocally(h, now, localReply{
			header: proto.ReplyHeader{Xid: h.Xid, Zxid: -1, Err: proto.ErrUnimplemented}, final: reasonUnknownOperation})
		return false
	}
	switch c.server.requestThrottle.admit(c, h.Type, len(frame), now) {
	case admitDrop:
		c.close(reasonStaleRequest, "")
		return false
	case admitTooLarge:
		c.close(reasonLargeRequests, "")
		return false
	case admitThrottled:
		return c.answerLocally(h, now, localReply{header: proto.ReplyHeader{Xid: h.Xid, Err: proto.ErrThrottledOp}})
	}
	c.server.pathCounts.note(h.Type, body)
	loseReply := false
	if c.server.embedding.Intercept != nil {
		var handled, goOn bool
		if handled, goOn, loseReply = c.intercepted(h, body, now); handled {
			return goOn
		}
	}
	switch {
	case h.Type == proto.OpCloseSession && c.local.Load():
		return c.closeLocal(h, now)
	case c.readOnly && h.Type.IsWrite():
		return c.refuseWrite(h, now)
	case c.local.Load() && c.server.config.Session.LocalUpgrade && wantsEphemeral(h.Type, body) && !c.upgrade():
		return false
	case h.Type == proto.OpMulti:
		if result, over := tree.OverExpanded(body, *c.identities.Load()); over {
			return c.refuseMulti(h, now, &result)
		}
		return c.propose(h, body, now, loseReply)
	case h.Type.IsWrite():
		return c.propose(h, body, now, loseReply)
	}
	c.read(h, body, now)
	return true
}

// refuseMulti answers a multi that is not proposed, once all before it is
// answered: a reply's zxid is not below that of an earlier one.
func (c *conn) refuseMulti(h proto.RequestHeader, now time.Duration, result *tree.Result) bool {
	c.out.flush()
	c.queue.waitEmpty()
	return c.answerLocally(h, now, localReply{
		header: proto.ReplyHeader{Xid: h.Xid, Zxid: c.server.state.Zxid()}, body: tree.AppendResult(nil, h.Type, result)})
}

// behindReconfig holds a request back until the reconfig before it is answered:
// that happens by a later command than its own, so nothing of the connection
// may follow it before. Joiners that catch up may take longer than the client
// waits for a sign of life, and a ping's answer is known by its xid in any
// order: while the change is under way a ping is answered here, which
// behindReconfig tells.
func (c *conn) behindReconfig(h proto.RequestHeader, body []byte, now time.Duration) (answered bool) {
	if h.Type == proto.OpPing && c.reconfigUnderWay() {
		c.readNow(h, body, *c.identities.Load(), now)
		return true
	}
	c.out.flush()
	c.queue.waitEmpty()
	c.reconfiguring.Store(false)
	return false
}

// askedPause is the pause between two looks at what became of a reconfig.
const askedPause = 2 * time.Millisecond

// reconfigUnderWay waits until the connection's last request, a reconfig, is
// answered, as one that is refused is at once, or is the change under way.
func (c *conn) reconfigUnderWay() (underWay bool) {
	c.out.flush()
	for c.queue.length() > 0 {
		if c.queue.length() == 1 {
			underWay = c.server.changeAskedBy(c.origin())
		}
		if underWay || !c.server.pause(askedPause) {
			return underWay
		}
	}
	return false
}

// count and uncount keep the sums of requests in work. Each request that
// enters the queue leaves it once: answered, taken back, or dropped.
func (c *conn) count(p *pending) {
	c.server.outstanding.Add(1)
	c.server.requestThrottle.hold(p.size)
}

func (c *conn) uncount(p *pending) {
	c.server.outstanding.Add(-1)
	c.server.requestThrottle.release(p.size)
	c.server.writes.release(p.admitted)
}

// costly tells whether a read may take long, whatever its size. It is never
// left to the goroutine that applies, for which all writes wait: the read loop
// waits for the connection's earlier requests instead.
func costly(op proto.OpCode) bool {
	switch op {
	case proto.OpGetChildren, proto.OpGetChildren2, proto.OpGetAllChildrenNumber, proto.OpGetEphemerals, proto.OpGetACL,
		proto.OpMultiRead, proto.OpSetWatches, proto.OpSetWatches2:
		return true
	}
	return false
}

// read answers a request that needs no log, now or in its turn.
func (c *conn) read(h proto.RequestHeader, body []byte, now time.Duration) {
	ids := *c.identities.Load()
	if costly(h.Type) {
		if c.queue.length() > 0 {
			c.out.flush()
			c.queue.waitEmpty()
		}
		c.behindReads.Store(true)
		c.server.costlyReads <- struct{}{}
		defer func() { <-c.server.costlyReads; c.behindReads.Store(false) }()
	}
	if c.queue.behind(func() pending {
		p := pending{header: h, received: now, size: len(body) + headerBytes, body: bytes.Clone(body), identities: ids}
		c.count(&p)
		return p
	}) {
		return
	}
	c.readNow(h, body, ids, now)
}

// readNow is read for a request whose turn it is.
func (c *conn) readNow(h proto.RequestHeader, body []byte, ids []proto.ID, now time.Duration) {
	r := state.ReadRequest{Header: h, Body: body, Identities: ids, SkipACL: c.server.config.Security.SkipACL,
		MultiReadMaxBytes: c.server.multiReadMaxBytes}
	var reply proto.ReplyHeader
	reply, c.scratch = c.server.state.Read(c, &r, c.scratch)
	c.server.largeReplies.sent(c, &r, len(c.scratch))
	c.scratch = reusable(c.scratch)
	c.replied(h, reply, now)
}

// propose puts a write into the queue and hands it to consensus. The queue
// comes first: the outcome may be applied before Propose returns.
func (c *conn) propose(h proto.RequestHeader, body []byte, now time.Duration, loseReply bool) bool {
	local := c.local.Load()
	t := proto.Txn{TxnHeader: proto.TxnHeader{
		Session: c.SessionID(), Cxid: h.Xid, Type: h.Type, Origin: c.origin(),
		Seq: c.seq + 1, Identities: *c.identities.Load(),
	}, Body: body}
	if local {
		t.Seq = proto.SeqLocal
	}
	command := c.server.encode(&t)
	p := pending{header: h, received: now, write: true, loseReply: loseReply, size: len(body) + headerBytes}
	c.count(&p)
	if !c.queue.append(p) {
		c.uncount(&p)
		return false
	}
	if !c.admitWrite(&p, len(command)) {
		return false
	}
	c.reconfiguring.Store(h.Type == proto.OpReconfig)
	for {
		err := c.server.node.Propose(c.id, command)
		switch {
		case err == nil:
			c.seq++
			if local {
				// A local session has no row that would keep its writes in order.
				c.out.flush()
				c.queue.waitEmpty()
			}
			return true
		case errors.Is(err, consensus.ErrQueueFull):
			if c.server.pause(queueFullPause) {
				continue
			}
		case errors.Is(err, consensus.ErrNotLeader) && c.queue.length() == 1:
			if c.server.awaitWay(c) {
				continue
			}
		case errors.Is(err, consensus.ErrDiskFull):
			// The write has certainly not happened: say so and go on.
			if c.queue.unappend() {
				c.uncount(&p)
			}
			return c.answerLocally(h, now, localReply{header: proto.ReplyHeader{
				Xid: h.Xid, Zxid: c.server.state.Zxid(), Err: proto.ErrSystemError}})
		}
		c.close(reasonFateUnknown, err.Error())
		return false
	}
}

// headerBytes is the length of a request header.
const headerBytes = 8

// queueFullPause is how long a connection waits before it offers a command
// again to a full queue.
const queueFullPause = 5 * time.Millisecond

// answerLocally sends a reply that needs neither state nor log, now or in its
// turn. It returns false if the reply ends the connection.
func (c *conn) answerLocally(h proto.RequestHeader, now time.Duration, r localReply) bool {
	if !c.queue.behind(func() pending {
		p := pending{header: h, received: now, local: &r}
		c.count(&p)
		return p
	}) {
		c.pushLocal(h, &r, now)
		if r.final != "" {
			c.closeBehind(r.final)
		}
	}
	return r.final == ""
}

func (c *conn) pushLocal(h proto.RequestHeader, r *localReply, received time.Duration) {
	frame := proto.AppendReplyHeader(proto.BeginFrame(nil), r.header)
	c.Push(proto.EndFrame(append(frame, r.body...), 0))
	c.replied(h, r.header, received)
}

// handleAuth checks credentials and adds what they prove, for the requests
// that follow. The answer keeps its place among the other replies.
func (c *conn) handleAuth(h proto.RequestHeader, body []byte, now time.Duration) bool {
	d := proto.NewDecoder(body)
	p := d.AuthPacket()
	if d.Err() != nil {
		c.close(reasonBadFrame, "an auth packet that cannot be read")
		return false
	}
	ids := c.server.auth.Authenticate(p, auth.Connection(c.remote.Addr()))
	if len(ids) == 0 {
		c.server.metrics.authFailed.Add(1)
		return c.answerLocally(h, now, localReply{
			header: proto.ReplyHeader{Xid: h.Xid, Err: proto.ErrAuthFailed}, final: reasonAuthFailed})
	}
	all := auth.Add(*c.identities.Load(), ids...)
	if identityBytes(all) > identitiesMaxBytes {
		c.server.metrics.authFailed.Add(1)
		return c.answerLocally(h, now, localReply{
			header: proto.ReplyHeader{Xid: h.Xid, Err: proto.ErrAuthFailed}, final: reasonTooManyIdentities})
	}
	c.identities.Store(&all)
	return c.answerLocally(h, now, localReply{header: proto.ReplyHeader{Xid: h.Xid}})
}

// identitiesMaxBytes bounds the identities of one connection, as they are
// written: 16 KiB, a few hundred digests. Each write carries them all through
// the log, and each check of an ACL compares them all.
const identitiesMaxBytes = 16 << 10

func identityBytes(ids []proto.ID) int {
	n := 0
	for _, id := range ids {
		n += len(id.Scheme) + len(id.ID) + 8 // and two lengths
	}
	return n
}

// handleSASL answers as a server without SASL does: with a null token. The
// client then goes on without being authenticated. A null token from the client
// ends the connection, as it does on ZooKeeper.
func (c *conn) handleSASL(h proto.RequestHeader, body []byte, now time.Duration) bool {
	d := proto.NewDecoder(body)
	if token := d.Buffer(); token == nil || d.Err() != nil {
		c.close(reasonBadFrame, "a sasl packet that cannot be read")
		return false
	}
	return c.answerLocally(h, now, localReply{
		header: proto.ReplyHeader{Xid: h.Xid}, body: proto.AppendBuffer(nil, nil)})
}

// answer sends the reply of a write that has been applied. The goroutine that
// applies calls it under the state lock. It returns true if reads wait next.
func (c *conn) answer(h *proto.TxnHeader, o *state.Outcome, scratch *[]byte) bool {
	p, ok := c.queue.first()
	if !ok {
		return false
	}
	if p.loseReply {
		c.gone.Store(true) // answers nothing any more
		go c.close(reasonTest, "")
		return false
	}
	reply := proto.ReplyHeader{Xid: h.Cxid, Zxid: o.Zxid, Err: o.Result.Err}
	frame := proto.AppendReplyHeader(proto.BeginFrame((*scratch)[:0]), reply)
	if reply.Err == proto.ErrOK {
		frame = appendOutcome(frame, h.Type, o)
	}
	frame = proto.EndFrame(frame, 0)
	c.Push(frame)
	*scratch = frame
	c.replied(p.header, reply, p.received)
	readsWait := c.taken()
	if h.Type == proto.OpCloseSession {
		c.closeApplying(reasonSessionClosed) // which writes the reply
		return false
	}
	c.server.hook.markDirty(c)
	return readsWait
}

// serveReads answers the requests that waited, up to the next write. The
// goroutine that applies calls it under the state lock. None of them is costly,
// and the end of the connection, which may be, is left to another goroutine.
func (c *conn) serveReads(scratch *[]byte) {
	for {
		p, ok := c.queue.first()
		if !ok || p.write {
			return
		}
		if p.local != nil {
			c.pushLocal(p.header, p.local, p.received)
			if p.local.final != "" {
				c.closeApplying(p.local.final)
				return
			}
		} else {
			r := state.ReadRequest{Header: p.header, Body: p.body, Identities: p.identities,
				SkipACL: c.server.config.Security.SkipACL}
			var reply proto.ReplyHeader
			reply, *scratch = c.server.state.ReadApplying(c, &r, *scratch)
			*scratch = reusable(*scratch)
			c.replied(p.header, reply, p.received)
		}
		if !c.taken() {
			return
		}
	}
}

// taken removes the answered head of the queue and tells whether a request
// that can be answered at once is next. A queue that was closed meanwhile has
// been counted out already.
func (c *conn) taken() bool {
	p, popped, readsWait := c.queue.pop()
	if popped {
		c.uncount(&p)
	}
	return readsWait
}

// replied keeps the statistics of one answered request.
func (c *conn) replied(h proto.RequestHeader, reply proto.ReplyHeader, received time.Duration) {
	now := c.server.clock.Monotonic()
	c.stats.replied(h.Type, h.Xid, reply, now, now-received)
	c.server.metrics.observe(c.id, h.Type, now-received)
}

// outstandingLimit is this server's share of globalOutstandingLimit. The
// participants of an ensemble divide it by one less than their number, as Apache's
// do, so that all of them together keep about the leader's limit.
func (s *Server) outstandingLimit() int64 {
	limit := int64(s.config.Limits.GlobalOutstanding)
	if !s.distributed {
		return limit
	}
	members := s.members.Load()
	own, member := members.Get(int64(s.serverID))
	if voters := int64(members.Voters()); member && !own.Observer && voters > 2 {
		limit /= voters - 1
	}
	return limit
}

// holdBack blocks the read loop while too much of this connection is
// unanswered, or while the whole server has more requests in work than
// globalOutstandingLimit and this connection has some of them.
func (c *conn) holdBack() {
	limit := c.server.outstandingLimit()
	if c.server.outstanding.Load() <= limit && !c.queue.overfull() {
		return
	}
	c.out.flush()
	c.queue.waitWhile(func() bool { return c.queue.over() || c.server.outstanding.Load() > limit })
}
