package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

var (
	// errLost is returned when a connection ended during a run.
	errLost = errors.New("bench: a connection was lost")
	// errAnswer is returned when a server's answer is not the next one.
	errAnswer = errors.New("bench: an answer out of order")
)

// lane is one connection with one session, made for load: one goroutine reads,
// answers come in the order of the requests, and nothing is allocated for a
// request. What is sent is gathered and written in one piece.
type lane struct {
	socket  net.Conn
	timeout time.Duration // of the session, as the server has given it

	in         []byte // what was read and is not yet taken, from head to tail
	head, tail int

	mu      sync.Mutex // held while out is filled and written, where two do
	out     []byte     // guarded by mu where two goroutines send
	sent    int32      // xids given; guarded likewise
	answers int32      // of the reader alone: the xid of the last answer
}

const (
	// laneBytes is the first size of the read buffer of a loaded connection.
	laneBytes = 64 << 10
	// crowdBytes is that of one among thousands.
	crowdBytes = 512
	// maxAnswerBytes bounds an answer: lists of children have no limit.
	maxAnswerBytes = 256 << 20
	// perSource is how many connections go out from one loopback address: there
	// are not many more ports for one destination.
	perSource = 20000
)

// dialLane opens connection number i; the servers take turns.
func dialLane(ctx context.Context, o Options, i, bufferBytes int) (*lane, error) {
	addresses := o.addresses()
	addr := addresses[i%len(addresses)]
	var dialer net.Dialer
	if host, _, err := net.SplitHostPort(addr); err == nil && i >= perSource && net.ParseIP(host).IsLoopback() {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/perSource))}
	}
	socket, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	l := &lane{socket: socket, in: make([]byte, bufferBytes)}
	if err := l.handshake(o.SessionTimeout); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("handshake with %s: %w", addr, errors.Join(err, ctx.Err()))
	}
	return l, nil
}

func (l *lane) handshake(timeout time.Duration) error {
	request := proto.ConnectRequest{
		TimeoutMillis: int32(timeout.Milliseconds()), Password: make([]byte, proto.PasswordLen), HasReadOnly: true,
	}
	l.out = proto.EndFrame(request.Append(proto.BeginFrame(l.out[:0])), 0)
	if err := l.flush(); err != nil {
		return err
	}
	frame, err := l.frame()
	if err != nil {
		return err
	}
	response, err := proto.DecodeConnectResponse(frame)
	if err != nil {
		return err
	}
	if response.SessionID == 0 || response.TimeoutMillis <= 0 {
		return errLost
	}
	l.timeout = time.Duration(response.TimeoutMillis) * time.Millisecond
	return nil
}

// begin starts a request; its body is appended to out, and end finishes it.
func (l *lane) begin(op proto.OpCode) (start int) {
	start = len(l.out)
	l.sent++
	l.out = proto.BeginFrame(l.out)
	l.out = proto.AppendInt(l.out, l.sent)
	l.out = proto.AppendInt(l.out, int32(op))
	return start
}

func (l *lane) end(start int) { proto.EndFrame(l.out, start) }

// flush writes what has gathered.
func (l *lane) flush() error {
	if len(l.out) == 0 {
		return nil
	}
	_, err := l.socket.Write(l.out)
	l.out = l.out[:0]
	return err
}

// complete reports whether a whole frame has been read already.
func (l *lane) complete() bool {
	have := l.tail - l.head
	return have >= 4 && have-4 >= int(int32(binary.BigEndian.Uint32(l.in[l.head:])))
}

// read reads once, waiting for something to come.
func (l *lane) read() error {
	switch {
	case l.head == l.tail:
		l.head, l.tail = 0, 0
	case l.tail == len(l.in) && l.head > 0:
		l.tail = copy(l.in, l.in[l.head:l.tail])
		l.head = 0
	}
	if l.tail == len(l.in) {
		if len(l.in) >= maxAnswerBytes {
			return proto.ErrFrameLength
		}
		l.in = append(l.in, make([]byte, max(len(l.in), crowdBytes))...)
	}
	n, err := l.socket.Read(l.in[l.tail:])
	l.tail += n
	if n > 0 {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return errLost
	}
	return fmt.Errorf("%w: %v", errLost, err)
}

// take returns a frame that is complete. It is valid until the next read.
func (l *lane) take() []byte {
	n := int(binary.BigEndian.Uint32(l.in[l.head:]))
	frame := l.in[l.head+4 : l.head+4+n]
	l.head += 4 + n
	return frame
}

// frame returns the next frame and waits for it.
func (l *lane) frame() ([]byte, error) {
	for !l.complete() {
		if err := l.read(); err != nil {
			return nil, err
		}
	}
	return l.take(), nil
}

// answerHeader is the length of a reply header: xid, zxid, error code.
const answerHeader = 16

// answer reads the header of a frame. What is no answer to a request, an event
// or a pong, is told by its xid below 0.
func (l *lane) answer(frame []byte) (xid int32, code proto.ErrCode, err error) {
	if len(frame) < answerHeader {
		return 0, 0, fmt.Errorf("%w: of %d bytes", errAnswer, len(frame))
	}
	xid = int32(binary.BigEndian.Uint32(frame))
	code = proto.ErrCode(int32(binary.BigEndian.Uint32(frame[12:])))
	if xid < 0 {
		return xid, code, nil
	}
	l.answers++
	if xid != l.answers {
		return xid, code, fmt.Errorf("%w: to request %d, where %d was next", errAnswer, xid, l.answers)
	}
	return xid, code, nil
}

// await takes answers until that to the last request has come; other frames
// are passed by. It returns the last answer's code, and gives other answers'
// codes to judge, where it is not nil.
func (l *lane) await(judge func(proto.ErrCode) error) error {
	for l.answers < l.sent {
		frame, err := l.frame()
		if err != nil {
			return err
		}
		xid, code, err := l.answer(frame)
		if err != nil {
			return err
		}
		if xid >= 0 && judge != nil {
			if err := judge(code); err != nil {
				return err
			}
		}
	}
	return nil
}

// ping appends a ping, which has its own xid.
func (l *lane) ping() {
	start := len(l.out)
	l.out = proto.BeginFrame(l.out)
	l.out = proto.AppendInt(l.out, proto.XidPing)
	l.out = proto.AppendInt(l.out, int32(proto.OpPing))
	proto.EndFrame(l.out, start)
}

// closeSession ends the session and then the connection.
func (l *lane) closeSession() {
	_ = l.socket.SetDeadline(time.Now().Add(10 * time.Second)) // a session that does not close expires
	l.end(l.begin(proto.OpCloseSession))
	if l.flush() == nil {
		_ = l.await(nil)
	}
	_ = l.socket.Close()
}
