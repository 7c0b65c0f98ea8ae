package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// frameLength draws a length at or beside one at which a buffer is full.
func frameLength(random *rand.Rand) int {
	bound := []int{0, 4, smallReadBytes, smallReadBytes, largeReadBytes, largeReadBytes, 2 * largeReadBytes}[random.IntN(7)]
	return max(0, bound+random.IntN(13)-8)
}

// frameOfLength is a frame of n bytes without its length, each frame's bytes its own.
func frameOfLength(number, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ number*31)
	}
	return b
}

// piecemeal is a connection that gives what it has in pieces, and where there is a
// deadline has nothing in time now and then.
type piecemeal struct {
	net.Conn
	random   *rand.Rand
	rest     []byte
	deadline bool
}

func (p *piecemeal) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	if p.deadline && p.random.IntN(2) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n := 1 + p.random.IntN([]int{3, 300, 1 << 20}[p.random.IntN(3)])
	n = copy(b, p.rest[:min(n, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// Whatever the lengths of frames and of the pieces in which they come, and whenever
// the buffers are given back, each frame is what was sent.
func TestFramesOfEveryLengthAreCutFromTheStream(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		var frames [][]byte
		var stream []byte
		for i := range 40 {
			f := frameOfLength(i, frameLength(random))
			frames = append(frames, f)
			stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(f))), f...)
		}
		var r frameReader
		conn := &piecemeal{random: random, rest: stream}
		r.init(conn, 1<<20)
		for i, want := range frames {
			if conn.deadline = random.IntN(3) == 0; conn.deadline { // as behind a handshake
				if err := r.await(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("frame %d: await: %v", i, err)
				}
				conn.deadline = false
			}
			if r.empty() && random.IntN(3) == 0 { // as when it is parked
				r.release()
			}
			got, more, err := r.next()
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("frame %d of %d bytes: %d bytes, %v", i, len(want), len(got), err)
			}
			if more && i == len(frames)-1 {
				t.Error("there is more behind the last frame")
			}
		}
		if _, _, err := r.next(); !errors.Is(err, io.EOF) {
			t.Errorf("behind the last frame: %v", err)
		}
		r.release()
	}
}

// What comes out of an outbox is what went in, whatever the lengths of its frames,
// while somebody writes and while nobody does.
func TestFramesOfEveryLengthLeaveTheOutboxInOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 8 {
		ours, theirs := net.Pipe()
		o := &outbox{}
		all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 40}
		o.init(1, ours, 1<<40, all, func(err error) { t.Error(err) })
		received := make(chan []byte, 1)
		go func() {
			b, _ := io.ReadAll(theirs)
			received <- b
		}()
		var want, scratch []byte
		for i := range 60 {
			n := frameLength(random)
			f := frameOfLength(i, n)
			want = append(want, f...)
			if random.IntN(4) == 0 {
				o.share(f)
			} else {
				scratch = append(scratch[:0], f...)
				o.push(scratch)
				if scratch = reusable(scratch); scratch != nil {
					clear(scratch[:cap(scratch)]) // it is written again
				}
			}
			switch random.IntN(6) {
			case 0:
				o.kick()
			case 1:
				o.flush()
			}
		}
		o.finish()
		o.flush()
		if got := <-received; !bytes.Equal(got, want) {
			t.Fatalf("%d bytes went in, %d came out, or others", len(want), len(got))
		}
		if left := all.bytes.Load(); left != 0 {
			t.Errorf("%d bytes are still counted", left)
		}
	}
}

// A buffer that comes back to the pool is nobody's any more.
func TestNoBufferIsInThePoolTwice(t *testing.T) {
	var taken []*[]byte
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		o := &outbox{}
		o.init(1, ours, 1<<40, &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 40}, func(error) {})
		for i := range 20 {
			o.push(frameOfLength(i, 1+frameLength(random)/(1+random.IntN(3))))
			if random.IntN(5) == 0 {
				o.flush()
			}
		}
		if random.IntN(2) == 0 {
			o.close()
		}
		o.finish()
		o.flush()
	}
	for range 200 {
		b := largeBuffers.Get().(*[]byte)
		if slices.Contains(taken, b) || len(*b) != largeReadBytes {
			t.Fatalf("a buffer of %d bytes was given to two", len(*b))
		}
		taken = append(taken, b)
	}
}
