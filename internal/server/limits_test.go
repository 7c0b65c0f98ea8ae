package server

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/proto"
)

// fakeClock is a clock that tests set.
type fakeClock struct {
	wall time.Time
	mono time.Duration
}

func (f *fakeClock) clock() Clock {
	return Clock{Wall: func() time.Time { return f.wall }, Monotonic: func() time.Duration { return f.mono }}
}

func (f *fakeClock) pass(d time.Duration) { f.mono, f.wall = f.mono+d, f.wall.Add(d) }

// Case 38: a step of the wall clock neither stops leader time nor makes timers
// fire in a burst.
func TestLeaderTimeTakesStepsOfTheWallClockSlowly(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			f := &fakeClock{wall: time.Unix(1_800_000_000, 0)}
			l := &leaderClock{clock: f.clock()}
			before := l.now()
			f.wall = f.wall.Add(step)
			for range 10 {
				f.pass(8 * time.Second)
				now := l.now()
				if gone := now.Sub(before); gone < 7*time.Second || gone > 9*time.Second {
					t.Fatalf("in 8 s leader time moved by %v", gone)
				}
				before = now
			}
			f.pass(20 * time.Hour)
			if off := l.now().Sub(f.wall); off != 0 {
				t.Fatalf("still %v off after 20 h", off)
			}
		})
	}
}

// A new leader whose own clock is far off goes on where the former one was.
func TestLeaderTimeGoesOnFromTheFormerLeaders(t *testing.T) {
	f := &fakeClock{wall: time.Unix(1_800_000_000, 0)}
	l := &leaderClock{clock: f.clock()}
	former := f.wall.Add(-10 * time.Minute)
	l.follow(former)
	for range 10 {
		f.pass(8 * time.Second)
		former = former.Add(8 * time.Second)
		if ahead := l.now().Sub(former); ahead < 0 || ahead > 11*time.Second {
			t.Fatalf("leader time is %v ahead of the former leader's", ahead)
		}
	}
}

func TestConnectThrottleTakesTokensAndRefills(t *testing.T) {
	f := &fakeClock{}
	c := config.DefaultThrottle()
	c.Tokens, c.FillTime, c.FillCount = 3, 10*time.Millisecond, 1
	th := newConnectThrottle(c, false, f.clock().Monotonic, func(int64) {})
	for i, want := range []bool{true, true, true, false, false} {
		if got := th.take(0); got != want {
			t.Fatalf("attempt %d: %v", i, got)
		}
	}
	f.pass(25 * time.Millisecond)
	for i, want := range []bool{true, true, false} {
		if got := th.take(0); got != want {
			t.Fatalf("after refill, attempt %d: %v", i, got)
		}
	}
	c.Weighted = true
	th = newConnectThrottle(c, false, f.clock().Monotonic, func(int64) {})
	for i, want := range []bool{true, true, true, true, false} { // renewals cost 2 of 9
		if got := th.take(7); got != want {
			t.Fatalf("weighted, attempt %d: %v", i, got)
		}
	}
	th = newConnectThrottle(c, true, f.clock().Monotonic, func(int64) {})
	for i := range 10 { // new local sessions cost 1 of 9
		if got, want := th.take(0), i < 9; got != want {
			t.Fatalf("new local sessions, attempt %d: %v", i, got)
		}
	}
}

func TestConnectThrottleRefusesMoreOftenWhileTheBucketStaysEmpty(t *testing.T) {
	f := &fakeClock{}
	c := config.DefaultThrottle()
	c.Tokens, c.FillTime, c.FillCount, c.FreezeTime, c.DropIncrease = 1, time.Hour, 1, 0, 0.5
	th := newConnectThrottle(c, false, f.clock().Monotonic, func(int64) {})
	th.take(0)
	for range 2 {
		f.pass(time.Millisecond)
		th.take(0)
	}
	if got := th.dropChance(); got != 1 {
		t.Fatalf("drop chance %v", got)
	}
}

func TestConnectionLimitsRefuseAtAccept(t *testing.T) {
	c := testConfig(t)
	c.Listen.MaxConnectionsPerHost = 2
	s := startServer(t, c)
	a, b := connect(t, s, proto.ConnectRequest{}), connect(t, s, proto.ConnectRequest{})
	if got := dial(t, s).gone(); len(got) != 0 {
		t.Fatalf("third connection got %v", got)
	}
	_ = b.net.Close()
	eventually(t, "room for another", func() bool { return s.conns.count() == 1 })
	connect(t, s, proto.ConnectRequest{})
	if r := a.call(proto.OpExists, pathBody("/", false)); r.Err != 0 {
		t.Fatal(r)
	}
}

