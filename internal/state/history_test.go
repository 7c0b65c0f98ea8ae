package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// replica is a machine in a random history, with the outboxes of all
// connections.
type replica struct {
	*machine
	boxes map[uint64]*outbox
}

func newReplica(t *testing.T) *replica {
	return &replica{machine: newMachine(t), boxes: map[uint64]*outbox{}}
}

// apply applies a run of commands of one stamp as one entry, and then asks the
// reads of the last.
func (r *replica) apply(run []stamped) {
	first := &run[0]
	r.term, r.now, r.switches = first.term, first.now-1, first.switches
	commands := make([][]byte, len(run))
	for i := range run {
		commands[i] = bytes.Clone(run[i].command)
	}
	r.entry(commands...)
	for _, c := range commands { // the buffer of the entry is used again
		for i := range c {
			c[i] = 0x55
		}
	}
	for _, q := range run[len(run)-1].reads {
		b := r.boxes[q.conn]
		if b == nil {
			b = &outbox{session: proto.SessionID(q.conn)}
			r.boxes[q.conn] = b
		}
		r.read(b, q.op, q.body)
	}
}

// sent prints all outboxes.
func (r *replica) sent() string {
	var b bytes.Buffer
	conns := make([]uint64, 0, len(r.boxes))
	for c := range r.boxes {
		conns = append(conns, c)
	}
	slices.Sort(conns)
	for _, c := range conns {
		for _, it := range r.boxes[c].items {
			fmt.Fprintf(&b, "%d: %+v %x %+v\n", c, it.ReplyHeader, it.body, it.event)
		}
	}
	return b.String()
}

// Replicas agree: the same log gives the same state, the same answers and the
// same events, however the commands were grouped into entries, and whether a
// server has applied all of it, or began from a snapshot somewhere.
//
// The log is also all that counts: the replicas apply it at different times,
// and nothing of the machine's clock gets in (cases 14, 31 and 32).
func TestHistoriesGiveEqualStatesOnAllReplicas(t *testing.T) {
	for _, seed := range seeds(t, 12) {
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runHistory(t, seed, 600) }) {
			t.Fatalf("replay with -run %s -seed %d", t.Name(), seed)
		}
	}
}

func runHistory(t *testing.T, seed uint64, length int) {
	a := newReplica(t)
	g := newGenerator(seed, a.machine)
	var log []stamped
	moments := map[int]string{} // what the state was before some commands
	frozenAt := map[int][]byte{}
	for i := range length {
		s := g.next()
		if i%50 == 0 {
			moments[i] = dump(t, a.Machine)
		}
		if i%97 == 60 {
			frozenAt[i] = frozen(t, a.Machine)
		}
		log = append(log, s)
		a.apply(log[i:])
	}
	b := newReplica(t)
	replay(t, g.Rand, b, log, moments)
	compare(t, "in other batches", a, b)
	if got, want := b.sent(), a.sent(); got != want {
		t.Errorf("outboxes differ:\n%s", firstDifference(got, want))
	}
	for at, snap := range frozenAt {
		c := newReplica(t)
		if err := c.Restore(bytes.NewReader(snap)); err != nil {
			t.Fatal(err)
		}
		replayWithRestores(t, g.Rand, c, log[at:])
		c.hook.lines = append(slices.Clone(linesBefore(t, log[:at])), c.hook.lines...)
		compare(t, fmt.Sprintf("from a snapshot before command %d", at), a, c)
	}
}

// replay applies the log in random batches.
func replay(t *testing.T, r *rand.Rand, m *replica, log []stamped, moments map[int]string) {
	for i := 0; i < len(log); {
		if want, ok := moments[i]; ok {
			if got := dump(t, m.Machine); got != want {
				t.Fatalf("before command %d:\n%s", i, firstDifference(got, want))
			}
		}
		n := batch(r, log[i:])
		for j := i + 1; j < i+n; j++ {
			if _, ok := moments[j]; ok {
				n = j - i
			}
		}
		m.apply(log[i : i+n])
		i += n
	}
}

