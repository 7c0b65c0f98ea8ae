package consensus

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// orders is a test of what edits, kills and starts in the middle of formation
// lead to. Servers 1, 2 and 3 were about to form an ensemble.
type orders struct {
	*company
	memory map[int]*Memory
}

func newOrders(t *testing.T, servers int) *orders {
	t.Helper()
	o := &orders{company: newCompany(t, 0), memory: map[int]*Memory{}}
	for id := 1; id <= servers; id++ {
		o.address(id)
	}
	return o
}

// stored puts into servers 1 to 3 what each had stored of their ensemble.
func (o *orders) stored(what ...string) {
	o.t.Helper()
	f := &founding{peers: o.list(1, 2, 3)}
	for _, p := range f.peers {
		f.founders = append(f.founders, member{ID: fmt.Sprintf("%d-%d", p.ID, 1000+p.ID), Address: p.Address, Voter: true})
	}
	var err error
	if f.cluster, err = clusterOf(f.founders); err != nil {
		o.t.Fatal(err)
	}
	for i, w := range what {
		c := testConfig("")
		c.ServerID, c.LogStore, c.Memory = i+1, LogStoreMemory, NewMemory()
		f.store(o.t, c, w)
		o.memory[i+1] = c.Memory
	}
}

// up starts a server with its data and these server lines.
func (o *orders) up(id int, lines ...int) {
	o.t.Helper()
	if o.memory[id] == nil {
		o.memory[id] = NewMemory()
	}
	c := testConfig("")
	c.LogStore, c.Memory = LogStoreMemory, o.memory[id]
	c.ServerID, c.Peers, c.PeerListen = id, o.list(lines...), o.peers[id].Address
	c.StreamTimeout, c.ElectionTimeout = time.Second, 500*time.Millisecond
	c.Logger = verboseLogger(id)
	s := &testServer{config: c}
	s.open(o.t)
	o.servers[id] = s
}

// one requires that there is one ensemble at most, whoever is up, and returns
// how many servers belong to it.
func (o *orders) one() (members int) {
	o.t.Helper()
	clusters := map[string][]int{}
	for id, m := range o.memory {
		rec, err := readIdentity(memoryStable{m})
		if err == nil && rec.Formed {
			clusters[rec.ClusterID] = append(clusters[rec.ClusterID], id)
			members++
		}
	}
	if len(clusters) > 1 {
		o.t.Errorf("more than one ensemble: %v", clusters)
	}
	return members
}

// says waits until a server says what it waits for.
func (o *orders) says(id int, text string) {
	o.t.Helper()
	defer func() {
		if o.t.Failed() {
			o.t.Logf("server %d says %q", id, o.servers[id].Status().NotReady)
		}
	}()
	eventuallyTrue(o.t, fmt.Sprintf("server %d waits for %s", id, text), func() bool {
		return strings.Contains(o.servers[id].Status().NotReady, text)
	})
}

// forms waits until these servers are members of one ensemble that takes writes.
func (o *orders) forms(ids ...int) {
	o.t.Helper()
	eventuallyTrue(o.t, fmt.Sprintf("servers %v are members", ids), func() bool {
		return !slices.ContainsFunc(ids, func(id int) bool { return !o.servers[id].stable.identity().Formed })
	})
	o.write(ids...)
	o.one()
}

