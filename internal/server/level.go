package server

import (
	"github.com/zooraft/zooraft/internal/proto"
)

// encode makes a command of a version that every server of the ensemble can
// read: see state's command level.
func (s *Server) encode(t *proto.Txn) []byte {
	room := make([]byte, 0, 64+len(t.Body)+64*len(t.Identities))
	return t.Append(room, s.state.CommandLevel())
}
