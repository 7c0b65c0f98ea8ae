package zktest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/zktest"
)

// enqueue is somebody's code: it puts a job into a queue and tries again when
// the connection breaks.
func enqueue(conn *zk.Conn, data []byte) error {
	for {
		_, err := conn.Create("/jobs/job-", data, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) {
			continue // the bug: the job may be there already
		}
		return err
	}
}

// This is the example of docs/testing.md. It asserts the bug, so that it stays
// an example; a real test would want one job.
func TestEnqueueMakesTwoJobsWhenAReplyIsLost(t *testing.T) {
	srv := zktest.NewServer(t)
	conn, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/jobs", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	srv.Inject(zktest.Match{Op: "create", Path: "/jobs/*"}, zktest.LoseReply())
	if err := enqueue(conn, []byte("once")); err != nil {
		t.Fatal(err)
	}
	jobs, _, err := conn.Children("/jobs")
	if err != nil || len(jobs) != 2 {
		t.Errorf("jobs %v (%v)", jobs, err)
	}
}