func TestNoOrderOfEditsAndStartsMakesTwoEnsembles(t *testing.T) {
	const agreed = "agreed to form the ensemble of servers 1 2 3"
	for name, run := range map[string]func(o *orders){
		"the decider is taken out of the lines, and comes back": func(o *orders) {
			o.stored(promised, promised, promised)
			for _, id := range []int{2, 3, 4} {
				o.up(id, 2, 3, 4)
			}
			o.says(2, agreed)
			o.says(3, agreed)
			if n := o.one(); n != 0 {
				o.t.Errorf("%d servers belong to an ensemble", n)
			}
			o.up(1, 1, 2, 3) // it cannot go on, and withdraws
			o.forms(2, 3, 4)
		},
		"the decider is taken out of the lines, but had written the list": func(o *orders) {
			o.stored(listed, promised, promised)
			for _, id := range []int{2, 3, 4} {
				o.up(id, 2, 3, 4)
			}
			o.says(2, agreed)
			o.says(3, agreed)
			o.up(1, 1, 2, 3)
			o.forms(2, 3)
		},
		"the last one is given to other servers": func(o *orders) {
			o.stored(listed, listed, promised)
			for _, id := range []int{3, 4, 5} {
				o.up(id, 3, 4, 5)
			}
			o.says(3, agreed)
			o.up(1, 1, 2, 3)
			o.up(2, 1, 2, 3)
			o.forms(1, 2, 3)
		},
		"another one becomes the decider": func(o *orders) {
			o.stored(promised, promised, promised)
			o.address(0)
			for _, id := range []int{1, 2, 3} {
				o.up(id, 0, 1, 2, 3)
			}
			o.up(0, 0, 1, 2, 3)
			o.forms(0, 1, 2, 3)
		},
		"one more server, and one less": func(o *orders) {
			o.stored(promised, promised, promised)
			for _, id := range []int{1, 2, 4} {
				o.up(id, 1, 2, 4)
			}
			o.forms(1, 2, 4)
		},
		"a question that was long on its way": func(o *orders) {
			o.stored(listed, promised, promised)
			o.up(3, 1, 3)
			short := []member{o.founder(1), o.founder(3)}
			question := hello{Version: helloVersion, Kind: kindConfirm, From: short[0].ID, To: short[1].ID, Founders: short}
			if w := o.servers[3].answer(question); !strings.Contains(w.Refused, "does not say that it wants this list") {
				o.t.Errorf("with the decider down: %+v", w)
			}
			o.up(1, 1, 2, 3)
			if w := o.servers[3].answer(question); w.Refused == "" {
				o.t.Errorf("with the decider up: %+v", w)
			}
			o.up(2, 1, 2, 3)
			o.forms(1, 3) // if server 3 leads, it removes server 2: its lines are others
		},
		"another ensemble adds one that has agreed": func(o *orders) {
			o.stored(absent, promised, absent)
			for _, id := range []int{4, 5} {
				o.up(id, 4, 5)
			}
			o.forms(4, 5)
			o.up(2, 1, 2, 3)
			for _, id := range []int{4, 5} {
				if err := o.servers[id].SetMembership(o.list(2, 4, 5)); err != nil {
					o.t.Fatal(err)
				}
			}
			eventuallyTrue(o.t, "the leader calls it", func() bool { return len(o.leader().Membership().Current) == 3 })
			o.says(2, agreed)
			if o.servers[2].stable.identity().Formed {
				o.t.Error("it has become a member")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(newOrders(t, 5))
		})
	}
}

func (o *orders) founder(id int) member {
	return member{ID: fmt.Sprintf("%d-%d", id, 1000+id), Address: o.peers[id].Address, Voter: true}
}

// Servers are started with files of any editing, stopped and started again, in
// any order, from a moment of formation on: there is one ensemble at most, and
// one when the files agree. Any two of the files have a majority in common, so
// none of them asks for a second.
func TestNoRandomOrderOfEditsAndStartsMakesTwoEnsembles(t *testing.T) {
	files := [][]int{{2, 3, 4}, {1, 2, 3}, {1, 3, 4}, {1, 2, 4}, {1, 2, 3, 4}}
	moments := [][]string{{listed, promised, promised}, {promised, promised, promised}, {promised, promised, empty}, {}}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			o := newOrders(t, 4)
			o.stored(moments[seed%4]...)
			rng := rand.New(rand.NewPCG(seed, 3))
			var file []int
			for step := range 40 {
				if step%10 == 0 { // an edit, which reaches one server after the other
					file = files[step/10*rng.IntN(len(files))%len(files)] // first without the decider
				}
				id := 1 + rng.IntN(4)
				if o.servers[id] != nil {
					o.stop(id)
				}
				if slices.Contains(file, id) {
					o.up(id, file...)
				}
				<-time.After(time.Duration(rng.IntN(100)) * time.Millisecond)
				o.one()
			}
			for _, id := range slices.Sorted(maps.Keys(o.servers)) {
				o.stop(id)
			}
			for id := 1; id <= 4; id++ {
				o.up(id, 1, 2, 3, 4)
			}
			o.forms(1, 2, 3, 4)
		})
	}
}
