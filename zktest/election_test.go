package zktest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/zktest"
)

// campaign is somebody's leader election: it leads while it has the node
// /leader, and stops as soon as it cannot know that any more.
func campaign(t *testing.T, name string, addrs []string, course chan<- string) {
	conn, events, err := zk.Connect(addrs, 6*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		conn.Close()
		<-stopped
	})
	go func() {
		defer close(stopped)
		leads := false
		for {
			select {
			case <-stop:
				return
			case e := <-events:
				if leads && e.Type == zk.EventSession && e.State != zk.StateHasSession {
					leads = false
					course <- name + " stops"
				}
			case <-time.After(20 * time.Millisecond):
				if leads {
					continue
				}
				if _, err := conn.Create("/leader", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err == nil {
					leads = true
					course <- name + " leads"
				}
			}
		}
	}()
}

func TestOnlyOneLeadsWhileTheNetworkIsCut(t *testing.T) {
	ens := zktest.NewEnsemble(t, 3)
	alone := ens.Leader()
	var rest []*zktest.Server
	var addrs []string
	for _, s := range ens.Servers() {
		if s != alone {
			rest, addrs = append(rest, s), append(addrs, s.Addr())
		}
	}
	course := make(chan string, 100)
	var steps []string
	until := func(step string) {
		t.Helper()
		for {
			select {
			case s := <-course:
				steps = append(steps, s)
				if s == step {
					return
				}
			case <-time.After(time.Minute):
				t.Fatalf("%q does not come after %v", step, steps)
			}
		}
	}
	campaign(t, "one", []string{alone.Addr()}, course)
	until("one leads")
	campaign(t, "two", addrs, course)

	ens.Partition([]*zktest.Server{alone}, rest)
	until("two leads")
	ens.Heal()

	leaders := 0
	for _, s := range steps {
		if strings.HasSuffix(s, "leads") {
			leaders++
		} else {
			leaders--
		}
		if leaders > 1 {
			t.Fatalf("two lead at a time: %v", steps)
		}
	}
}
