package bench

import (
	"context"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// answerPatience is how long a server that has accepted a connection may take
// to answer before it is asked anew: 1 s.
const answerPatience = time.Second

// Answers tells whether a server opens a session and answers a read.
func Answers(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	o := DefaultOptions(addr)
	l, err := dialLane(ctx, o, 0, crowdBytes)
	if err != nil {
		return false
	}
	defer l.closeSession()
	request := proto.PathWatch{Path: "/zookeeper"}
	start := l.begin(proto.OpGetData)
	l.out = request.Append(l.out)
	l.end(start)
	return l.flush() == nil && l.await(refuse) == nil
}
