package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// prepare makes the nodes that the workers use.
func (w *world) prepare() {
	w.e.t.Helper()
	c := w.mustDial(w.e.ids[0])
	defer c.Drop()
	for _, path := range []string{"/r", "/o", "/s", "/e", "/m", "/w", "/m/a", "/m/b", "/w/0", "/w/1"} {
		if _, err := c.Create(context.Background(), path, nil, proto.CreatePersistent); err != nil {
			w.e.t.Fatalf("prepare %s: %v", path, err)
		}
	}
}

// mustDial opens a new session at a server, within patience.
func (w *world) mustDial(id int) (c *client.Conn) {
	w.e.t.Helper()
	w.e.eventually(fmt.Sprintf("server %d takes a session", id), func() (ok bool) {
		var err error
		c, err = dial(w.e.address(id), 0, nil, 0)
		return err == nil
	})
	return c
}

// resume asks a server for a session until it gives it, or says that it is
// over: a busy machine may not answer the first time, and an election is no
// answer either. The last error is returned after patience.
func (w *world) resume(id int, session proto.SessionID, password []byte) (*client.Conn, error) {
	for end := time.Now().Add(patience); ; {
		c, err := dial(w.e.address(id), session, password, 0)
		if err == nil || errors.Is(err, client.ErrExpired) || time.Now().After(end) {
			return c, err
		}
		w.rest(20 * time.Millisecond)
	}
}

// startWorkers starts the clients.
func (w *world) startWorkers() {
	number := 0
	for _, kind := range []struct {
		run func(*session)
		n   int
	}{{useRegisters, 5}, {useChains, 2}, {useEphemerals, 2}, {useMultis, 2}, {useWatches, 6}} {
		for range kind.n {
			number++
			w.worker(number, kind.run)
		}
	}
}

