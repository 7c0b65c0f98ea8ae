package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/zooraft/zooraft/internal/client"
)

// ownCommands are about the shell itself.
func ownCommands() []*command {
	return []*command{
		{
			name: "connect", synopsis: "host:port", summary: "Close the session and open one elsewhere", offline: true,
			max: -1, run: runConnect,
			examples: []string{
				"connect zk1:2181,zk2:2181/app         # below a chroot",
				"connect @prod                         # a cluster of the configuration file",
			},
		},
		{
			name: "close", summary: "Close the session", max: -1, run: runClose,
			examples: []string{"close                                 # connect opens a new one"},
		},
		{
			name: "quit", summary: "Close the session and leave the shell", max: -1, offline: true,
			run:      func(context.Context, *invocation) error { return errQuit },
			examples: []string{"quit"},
		},
		{
			name: "history", summary: "Print the last lines with their numbers", max: -1, offline: true, run: runHistory,
			examples: []string{"history"},
		},
		{
			name: "redo", synopsis: "cmdno", summary: "Run a line of the history again", max: -1, offline: true, run: runRedo,
			examples: []string{"redo 3"},
		},
		{
			name: "printwatches", synopsis: "on|off", summary: "Say or set whether events are printed", max: -1, offline: true,
			run: runPrintWatches, examples: []string{"printwatches off"},
		},
		{
			name: "help", synopsis: "[command]", summary: "Describe the commands, or one", beyond: true, max: 1, offline: true,
			run: runHelp, examples: []string{"help create"},
		},
	}
}

func runConnect(ctx context.Context, in *invocation) error {
	sh := in.sh
	config := sh.config
	config.Connect = sh.connect
	if to := in.arg(0); to != "" {
		config.Connect = to
		if to[0] == '@' {
			var err error
			if config, err = sh.resolve(to[1:]); err != nil {
				return err
			}
		}
	}
	if sh.session != nil && sh.session.State().Alive() {
		closeSession(sh.session)
	}
	session, err := sh.open(config)
	if err != nil {
		return err
	}
	sh.session, sh.connect = session, config.Connect
	sh.config = config
	if err := sh.await(ctx, session, config.Wait); err != nil {
		return err
	}
	return in.answerJSON(map[string]string{"connected": session.Server()})
}

// resolve finds a named cluster; how this shell answers stays.
func (sh *Shell) resolve(name string) (Config, error) {
	if sh.config.Resolve == nil {
		return Config{}, failf(ErrUsage, "no cluster is called %s", name)
	}
	config, err := sh.config.Resolve(name)
	if err != nil {
		return Config{}, err
	}
	own := sh.config
	config.JSON, config.Resolve, config.Version, config.Env = own.JSON, own.Resolve, own.Version, own.Env
	config.HistoryFile, config.Wait = own.HistoryFile, own.Wait
	return config, nil
}

func runClose(_ context.Context, in *invocation) error {
	closeSession(in.session)
	return in.answerJSON(map[string]bool{"closed": true})
}

// historyLines is how many lines history prints before its own (zkCli's).
const historyLines = 10

func runHistory(_ context.Context, in *invocation) error {
	lines := in.sh.history
	type entry struct {
		Number int    `json:"number"`
		Line   string `json:"line"`
	}
	entries := []entry{}
	for i := max(0, len(lines)-1-historyLines); i < len(lines); i++ {
		entries = append(entries, entry{i, lines[i]})
	}
	return in.answer(map[string]any{"lines": entries}, func(w io.Writer) {
		for _, e := range entries {
			fmt.Fprintf(w, "%d - %s\n", e.Number, e.Line)
		}
	})
}

func runRedo(ctx context.Context, in *invocation) error {
	if len(in.args) == 0 {
		return nil // so does zkCli
	}
	n, err := strconv.ParseInt(in.arg(0), 0, 32)
	lines := in.sh.history
	if err != nil {
		return failf(ErrUsage, "redo needs the number of a line")
	}
	if n < 0 || int(n) >= len(lines)-1 {
		return failf(ErrUsage, "Command index out of range")
	}
	again := splitLine(lines[n])
	if len(again) > 0 && again[0] == "redo" {
		return failf(ErrUsage, "No redoing redos")
	}
	lines[len(lines)-1] = lines[n]
	return in.sh.run(ctx, again)
}

func runPrintWatches(_ context.Context, in *invocation) error {
	sh := in.sh
	if len(in.args) > 0 {
		sh.outMu.Lock()
		sh.printWatches = in.arg(0) == "on"
		sh.outMu.Unlock()
		return in.answerJSON(map[string]bool{"printwatches": in.arg(0) == "on"})
	}
	sh.outMu.Lock()
	on := sh.printWatches
	sh.outMu.Unlock()
	return in.say(map[string]bool{"printwatches": on}, "printwatches is %s", map[bool]string{true: "on", false: "off"}[on])
}

func runHelp(_ context.Context, in *invocation) error {
	text, err := Help(in.arg(0))
	if err != nil {
		return err
	}
	return in.answer(map[string]string{"help": text}, func(w io.Writer) { io.WriteString(w, text) })
}

// Lines runs the lines of standard input one after the other, without a prompt,
// and returns the error of the last one: zkCli's exit code, too, is that of its
// last command.
func (sh *Shell) Lines(ctx context.Context, next func() (string, error)) error {
	sh.outMu.Lock()
	sh.events = sh.out
	sh.outMu.Unlock()
	var last error
	for ctx.Err() == nil {
		line, err := next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return last
			}
			return err
		}
		last = sh.Line(ctx, line)
		if errors.Is(last, errQuit) {
			return nil
		}
	}
	return client.ErrClosed
}

// Line runs one line and puts it into the history.
func (sh *Shell) Line(ctx context.Context, line string) error {
	words := splitLine(line)
	if len(words) == 0 {
		return nil
	}
	sh.history = append(sh.history, line)
	return sh.Run(ctx, words)
}
