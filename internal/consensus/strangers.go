package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
)

/*
Strangers on the peer port. Until it has said who it is, a connection costs a
goroutine, at most helloMaxBytes and helloTimeout; pendingHellos of them at
most. When one more comes the oldest goes, not the newest: a server of the
ensemble says its hello at once, so it gets its turn however many are silent.
*/

// pendingHellos bounds the connections whose hello has not come yet.
const pendingHellos = 256

// expect notes a connection whose hello is awaited. It returns false when the
// port is closed.
func (p *peerPort) expect(conn net.Conn) bool {
	var oldest net.Conn
	p.mu.Lock()
	shut := p.shut
	if !shut {
		p.pending = append(p.pending, conn)
		if len(p.pending) > pendingHellos {
			oldest, p.pending = p.pending[0], slices.Delete(p.pending, 0, 1)
		}
	}
	p.mu.Unlock()
	if oldest != nil {
		p.node.refusals.warn(p.node.logger, oldest.RemoteAddr().String(),
			fmt.Sprintf("no hello of a server: %d connections have not said yet who they are, and this is the oldest", pendingHellos))
		_ = oldest.Close()
	}
	return !shut
}

// heard ends expect. It returns false if the connection had to go meanwhile.
func (p *peerPort) heard(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.pending, conn)
	if at < 0 {
		return false
	}
	p.pending = slices.Delete(p.pending, at, at+1)
	return true
}

// opening keeps the first bytes of what is read.
type opening struct {
	io.Reader
	bytes []byte // ≤ 8
}

// Read implements io.Reader.
func (o *opening) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	o.bytes = append(o.bytes, b[:min(n, 8-len(o.bytes))]...)
	return n, err
}

// electing is how Apache's servers begin to speak on an election port, and no
// length of a message.
const electing = "\xff\xff\xff\xff"

// strangerKinds are what is known by its first bytes.
var strangerKinds = []struct {
	prefix string
	what   string
}{
	{"\x16\x03", "the peer port was spoken to in TLS, which it does not use"},
	{"GET ", "it speaks HTTP"}, {"POST", "it speaks HTTP"}, {"HEAD", "it speaks HTTP"}, {"PUT ", "it speaks HTTP"},
	{"PRI ", "it speaks HTTP"}, {"OPTI", "it speaks HTTP"}, {"CONN", "it speaks HTTP"},
	{"\x00\x00\x00\x2c\x00\x00\x00\x00", "it is a ZooKeeper client; the client port is another one"},
	{"\x00\x00\x00\x2d\x00\x00\x00\x00", "it is a ZooKeeper client; the client port is another one"},
	{"\x00\x00\x00\x0b", "it is a server of Apache ZooKeeper, which cannot be a member of this ensemble"},
	{"\x00\x00\x00\x10", "it is an observer of Apache ZooKeeper, which cannot be a member of this ensemble"},
	{electing + "\xff\xff\x00", "it is a server of Apache ZooKeeper that elects a leader, which cannot be a member of this ensemble"},
}

// hello reads a hello.
func (o *opening) hello() (h hello, err error) {
	err = readMessage(o, &h)
	if err != nil && string(o.bytes) == electing {
		_, _ = io.ReadFull(o, make([]byte, 4)) // for the name of who it is, within the same time
	}
	return h, err
}

// noHello says in a few fixed words who came instead of a server. It does not
// depend on addresses and data, so that it is logged once.
func noHello(first []byte, err error) string {
	const text = "no hello of a server: "
	for _, k := range strangerKinds {
		if bytes.HasPrefix(first, []byte(k.prefix)) {
			return text + k.what
		}
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("%sit did not say who it is within %v", text, helloTimeout)
	case len(first) == 0:
		return text + "it went without a word"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return text + "it broke off in its first message"
	}
	return text + "its first message is none of a zooraft server's"
}
