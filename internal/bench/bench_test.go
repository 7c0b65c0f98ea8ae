package bench

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestEveryValueLiesInItsBucket(t *testing.T) {
	previous := -1
	for _, v := range []uint64{0, 1, 126, 127, 128, 129, 255, 256, 257, 1000, 1023, 1024, 1 << 20, 1<<20 + 1<<13, 1<<40 - 1, 1<<63 - 1} {
		i := bucket(v)
		if i < previous || upper(i) < v || i > 0 && upper(i-1) >= v {
			t.Errorf("%d is in bucket %d, which ends at %d after %d", v, i, upper(i), upper(max(i-1, 0)))
		}
		if width := upper(i) - v; v > 0 && width > v/(1<<subBits) {
			t.Errorf("the bucket of %d is %d wide", v, width)
		}
		previous = i
	}
}

func TestQuantilesAreWithinABucketOfTheExactOnes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var a, b histogram
	var exact []time.Duration
	for i := range 10000 {
		d := time.Duration(random.ExpFloat64() * float64(time.Millisecond))
		exact = append(exact, d)
		if i%2 == 0 {
			a.add(d)
		} else {
			b.add(d)
		}
	}
	a.merge(&b)
	slices.Sort(exact)
	for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 0.999, 1} {
		want := exact[int(q*10000)-1]
		if got := a.quantile(q); got < want || got > want+want/(1<<subBits) {
			t.Errorf("quantile %v is %v, exactly %v", q, got, want)
		}
	}
	if a.total != 10000 || a.max != exact[9999] || a.mean() < exact[0] || a.mean() > exact[9999] {
		t.Errorf("total %d, max %v, mean %v", a.total, a.max, a.mean())
	}
	var empty histogram
	if empty.quantile(0.99) != 0 || empty.mean() != 0 {
		t.Error("an empty histogram is not 0")
	}
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	if err := DefaultOptions("localhost:2181").Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, change := range map[string]func(*Options){
		"no connection":       func(o *Options) { o.Connections = 0 },
		"nothing outstanding": func(o *Options) { o.Outstanding = 0 },
		"no watcher":          func(o *Options) { o.Watchers = 0 },
		"no node":             func(o *Options) { o.Nodes = 0 },
		"a negative size":     func(o *Options) { o.ValueSize = -1 },
		"a size too large":    func(o *Options) { o.ValueSize = 1 << 20 },
		"no time":             func(o *Options) { o.Duration = 0 },
		"the root of all":     func(o *Options) { o.Root = "/" },
		"a slash at the end":  func(o *Options) { o.Root = "/a/" },
		"no round":            func(o *Options) { o.Rounds = 0 },
		"no address":          func(o *Options) { o.Addr = "localhost:2181,localhost" },
		"a rate below 0":      func(o *Options) { o.Rate = -1 },
		"too much on its way": func(o *Options) { o.ValueSize, o.Outstanding = 1<<18, 16 },
		"no such workload":    func(o *Options) { o.Workloads = []string{"read", "sleep"} },
	} {
		o := DefaultOptions("localhost:2181")
		change(&o)
		if err := o.Validate(); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// request decodes the only request that a lane has gathered, and forgets it.
func request(t *testing.T, l *lane) (op proto.OpCode, body *proto.Decoder) {
	t.Helper()
	d := proto.NewDecoder(l.out)
	length := d.Int()
	header := proto.RequestHeader{Xid: d.Int(), Type: proto.OpCode(d.Int())}
	if int(length) != len(l.out)-4 || header.Xid != l.sent {
		t.Fatalf("a frame of %d bytes says %d; xid %d, sent %d", len(l.out)-4, length, header.Xid, l.sent)
	}
	body = proto.NewDecoder(append([]byte{}, d.Rest()...))
	l.out = l.out[:0]
	return header.Type, body
}

func TestMixesHaveTheirShareOfReads(t *testing.T) {
	o := DefaultOptions("localhost:2181")
	for name, share := range map[string]int{"read": 100, "write": 0, "mixed-90": 90, "mixed-50": 50} {
		i := slices.Index(Names(), name)
		next := workloads()[i].generator(o, 0)
		reads, paths := 0, map[string]bool{}
		l := &lane{}
		for range 10000 {
			next(0, l)
			op, body := request(t, l)
			if op == proto.OpGetData {
				reads++
				paths[body.String()] = true
			} else if set := body.SetDataRequest(); len(set.Data) != o.ValueSize || set.Version != -1 {
				t.Fatalf("%s: request %+v", name, set)
			} else {
				paths[set.Path] = true
			}
		}
		if reads < share*100-300 || reads > share*100+300 {
			t.Errorf("%s: %d of 10000 are reads", name, reads)
		}
		if len(paths) < o.Nodes*9/10 || len(paths) > o.Nodes {
			t.Errorf("%s: %d paths", name, len(paths))
		}
	}
}

// The client must not be what is measured: it makes no garbage for a request.
func TestARequestAllocatesNothing(t *testing.T) {
	o := DefaultOptions("localhost:2181")
	for _, name := range []string{"read", "write", "mixed-50", "create-delete"} {
		next := workloads()[slices.Index(Names(), name)].generator(o, 0)
		l := &lane{out: make([]byte, 0, 4096)}
		if n := testing.AllocsPerRun(1000, func() { next(0, l); l.out = l.out[:0] }); n != 0 {
			t.Errorf("%s: %v allocations for a request", name, n)
		}
	}
}

func TestCreateAndDeleteTakeTurnsInEachSlot(t *testing.T) {
	o := DefaultOptions("localhost:2181")
	next := createDelete(o, 3)
	l := &lane{}
	for turn := range 4 {
		for slot := range 2 {
			next(slot, l)
			want := proto.OpCreate
			if turn%2 == 1 {
				want = proto.OpDelete
			}
			op, body := request(t, l)
			path := body.String()
			if op != want || !strings.HasPrefix(path, o.Root+"/c0003-000") || path[len(path)-1] != byte('0'+slot) {
				t.Errorf("turn %d of slot %d: %v %s", turn, slot, op, path)
			}
		}
	}
}

func TestAPlanSaysWhenEachRequestIsDue(t *testing.T) {
	first := time.Unix(100, 0)
	p := plan{first: first, interval: 10 * time.Millisecond, end: first.Add(time.Second)}
	if p.requests() != 101 || !p.due(1).Equal(first) || !p.due(101).Equal(p.end) {
		t.Errorf("%d requests, the first due %v, the last %v", p.requests(), p.due(1), p.due(101))
	}
}

func TestATimelineFindsTheGapBetweenAnswersOfAllConnections(t *testing.T) {
	o := DefaultOptions("localhost:2181")
	o.Timeline, o.Duration = 100*time.Millisecond, time.Second
	begin := time.Unix(100, 0)
	line := newTimeline(o, window{start: begin})
	for _, at := range []time.Duration{-5, 10, 50, 130, 135, 450} {
		line.add(begin.Add(at*time.Millisecond), 2)
	}
	var got [][2]int64
	for _, s := range line.report() {
		got = append(got, [2]int64{s.Operations, s.GapMicros})
	}
	if want := [][2]int64{{4, 40000}, {4, 80000}, {0, 0}, {0, 0}, {2, 315000}}; !slices.Equal(got, want) {
		t.Errorf("operations and gaps %v, not %v", got, want)
	}
}

func TestAnAnswerOutOfOrderIsAnError(t *testing.T) {
	l := &lane{sent: 2}
	answer := func(xid int32) []byte {
		return proto.AppendInt(proto.AppendLong(proto.AppendInt(nil, xid), 7), int32(proto.ErrNoNode))
	}
	if xid, code, err := l.answer(answer(1)); xid != 1 || code != proto.ErrNoNode || err != nil {
		t.Errorf("xid %d, code %v, error %v", xid, code, err)
	}
	if xid, _, err := l.answer(answer(proto.XidNotification)); xid != proto.XidNotification || err != nil {
		t.Errorf("an event: xid %d, error %v", xid, err)
	}
	if _, _, err := l.answer(answer(1)); !errors.Is(err, errAnswer) {
		t.Errorf("the same again: error %v", err)
	}
	if _, _, err := l.answer([]byte{1}); !errors.Is(err, errAnswer) {
		t.Errorf("a short one: error %v", err)
	}
}

func TestAnswersCountInTheWindowOnly(t *testing.T) {
	o := DefaultOptions("localhost:2181")
	begin := time.Unix(100, 0)
	win := o.window(begin)
	for _, test := range []struct {
		after        time.Duration
		counts, more bool
	}{{0, false, true}, {o.WarmUp, true, true}, {o.WarmUp + o.Duration, true, true}, {o.WarmUp + o.Duration + 1, false, false}} {
		if counts, more := win.count(begin.Add(test.after)); counts != test.counts || more != test.more {
			t.Errorf("after %v: counts %v, more %v", test.after, counts, more)
		}
	}
	if got := win.elapsed(begin); got != o.Duration {
		t.Errorf("elapsed %v", got)
	}

	o.Requests, o.WarmUp = 2, 0
	win = o.window(begin)
	var answers []bool
	for range 3 {
		counts, more := win.count(begin.Add(time.Second))
		answers = append(answers, counts, more)
	}
	if !slices.Equal(answers, []bool{true, true, true, false, false, false}) {
		t.Errorf("counts and more, three times: %v", answers)
	}
	if got := win.elapsed(begin.Add(time.Second)); got != time.Second {
		t.Errorf("elapsed %v", got)
	}
}

func TestErrorsAreCountedByName(t *testing.T) {
	var a, b tally
	a.operations = 3
	a.fail(proto.ErrNoNode)
	b.fail(proto.ErrNoNode)
	b.fail(proto.ErrThrottledOp)
	a.merge(&b)
	o := DefaultOptions("localhost:2181")
	r := a.result(workloads()[0], o, 2*time.Second)
	if r.Operations != 3 || r.PerSecond != 1.5 || r.Errors["NoNode"] != 2 || len(r.Errors) != 2 {
		t.Errorf("result %+v", r)
	}
	var out strings.Builder
	if err := WriteTable(&out, []Result{r}); err != nil || !strings.Contains(out.String(), "2 answers with error NoNode") {
		t.Errorf("table, error %v:\n%s", err, out.String())
	}
}

// What the client cost is told for all kills together, as its share of the time in
// which load was on.
func TestAFailoversClientIsThatOfAllKills(t *testing.T) {
	one := Client{CPUSeconds: 1, Seconds: 10, Share: 0.05, Busy: 0.5, LoadBefore: "1", LoadAfter: "2"}
	two := Client{CPUSeconds: 9, Seconds: 30, Share: 0.17, Busy: 0.9, LoadBefore: "3", LoadAfter: "4"}
	want := Client{CPUSeconds: 10, Seconds: 40, Share: 0.14, Busy: 0.8, LoadBefore: "1", LoadAfter: "4"}
	got := Client{}.and(one).and(two)
	for what, far := range map[string]float64{
		"seconds": got.Seconds - want.Seconds, "CPU": got.CPUSeconds - want.CPUSeconds, "share": got.Share - want.Share, "busy": got.Busy - want.Busy,
	} {
		if math.Abs(far) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	two.Busy = -1
	if got := one.and(two); got.Busy != -1 {
		t.Errorf("busy %v, and one stretch did not tell", got.Busy)
	}
	var out strings.Builder
	if err := WriteFailover(&out, []FailoverResult{{System: "x", GapMillis: []float64{1}, WorstMillis: []float64{2}, Client: got}}); err != nil {
		t.Fatal(err)
	}
	if said := "the client used 14% of the machine's processors, all together 80%; load average 1 to 4"; !strings.Contains(out.String(), said) {
		t.Errorf("no %q in\n%s", said, out.String())
	}
	text, err := json.Marshal(FailoverResult{Client: want})
	if err != nil || !strings.Contains(string(text), `"client":{"cpu_seconds":10,"seconds":40,"share":0.14`) {
		t.Errorf("%s, error %v", text, err)
	}
}