// finish stops the clients, and checks what is left. Every server must run and
// the network be whole.
func (w *world) finish() {
	t := w.e.t
	t.Helper()
	w.e.awaitAll()
	close(w.stop)
	w.work.Wait()
	w.checkLiving()
	w.awaitNoEphemerals()
	dumps := w.dumpAll()
	w.compare(dumps)
	w.checkChains(dumps[w.e.ids[0]])
	w.checkSequence(dumps[w.e.ids[0]])
	w.checkRegisters()
	w.checkReplicas()
	for _, s := range append(slices.Collect(maps.Values(w.e.servers)), w.e.former...) {
		w.checkLog(s.Address, s.Log())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.problems {
		t.Errorf("%s", p)
	}
	var counts []string
	for _, what := range slices.Sorted(maps.Keys(w.notes.counts)) {
		counts = append(counts, fmt.Sprintf("%d %s", w.notes.counts[what], what))
	}
	t.Logf("seed %d, %.0f s: %s", w.seed, w.now().Seconds(), strings.Join(counts, ", "))
}

// checkLog looks for what no server may say, whatever is done to it.
func (w *world) checkLog(address, log string) {
	for _, bad := range []string{"the replicas have diverged", "panic:", "fatal error:", "unexpected fault address"} {
		if at := strings.Index(log, bad); at >= 0 {
			w.wrong("the log of the server at %s says: %s", address, log[max(0, at-500):min(len(log), at+3000)])
		}
	}
}

// checkLiving looks, before any more can expire, whether each ephemeral still
// exists whose session goes on. The workers have left their sessions behind.
func (w *world) checkLiving() {
	c := w.mustDial(w.e.ids[len(w.e.ids)-1])
	defer c.Drop()
	if err := c.Sync(context.Background(), "/"); err != nil {
		w.wrong("sync: %v", err)
		return
	}
	for id, paths := range w.notes.ephemerals {
		for path := range paths {
			_, err := c.Exists(context.Background(), path, false)
			switch {
			case err == nil && w.notes.ended[id]:
				w.wrong("%s exists, but its session is over", path)
			case err != nil && client.Code(err) != proto.ErrNoNode:
				w.wrong("look at %s: %v", path, err)
			case err != nil && !w.notes.ended[id] && w.sessionLives(id):
				w.wrong("%s is lost although its session lives", path)
			}
		}
	}
}

// sessionLives asks for the session; the workers remember its password.
func (w *world) sessionLives(id proto.SessionID) bool {
	w.mu.Lock()
	password := w.notes.passwords[id]
	w.mu.Unlock()
	c, err := w.resume(w.e.ids[0], id, password)
	switch {
	case errors.Is(err, client.ErrExpired):
		return false
	case err != nil:
		w.wrong("no answer about session %v: %v", id, err)
		return false
	}
	c.Drop()
	return true
}

// awaitNoEphemerals waits until the sessions that the workers left have
// expired, and their nodes with them, on every server.
func (w *world) awaitNoEphemerals() {
	for _, id := range w.e.ids {
		c := w.mustDial(id)
		w.e.eventually(fmt.Sprintf("server %d has no ephemerals of sessions that are over", id), func() bool {
			names, _, err := c.Children(context.Background(), "/e", false)
			if err != nil {
				c.Drop()
				c = w.mustDial(id)
			}
			return err == nil && len(names) == 0
		})
		_ = c.Close(context.Background())
	}
}

// dumpAll reads all nodes of all servers. The sessions made for it are the only
// writes meanwhile, and change no node.
func (w *world) dumpAll() map[int]map[string]string {
	w.e.t.Helper()
	dumps := map[int]map[string]string{}
	w.e.eventually("all servers have the same zxid and are read", func() bool {
		if _, same := w.zxid(); !same {
			return false
		}
		for _, id := range w.e.ids {
			dumps[id] = w.dump(id)
		}
		_, same := w.zxid()
		return same
	})
	return dumps
}

// zxid is the last zxid of all servers, if it is the same.
func (w *world) zxid() (zxid string, same bool) {
	for _, id := range w.e.ids {
		z := field(w.e.srvr(id), "Zxid")
		if z == "" || zxid != "" && z != zxid {
			return "", false
		}
		zxid = z
	}
	return zxid, true
}

// dump reads all nodes of a server: path → data and stat.
func (w *world) dump(id int) map[string]string {
	c := w.mustDial(id)
	defer c.Drop()
	out := map[string]string{}
	paths := []string{"/"}
	for len(paths) > 0 {
		var next []string
		for batch := range slices.Chunk(paths, 500) {
			next = append(next, w.dumpBatch(c, batch, out)...)
		}
		paths = next
	}
	return out
}

// dumpBatch reads some nodes and returns their children.
func (w *world) dumpBatch(c *client.Conn, paths []string, out map[string]string) (children []string) {
	calls := make([][2]*client.Call, len(paths))
	for i, p := range paths {
		calls[i] = [2]*client.Call{c.Do(proto.OpGetData, readBody(p, false)), c.Do(proto.OpGetChildren, readBody(p, false))}
	}
	for i, p := range paths {
		data, err := calls[i][0].Wait(context.Background())
		if err != nil {
			w.wrong("dump %s: %v", p, err)
			return nil
		}
		d := proto.NewDecoder(data)
		out[p] = fmt.Sprintf("%q %+v", d.Buffer(), d.Stat())
		names, err := calls[i][1].Wait(context.Background())
		if err != nil {
			w.wrong("dump %s: %v", p, err)
			return nil
		}
		for _, name := range proto.NewDecoder(names).Strings() {
			children = append(children, strings.TrimSuffix(p, "/")+"/"+name)
		}
	}
	return children
}

// compare finds what servers disagree about.
func (w *world) compare(dumps map[int]map[string]string) {
	first := w.e.ids[0]
	for _, id := range w.e.ids[1:] {
		for path, node := range dumps[first] {
			if other := dumps[id][path]; other != node {
				w.wrong("server %d has %s as %s, server %d as %s", first, path, node, id, other)
			}
		}
		for path := range dumps[id] {
			if _, ok := dumps[first][path]; !ok {
				w.wrong("server %d has %s, server %d has not", id, path, first)
			}
		}
	}
}

// checkChains: of each connection's numbered creates a beginning exists, with
// all that were acknowledged, in order.
func (w *world) checkChains(dump map[string]string) {
	exists := map[string]map[int]bool{}
	for path := range dump {
		if name, ok := strings.CutPrefix(path, "/o/"); ok {
			at := strings.LastIndex(name, "-")
			var n int
			if _, err := fmt.Sscanf(name[at+1:], "%d", &n); err != nil {
				w.wrong("%s is no chain's", path)
				continue
			}
			chain := name[:at]
			if exists[chain] == nil {
				exists[chain] = map[int]bool{}
			}
			exists[chain][n] = true
		}
	}
	for chain, numbers := range exists {
		for n := range numbers {
			if n > 0 && !numbers[n-1] && !w.notes.refused[chain][n-1] {
				w.wrong("chain %s has %d without %d", chain, n, n-1)
			}
			if w.notes.refused[chain][n] {
				w.wrong("chain %s has %d, which was refused", chain, n)
			}
		}
	}
	for chain, numbers := range w.notes.acknowledged {
		for n, zxid := range numbers {
			if !exists[chain][n] {
				w.wrong("chain %s: create %d was acknowledged and is lost", chain, n)
			}
			if before, ok := numbers[n-1]; ok && before >= zxid {
				w.wrong("chain %s: create %d has zxid %v, create %d before it %v", chain, n, zxid, n-1, before)
			}
		}
	}
	w.notes.counts["chains"] = len(exists)
}

// checkSequence: the numbers of sequential nodes rise with the zxid, and none
// that was acknowledged is lost.
func (w *world) checkSequence(dump map[string]string) {
	names := slices.Collect(maps.Keys(w.notes.sequential))
	sort.Slice(names, func(i, j int) bool { return w.notes.sequential[names[i]] < w.notes.sequential[names[j]] })
	for i, name := range names {
		if _, ok := dump[name]; !ok {
			w.wrong("%s was acknowledged and is lost", name)
		}
		if i > 0 && names[i-1] >= name {
			w.wrong("%s was made before %s", names[i-1], name)
		}
	}
}
