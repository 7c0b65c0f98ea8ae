package consensus

import (
	"bytes"
	"testing"
)

// The first message of a peer connection may come from anybody. Any bytes are
// an error or a message, and a length alone takes no memory beyond the limit.
func FuzzReadMessage(f *testing.F) {
	for _, v := range []any{hello{Version: helloVersion, Kind: kindProbe, From: "1-1", To: "2-0"}, welcome{Refused: "no", Founders: []member{{}}}} {
		var b bytes.Buffer
		if err := writeMessage(&b, v); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte{0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		var h hello
		if err := readMessage(bytes.NewReader(in), &h); err == nil {
			_, _ = splitRaftID(h.From)
			_, _ = splitRaftID(h.To)
		}
		var w welcome
		if err := readMessage(bytes.NewReader(in), &w); err == nil {
			_ = rolesHash(w.Peers)
		}
	})
}
