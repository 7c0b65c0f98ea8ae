package server

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

// word asks a four-letter word.
func word(t *testing.T, s *Server, name string) string {
	t.Helper()
	c := dial(t, s)
	c.write([]byte(name))
	text, err := io.ReadAll(c.net)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(text)
}

func TestTheMaskOfStmkMayComeLater(t *testing.T) {
	c := testConfig(t)
	c.Words.Allowed = []string{"gtmk", "stmk"}
	s := startServer(t, c)
	asker := dial(t, s)
	asker.write([]byte("stmk"))
	eventually(t, "the word has been taken", func() bool { return s.metrics.packetsReceived.Load() == 1 })
	asker.write([]byte{0, 0, 0, 0, 0, 0, 0, 9})
	if text, err := io.ReadAll(asker.net); err != nil || string(text) != "9" {
		t.Errorf("stmk: %q, %v", text, err)
	}
	if text := word(t, s, "gtmk"); text != "9" {
		t.Errorf("gtmk: %q", text)
	}
}

// slowReader takes what is written to it in the time it was given, piece by
// piece.
type slowReader struct {
	net.Conn
	deadlines int
	pieces    []int
	failAfter int
}

func (r *slowReader) SetWriteDeadline(at time.Time) error {
	if !at.After(time.Now()) {
		return os.ErrDeadlineExceeded
	}
	r.deadlines++
	return nil
}

func (r *slowReader) Write(b []byte) (int, error) {
	if len(r.pieces) == r.failAfter {
		return 0, os.ErrDeadlineExceeded
	}
	r.pieces = append(r.pieces, len(b))
	return len(b), nil
}

func TestEachPieceOfALongAnswerHasItsOwnTime(t *testing.T) {
	r := &slowReader{failAfter: 10}
	if err := writePieces(r, make([]byte, 25), 10, time.Minute); err != nil {
		t.Fatal(err)
	}
	if r.deadlines != 3 || !slices.Equal(r.pieces, []int{10, 10, 5}) {
		t.Errorf("%d deadlines for %v", r.deadlines, r.pieces)
	}
	stuck := &slowReader{failAfter: 1}
	if err := writePieces(stuck, make([]byte, 25), 10, time.Minute); !errors.Is(err, os.ErrDeadlineExceeded) || len(stuck.pieces) != 1 {
		t.Errorf("a reader that is stuck: %v after %v", err, stuck.pieces)
	}
}