// Case 8: a frame that is too long closes its connection before memory is set
// aside; others do not notice.
func TestOversizedAndNegativeFramesCloseOnlyTheirConnection(t *testing.T) {
	s := startServer(t, testConfig(t))
	other := connect(t, s, proto.ConnectRequest{})
	for _, n := range []uint32{0x7fffffff, 0xffffffff, proto.DefaultMaxFrameBytes + 1} {
		for _, established := range []bool{false, true} {
			c := dial(t, s)
			if established {
				c = connect(t, s, proto.ConnectRequest{})
			}
			c.write(binary.BigEndian.AppendUint32(nil, n))
			if got := c.gone(); len(got) != 0 {
				t.Fatalf("length %#x: got %v", n, got)
			}
		}
	}
	if r := other.create("/ok", "", 0); r.Err != 0 {
		t.Fatal(r)
	}
	if s.metrics.closed.Key(string(reasonFrameLength)).Value() != 6 {
		t.Fatalf("closings by frame length: %d", s.metrics.closed.Key(string(reasonFrameLength)).Value())
	}
}

// A client that does not read what it asked for holds back itself, and is
// closed when events for it pass the limit; nobody else waits.
func TestAClientThatDoesNotReadHoldsUpNobody(t *testing.T) {
	s := startServerWith(t, Options{Config: testConfig(t), OutboxMaxBytes: 4 << 20})
	lazy, busy := connect(t, s, proto.ConnectRequest{}), connect(t, s, proto.ConnectRequest{})
	big := string(make([]byte, 500<<10))
	busy.create("/big", big, 0)
	lazy.write(lazy.frame(proto.OpAddWatch, (&proto.PathType{Path: "/", Type: proto.AddWatchPersistentRecursive}).Append(nil)))
	// Far more requests than the sockets hold; the server stops reading them.
	go func() {
		frame := lazy.frame(proto.OpGetData, pathBody("/big", false))
		for range 10000 {
			if _, err := lazy.net.Write(frame); err != nil {
				return
			}
		}
	}()
	for i := range 500 {
		if r := busy.call(proto.OpSetData, setBody("/big", "x")); r.Err != 0 {
			t.Fatalf("write %d: %v", i, r)
		}
	}
}

// Requests beyond globalOutstandingLimit are not lost, only slower.
func TestTheOutstandingLimitSlowsButAnswersEverything(t *testing.T) {
	c := testConfig(t)
	c.Limits.GlobalOutstanding = 2
	s := startServer(t, c)
	a := connect(t, s, proto.ConnectRequest{})
	var batch []byte
	for range 500 {
		batch = append(batch, a.frame(proto.OpCreate, createBody("/n", "", proto.CreatePersistentSequential))...)
	}
	a.write(batch)
	for i := range 500 {
		if r := a.must(); r.Err != 0 || r.Xid != int32(i+1) {
			t.Fatalf("reply %d: %v", i, r)
		}
	}
}

// Participants share the limit as Apache's do; a server alone, one of two and an
// observer have the whole.
func TestTheOutstandingLimitIsSharedByTheParticipants(t *testing.T) {
	members := func(observer bool, others int) (m proto.Membership) {
		m.Members = append(m.Members, proto.Member{ID: 1, Observer: observer})
		for i := range others {
			m.Members = append(m.Members, proto.Member{ID: int64(i + 2)})
		}
		return m
	}
	for name, test := range map[string]struct {
		distributed bool
		members     proto.Membership
		want        int64
	}{
		"alone":                  {false, members(false, 0), 1000},
		"of two":                 {true, members(false, 1), 1000},
		"of three":               {true, members(false, 2), 500},
		"of five":                {true, members(false, 4), 250},
		"of three, removed":      {true, proto.Membership{Members: members(false, 3).Members[1:]}, 1000},
		"an observer with three": {true, members(true, 3), 1000},
	} {
		s := &Server{config: testConfig(t), serverID: 1, distributed: test.distributed}
		s.config.Limits.GlobalOutstanding = 1000
		s.members.Store(&test.members)
		if got := s.outstandingLimit(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// A stop leaves nothing behind and can be followed by a start at once.
func TestStopAndStartAgain(t *testing.T) {
	c := testConfig(t)
	for i := range 5 {
		s := startServer(t, c)
		a := connect(t, s, proto.ConnectRequest{})
		if r := a.create("/n", "", proto.CreatePersistentSequential); r.Err != 0 {
			t.Fatalf("round %d: %v", i, r)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		a.gone()
	}
}
