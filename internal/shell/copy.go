package shell

import (
	"context"
	"strings"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// makeParents creates the missing nodes above a path, without data.
func makeParents(ctx context.Context, session *client.Session, path string, acls []proto.ACL) error {
	for at := 1; ; at++ {
		next := strings.IndexByte(path[at:], '/')
		if next < 0 {
			return nil
		}
		at += next
		request := proto.CreateRequest{Path: path[:at], ACL: acls, TTL: -1}
		if _, err := session.Create(ctx, request); err != nil && client.Code(err) != proto.ErrNodeExists {
			return err
		}
	}
}
