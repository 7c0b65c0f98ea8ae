package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// runEphemerals ends sessions that have many ephemeral nodes. Another session
// watches them by one recursive watch and has an event for each; a round is
// from the request that ends the session to the last of these events.
func runEphemerals(ctx context.Context, w workload, o Options) (Result, error) {
	if err := createOne(ctx, o, o.Root); err != nil {
		return Result{}, err
	}
	watcher, err := dialLane(ctx, o, 0, laneBytes)
	if err != nil {
		return Result{}, err
	}
	defer watcher.closeSession()
	watch := proto.PathType{Path: o.Root, Type: proto.AddWatchPersistentRecursive}
	start := watcher.begin(proto.OpAddWatch)
	watcher.out = watch.Append(watcher.out)
	watcher.end(start)
	if err := watcher.flush(); err != nil {
		return Result{}, err
	}
	if err := watcher.await(refuse); err != nil {
		return Result{}, err
	}
	var t tally
	meter := newMeter()
	var rounds []float64
	var took time.Duration
	for range o.Rounds {
		lasted, err := ephemeralRound(ctx, o, watcher)
		if err != nil {
			return Result{}, err
		}
		t.operations += int64(o.Nodes)
		t.latency.add(lasted)
		rounds = append(rounds, millis(lasted))
		took += lasted
	}
	o.Connections, o.Outstanding = 1, 1
	r := t.result(w, o, took)
	r.RoundMillis, r.Client = rounds, meter.read()
	return r, nil
}

// refuse makes an error of an answer with a code.
func refuse(code proto.ErrCode) error {
	if code != proto.ErrOK {
		return fmt.Errorf("%w: %v", errAnswer, code)
	}
	return nil
}

func ephemeralRound(ctx context.Context, o Options, watcher *lane) (time.Duration, error) {
	owner, err := dialLane(ctx, o, 1, laneBytes)
	if err != nil {
		return 0, err
	}
	closed := false
	defer func() {
		if !closed {
			owner.closeSession()
		}
	}()
	events := make(chan error, 2)
	var counting sync.WaitGroup
	count := func(n int) { counting.Go(func() { events <- watcher.events(n) }) }
	count(o.Nodes)
	if err := owner.createEphemerals(o); err != nil {
		return 0, err
	}
	if err := wait(ctx, events, 2*o.SessionTimeout); err != nil {
		return 0, fmt.Errorf("while they are made: %w", err)
	}
	count(o.Nodes)
	begin := time.Now()
	closed = true
	owner.closeSession()
	if err := wait(ctx, events, 2*o.SessionTimeout); err != nil {
		return 0, fmt.Errorf("while they go: %w", err)
	}
	return time.Since(begin), nil
}

// createEphemerals makes the nodes, a hundred at a time.
func (l *lane) createEphemerals(o Options) error {
	request := proto.CreateRequest{Data: value(o), ACL: proto.OpenACL, TTL: -1, Flags: proto.CreateEphemeral}
	for i := range o.Nodes {
		request.Path = fmt.Sprintf("%s/e%06d", o.Root, i)
		start := l.begin(proto.OpCreate)
		l.out = request.Append(l.out, proto.OpCreate)
		l.end(start)
		if i%100 == 99 || i == o.Nodes-1 {
			if err := l.flush(); err != nil {
				return err
			}
			if err := l.await(refuse); err != nil {
				return err
			}
		}
	}
	return nil
}

// events takes that many events.
func (l *lane) events(n int) error {
	for n > 0 {
		frame, err := l.frame()
		if err != nil {
			return err
		}
		xid, _, err := l.answer(frame)
		if err != nil {
			return err
		}
		if xid == proto.XidNotification {
			n--
		}
	}
	return nil
}

func wait(ctx context.Context, done <-chan error, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errLost
	case <-ctx.Done():
		return ctx.Err()
	}
}