// replayWithRestores is replay by a server that now and then stops and comes
// back from its own snapshot.
func replayWithRestores(t *testing.T, r *rand.Rand, m *replica, log []stamped) {
	for i := 0; i < len(log); {
		if r.IntN(40) == 0 {
			snap := frozen(t, m.Machine)
			m.Machine = New(m.hook, m.watches)
			if err := m.Restore(bytes.NewReader(snap)); err != nil {
				t.Fatal(err)
			}
		}
		n := batch(r, log[i:])
		m.apply(log[i : i+n])
		i += n
	}
}

// batch is how many of the next commands may be one entry: those of one stamp,
// up to one that reads follow.
func batch(r *rand.Rand, log []stamped) int {
	most := 1 + r.IntN(20)
	n := 1
	for n < len(log) && n < most && len(log[n-1].reads) == 0 &&
		log[n].term == log[0].term && log[n].now == log[0].now && log[n].switches == log[0].switches {
		n++
	}
	return n
}

// linesBefore is what the hook hears of the first part of a log.
func linesBefore(t *testing.T, log []stamped) []string {
	m := newReplica(t)
	for i := range log {
		m.apply(log[i : i+1])
	}
	return m.hook.lines
}

func compare(t *testing.T, how string, a, b *replica) {
	t.Helper()
	if got, want := dump(t, b.Machine), dump(t, a.Machine); got != want {
		t.Errorf("%s: states differ:\n%s", how, firstDifference(got, want))
	}
	for i := range min(len(a.hook.lines), len(b.hook.lines)) {
		if a.hook.lines[i] != b.hook.lines[i] {
			t.Fatalf("%s: line %d: the hook heard\n%s\nwant\n%s", how, i, b.hook.lines[i], a.hook.lines[i])
		}
	}
	if len(a.hook.lines) != len(b.hook.lines) {
		t.Errorf("%s: the hook heard %d lines, want %d", how, len(b.hook.lines), len(a.hook.lines))
	}
}

// firstDifference returns the first line that differs, of both texts.
func firstDifference(got, want string) string {
	g, w := bytes.Split([]byte(got), []byte("\n")), bytes.Split([]byte(want), []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// A random history is worth something only if most kinds of outcome happen.
func TestTheGeneratorReachesAllKindsOfOutcome(t *testing.T) {
	m := newReplica(t)
	g := newGenerator(1, m.machine)
	codes, kinds := map[proto.ErrCode]int{}, map[proto.OpCode]int{}
	m.hook.onApplied = func(h *proto.TxnHeader, o *Outcome) bool {
		codes[o.Result.Err]++
		if o.Result.Err == proto.ErrOK {
			kinds[h.Type]++
		}
		for _, s := range o.Result.Sub {
			codes[s.Err]++
		}
		return false
	}
	most := 0
	for range 6000 {
		m.apply([]stamped{g.next()})
		most = max(most, nodes(m.machine))
	}
	for _, code := range []proto.ErrCode{
		proto.ErrOK, proto.ErrMarshalling, proto.ErrUnimplemented, proto.ErrBadArguments, proto.ErrNoNode, proto.ErrNoAuth,
		proto.ErrBadVersion, proto.ErrNoChildrenForEphemerals, proto.ErrNodeExists, proto.ErrNotEmpty, proto.ErrSessionExpired,
		proto.ErrInvalidACL, proto.ErrReconfigDisabled, proto.ErrQuotaExceeded, proto.ErrRuntimeInconsistency,
	} {
		if codes[code] == 0 {
			t.Errorf("no outcome %v in %v", code, codes)
		}
	}
	for _, op := range []proto.OpCode{
		proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpSetData, proto.OpSetACL,
		proto.OpSync, proto.OpMulti, proto.OpCloseSession, proto.OpCreateSession, proto.OpRenewSession, proto.OpDeleteContainer,
	} {
		if kinds[op] < 3 {
			t.Errorf("%v succeeded %d times", op, kinds[op])
		}
	}
	var outOfTurn, closed int
	for _, l := range m.hook.lines {
		switch {
		case len(l) > 11 && l[:11] == "out of turn":
			outOfTurn++
		case len(l) > 6 && l[:6] == "closed":
			closed++
		}
	}
	if outOfTurn == 0 || closed == 0 || most < 15 {
		t.Errorf("%d out of turn, %d sessions closed, at most %d nodes", outOfTurn, closed, most)
	}
}
