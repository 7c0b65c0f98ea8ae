package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

// A digest that differs at the same zxid is loud; an equal one, or one of a zxid
// that this server keeps no digest of, is nothing.
func TestADifferentDigestAtTheSameZxidTurnsHealthRed(t *testing.T) {
	s := startServer(t, testConfig(t))
	c := connect(t, s, proto.ConnectRequest{})
	var kept []state.DigestAt
	for i := 0; len(kept) == 0; i++ {
		create := proto.CreateRequest{Path: fmt.Sprintf("/n%d", i), ACL: proto.OpenACL, TTL: -1}
		c.call(proto.OpCreate, create.Append(nil, proto.OpCreate))
		s.state.View(func(v state.View) { kept = append(kept, v.Digests...) })
	}
	told := func(zxid proto.Zxid, digest uint64, levelAndSessions ...int64) string {
		message := proto.AppendLong(proto.AppendLong([]byte{messageDigest}, int64(zxid)), int64(digest))
		for _, l := range levelAndSessions {
			message = proto.AppendLong(message, l)
		}
		s.heard.take(2, message)
		return (*report)(s).Health().Reason
	}
	at := kept[0]
	if got := told(at.Zxid, at.Digest); got != "" {
		t.Errorf("an equal digest: %q", got)
	}
	if got := told(at.Zxid, at.Digest, 1); got != "" {
		t.Errorf("an equal digest at the same command level: %q", got)
	}
	if got := told(at.Zxid, at.Digest, 1, int64(at.Sessions)); got != "" || at.Sessions == 0 {
		t.Errorf("equal sessions, too: %q", got)
	}
	if got := told(at.Zxid+1, at.Digest+1, 2); got != "" {
		t.Errorf("a digest of another zxid: %q", got)
	}
	if got := told(at.Zxid, at.Digest, 2); !strings.Contains(got, "server 2 differ") || !strings.Contains(got, "levels 1 and 2") {
		t.Errorf("another command level: %q", got)
	}
	s.divergence.found = ""
	if got := told(at.Zxid, at.Digest+1, 1); !strings.Contains(got, "server 2 differ") {
		t.Errorf("a different digest: %q", got)
	}
	s.divergence.found = ""
	if got := told(at.Zxid, at.Digest, 1, int64(at.Sessions+1)); !strings.Contains(got, "hashes of sessions") {
		t.Errorf("other sessions: %q", got)
	}
	if h := (*report)(s).Health(); h.Ready {
		t.Error("health is still green")
	}
	if s.metrics.digestMismatches.Value() != 3 {
		t.Error("they were not counted")
	}
}
