package embedding

// What docs/testing.md shows first; TestThePagesShowTheFilesAsTheyAre holds it equal.
import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk" // or any other client
	"github.com/zooraft/zooraft/zktest"
)

func TestMyCode(t *testing.T) {
	srv := zktest.NewServer(t) // serves now, and is gone when the test ends
	conn, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// ... your code against conn
}

func TestEnqueueOnce(t *testing.T) {
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
	if err := enqueue(conn, []byte("once")); err != nil { // your code
		t.Fatal(err)
	}
	if jobs, _, err := conn.Children("/jobs"); err != nil || len(jobs) != 1 {
		t.Errorf("jobs %v (%v)", jobs, err)
	}
}

// enqueue is what the page's test wants of its reader's code: it looks before it
// writes again.
func enqueue(conn *zk.Conn, job []byte) error {
	const path = "/jobs/the-one"
	for {
		_, err := conn.Create(path, job, 0, zk.WorldACL(zk.PermAll))
		switch err {
		case nil, zk.ErrNodeExists:
			return nil
		case zk.ErrConnectionClosed:
			continue
		}
		return err
	}
}
