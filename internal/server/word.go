package server

import (
	"bytes"
	"io"
	"net"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
)

const (
	// wordArgTimeout is how long the bytes behind a word may take. Apache does
	// not wait for them at all.
	wordArgTimeout = time.Second
	// wordPieceBytes is how much of a word's text is written at once: 64 KiB.
	wordPieceBytes = 64 << 10
	// wordPieceTimeout is how long an asker may take to read one piece.
	wordPieceTimeout = 10 * time.Second
)

// answerWord answers a connection that began with a four-letter word, of which
// wordBytes have been read, and closes it. Nothing else is ever written to such
// a connection, so the text goes past the outbox: of millions of watches it may
// be long, and an asker that reads slowly gets it all.
func (c *conn) answerWord(w admin.Word, wordBytes int64) {
	c.stats.received.Add(1)
	c.stats.asksWord.Store(true)
	c.server.metrics.packetsReceived.Add(c.id, 1)
	c.server.metrics.bytesReceived.Add(wordBytes)
	arg := make([]byte, w.ArgBytes())
	if len(arg) > 0 {
		_ = c.net.SetReadDeadline(time.Now().Add(wordArgTimeout)) // the read finds out
	}
	if _, err := io.ReadFull(&c.reader, arg); err != nil {
		c.readFailed(err)
		return
	}
	var text bytes.Buffer
	if err := c.server.words.Execute(w, arg, &text); err == nil && text.Len() > 0 {
		c.server.metrics.packetsSent.Add(c.id, 1)
		if err := writePieces(c.net, text.Bytes(), wordPieceBytes, wordPieceTimeout); err != nil {
			c.clientGone(err.Error())
			return
		}
	}
	c.closeBehind(reasonWord)
}

// writePieces writes b in pieces, each of which may take up to within.
func writePieces(conn net.Conn, b []byte, piece int, within time.Duration) error {
	for len(b) > 0 {
		n := min(len(b), piece)
		if err := conn.SetWriteDeadline(time.Now().Add(within)); err != nil {
			return err
		}
		if _, err := conn.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
