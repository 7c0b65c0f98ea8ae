package shell

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// watchModes are the modes of addWatch.
var watchModes = map[string]int32{
	"PERSISTENT":           proto.AddWatchPersistent,
	"PERSISTENT_RECURSIVE": proto.AddWatchPersistentRecursive,
}

func watchCommands() []*command {
	return []*command{
		{
			name:     "addWatch",
			synopsis: "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE",
			summary:  "Set a watch that stays",
			flags:    []flag{{name: "m", arg: "mode", help: "PERSISTENT or PERSISTENT_RECURSIVE"}},
			min:      1, max: 1, run: runAddWatch,
			examples: []string{"addWatch -m PERSISTENT /app           # its events are printed as they come"},
		},
		{
			name: "removewatches", synopsis: "path [-c|-d|-a] [-l]", summary: "Remove watches of this session",
			flags: []flag{
				{name: "c", help: "those of children"},
				{name: "d", help: "those of data"},
				{name: "p", help: "persistent ones"},
				{name: "r", help: "persistent recursive ones"},
				{name: "a", help: "all (default)"},
				{name: "l", help: "forget them here even if the server cannot be asked"},
			},
			min: 1, max: -1, run: runRemoveWatches,
			examples: []string{"removewatches -a /app"},
		},
		{
			name: "watch", synopsis: "[--data] [--count n] path", summary: "Follow the changes of a node and of everything below",
			beyond: true,
			detail: "One line for each change, until an interrupt. After a lost connection it goes on and says so on\n" +
				"standard error: a server does not tell a recursive watch what changed meanwhile.",
			flags: []flag{
				{name: "data", help: "print the data after the change, too", long: true},
				{name: "count", arg: "n", help: "end after this many changes", long: true},
			},
			min: 1, max: 1, run: runWatch,
			examples: []string{
				"watch /app                            # 2026-01-02T15:04:05.000Z NodeCreated /app/x",
				"watch --json --count 1 /app           # wait for one change, as JSON",
			},
		},
	}
}

func runAddWatch(ctx context.Context, in *invocation) error {
	mode := proto.AddWatchPersistentRecursive
	if in.has("m") {
		var known bool
		if mode, known = watchModes[strings.ToUpper(in.value("m"))]; !known {
			return failf(ErrUsage, "%s", in.command.usage())
		}
	}
	path, err := in.path(0)
	if err != nil {
		return err
	}
	if err := in.session.AddWatch(ctx, path, mode); err != nil {
		return err
	}
	return in.answerJSON(map[string]string{"watching": path})
}

func runRemoveWatches(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	kind := proto.WatcherAny
	for _, k := range []struct {
		flag string
		kind proto.WatcherType
	}{
		{"c", proto.WatcherChildren}, {"d", proto.WatcherData}, {"p", proto.WatcherPersistent},
		{"r", proto.WatcherPersistentRecursive}, {"a", proto.WatcherAny},
	} {
		if in.has(k.flag) {
			kind = k.kind
			break
		}
	}
	if err := in.session.RemoveWatches(ctx, path, kind, in.has("l")); err != nil {
		return err
	}
	return in.answerJSON(map[string]string{"removed": path})
}

// followBuffer is how many events wait while one is printed. A slower reader
// stops the connection's read loop, and with it the session.
const followBuffer = 4096

// following hands the session's watch events to a command while use runs.
func (sh *Shell) following(use func(events <-chan client.Event, lost <-chan struct{}) error) error {
	events, lost := make(chan client.Event, followBuffer), make(chan struct{}, 1)
	sh.outMu.Lock()
	sh.follow = events
	sh.lost = func() {
		select {
		case lost <- struct{}{}:
		default:
		}
	}
	sh.outMu.Unlock()
	defer func() {
		sh.outMu.Lock()
		sh.follow, sh.lost = nil, nil
		sh.outMu.Unlock()
		for len(events) > 0 { // so that a read loop that waits goes on
			<-events
		}
	}()
	return use(events, lost)
}

// change is an event of the command watch as JSON.
type change struct {
	Time string `json:"time"`
	Type string `json:"type"`
	// State is the connection's, for events of the shell itself.
	State string `json:"state,omitempty"`
	Zxid  string `json:"zxid,omitempty"`
	nodeJSON
}

func runWatch(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	limit, err := in.number("count", 0, 32)
	if err != nil {
		return err
	}
	return in.sh.following(func(events <-chan client.Event, lost <-chan struct{}) error {
		if err := in.session.AddWatch(ctx, path, proto.AddWatchPersistentRecursive); err != nil {
			return err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
			defer cancel()
			_ = in.session.RemoveWatches(ctx, path, proto.WatcherPersistentRecursive, true) // the session may be over
		}()
		for seen := int64(0); limit == 0 || seen < limit; {
			select {
			case event := <-events:
				if err := in.printChange(ctx, event); err != nil {
					return err
				}
				seen++
			case <-lost:
				in.sh.note("connected again: changes meanwhile are not listed")
			case <-ctx.Done():
				return ctx.Err()
			}
			if !in.session.State().Alive() {
				return failf(client.ErrExpired, "the session is over")
			}
		}
		return nil
	})
}

func (in *invocation) printChange(ctx context.Context, event client.Event) error {
	c := change{Time: isoTime(time.Now().UnixMilli()), Type: client.EventName(event.Type)}
	c.Path = event.Path
	if event.Zxid > 0 {
		c.Zxid = event.Zxid.String()
	}
	text := fmt.Sprintf("%s %s %s", c.Time, c.Type, c.Path)
	known := []proto.EventType{proto.EventNodeCreated, proto.EventNodeDataChanged}
	if in.has("data") && slices.Contains(known, event.Type) {
		data, _, err := in.session.Get(ctx, event.Path, false)
		switch code := client.Code(err); {
		case err == nil:
			c.setData(data)
			text += " " + string(data)
		case code != proto.ErrNoNode && code != proto.ErrNoAuth:
			return err
		}
	}
	if err := in.answer(c, func(w io.Writer) { fmt.Fprintln(w, text) }); err != nil {
		return err
	}
	return in.flush()
}
