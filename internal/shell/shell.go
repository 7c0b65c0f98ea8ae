package shell

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// Streams are what a shell reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal, OutTerminal and ErrTerminal tell which of them is a terminal.
	InTerminal, OutTerminal, ErrTerminal bool
	// ReadPassword asks at the terminal without showing what is typed. Nil
	// where there is no terminal: then a line of In is taken.
	ReadPassword func(prompt string) (string, error)
}

// Config says where a shell connects and how it answers.
type Config struct {
	// Connect is a connect string: host:port,host:port/chroot.
	Connect string
	// Timeout is the session timeout to ask for. Default 30 s (zkCli's).
	Timeout time.Duration
	// ReadOnly accepts a server without a quorum.
	ReadOnly bool
	// Wait is how long to wait for a connection; 0 tries each server once, a
	// negative value waits for ever.
	Wait time.Duration
	// TLS is spoken to servers when set.
	TLS *tls.Config
	// Auths are the identities to take on.
	Auths []proto.AuthPacket
	// JSON makes every answer a line of JSON.
	JSON bool
	// Resolve turns the name of a cluster into a Config for connect and for
	// --with. Nil knows no names.
	Resolve func(name string) (Config, error)
	// Version is this program's.
	Version string
	// Env reads the environment. Default: there is none.
	Env func(string) string
	// HistoryFile keeps the lines of interactive shells; empty keeps none.
	HistoryFile string
}

// closePatience bounds how long the end of a session may take.
const closePatience = 2 * time.Second

// Shell runs commands in one session at a time.
type Shell struct {
	config  Config
	streams Streams
	out     *bufio.Writer // on streams.Out; flushed after each command
	session *client.Session
	connect string // the connect string of session

	outMu        sync.Mutex        // orders events and answers on the streams
	printWatches bool              // guarded by outMu
	follow       chan client.Event // guarded by outMu; takes the events while the command watch runs
	lost         func()            // guarded by outMu; told when a connection with watches came back
	events       io.Writer         // guarded by outMu; where events are printed, nil for nowhere
	history      []string
	states       bool // changes of the state are printed with the events
}

// New returns a shell that has not yet connected.
func New(config Config, streams Streams) *Shell {
	if config.Timeout == 0 {
		config.Timeout = 30 * time.Second
	}
	if config.Env == nil {
		config.Env = func(string) string { return "" }
	}
	return &Shell{
		config: config, streams: streams, connect: config.Connect, printWatches: true,
		out: bufio.NewWriterSize(streams.Out, 64<<10),
	}
}

// open starts a session by a configuration.
func (sh *Shell) open(config Config) (*client.Session, error) {
	servers, chroot, err := client.ParseConnectString(config.Connect)
	if err != nil {
		return nil, failf(ErrUsage, "%v", err)
	}
	return client.NewSession(client.SessionOptions{
		Servers: servers, Chroot: chroot, Timeout: config.Timeout, ReadOnly: config.ReadOnly,
		TLS: config.TLS, Auths: config.Auths, Patient: config.Wait != 0,
		Notify: sh.event, WatchesLost: sh.watchesLost,
	}), nil
}

// Close ends the session.
func (sh *Shell) Close() {
	if sh.session == nil {
		return
	}
	closeSession(sh.session)
}

// closeSession ends a session. An error changes nothing: the server forgets the
// session after its timeout.
func closeSession(session *client.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	_ = session.Close(ctx)
}

// current returns the session, which it opens when there is none.
func (sh *Shell) current() (*client.Session, error) {
	if sh.session == nil {
		session, err := sh.open(sh.config)
		if err != nil {
			return nil, err
		}
		sh.session = session
	}
	return sh.session, nil
}

// Run runs one command and returns its error, which it has printed already.
func (sh *Shell) Run(ctx context.Context, line []string) error {
	err := sh.run(ctx, line)
	sh.outMu.Lock()
	flushed := sh.out.Flush()
	sh.outMu.Unlock()
	if err == nil && flushed != nil {
		err = fmt.Errorf("write the answer: %w", flushed)
	}
	if err != nil && !errors.Is(err, errQuit) && !errors.Is(err, context.Canceled) {
		sh.complain(err)
	}
	return err
}

// complain prints an error.
func (sh *Shell) complain(err error) {
	if sh.config.JSON {
		fmt.Fprintln(sh.streams.Err, jsonLine(reportOf(err)))
		return
	}
	fmt.Fprintln(sh.streams.Err, Message(err))
}

// note prints something that is no answer.
func (sh *Shell) note(format string, args ...any) {
	fmt.Fprintf(sh.streams.Err, format+"\n", args...)
}

// invocation is one command as it runs.
type invocation struct {
	*words
	sh      *Shell
	command *command
	session *client.Session // nil for commands that need none
	json    bool
}

func (sh *Shell) run(ctx context.Context, line []string) error {
	if len(line) == 0 {
		return nil
	}
	name := line[0]
	cmd := findCommand(name)
	if cmd == nil {
		return failf(ErrNoCommand, "Command not found: Command not found %s", name)
	}
	parsed, err := parseWords(append(globalFlags, cmd.flags...), line[1:])
	if err != nil {
		return err
	}
	if parsed.has("help") {
		_, err := io.WriteString(sh.out, cmd.help())
		return err
	}
	if len(parsed.args) < cmd.min || cmd.max >= 0 && len(parsed.args) > cmd.max {
		return failf(ErrUsage, "%s", cmd.usage())
	}
	if err := parsed.oneOf(cmd.exclusive...); err != nil {
		return err
	}
	in := &invocation{words: parsed, sh: sh, command: cmd, json: sh.config.JSON || parsed.has("json")}
	if cmd.offline {
		return cmd.run(ctx, in)
	}
	if in.session, err = sh.current(); err != nil {
		return err
	}
	if !in.session.State().Alive() {
		return failf(client.ErrClosed, "Not connected")
	}
	if err := sh.await(ctx, in.session, sh.config.Wait); err != nil {
		return err
	}
	return cmd.run(ctx, in)
}

// await waits for a connection as --wait says.
func (sh *Shell) await(ctx context.Context, session *client.Session, wait time.Duration) error {
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	_, err := session.Ready(ctx)
	return err
}

// answer prints an answer: as text, or its value as a line of JSON.
func (in *invocation) answer(value any, text func(w io.Writer)) error {
	in.sh.outMu.Lock()
	defer in.sh.outMu.Unlock()
	if in.json {
		_, err := fmt.Fprintln(in.sh.out, jsonLine(value))
		return err
	}
	text(in.sh.out)
	return nil
}

// say is answer for a text of one line.
func (in *invocation) say(value any, format string, args ...any) error {
	return in.answer(value, func(w io.Writer) { fmt.Fprintf(w, format+"\n", args...) })
}

// flush hands the answer so far to the reader: for commands that go on.
func (in *invocation) flush() error {
	in.sh.outMu.Lock()
	defer in.sh.outMu.Unlock()
	return in.sh.out.Flush()
}

// path returns the i-th argument as a valid path.
func (in *invocation) path(i int) (string, error) {
	path := in.arg(i)
	return path, checkPath(path, false)
}

// event takes the session's events: for the command watch, or to print them.
func (sh *Shell) event(event client.Event) {
	sh.outMu.Lock()
	follow := sh.follow
	if follow == nil && sh.events != nil && sh.printWatches && (sh.states || event.Type != proto.EventNone) {
		sh.printEvent(event)
	}
	sh.outMu.Unlock()
	if follow != nil && event.Type != proto.EventNone {
		follow <- event
	}
}

// printEvent needs sh.outMu. What cannot be printed cannot be reported either.
func (sh *Shell) printEvent(event client.Event) {
	if sh.config.JSON {
		value := change{Time: isoTime(time.Now().UnixMilli()), Type: client.EventName(event.Type), State: stateNames[event.State]}
		value.Path = event.Path
		fmt.Fprintln(sh.events, jsonLine(map[string]any{"event": value}))
	} else {
		fmt.Fprintf(sh.events, "\nWATCHER::\n\n%s\n", eventText(event))
	}
	_ = sh.out.Flush()
}

func (sh *Shell) watchesLost() {
	sh.outMu.Lock()
	lost := sh.lost
	sh.outMu.Unlock()
	if lost != nil {
		lost()
	}
}

// stateNames are ZooKeeper's names of the keeper states.
var stateNames = map[int32]string{
	client.KeeperDisconnected: "Disconnected", client.KeeperSyncConnected: "SyncConnected",
	client.KeeperAuthFailed: "AuthFailed", client.KeeperConnectedReadOnly: "ConnectedReadOnly",
	client.KeeperExpired: "Expired", client.KeeperClosed: "Closed",
}

// eventText prints an event as zkCli does.
func eventText(event client.Event) string {
	path := event.Path
	if event.Type == proto.EventNone {
		path = "null"
	}
	return fmt.Sprintf("WatchedEvent state:%s type:%s path:%s zxid: %d",
		stateNames[event.State], client.EventName(event.Type), path, int64(event.Zxid))
}

// Prompt returns zkCli's prompt: the servers, the state and the number of the
// next line.
func (sh *Shell) Prompt() string {
	state := client.StateConnecting
	if sh.session != nil {
		state = sh.session.State()
	}
	return fmt.Sprintf("[zk: %s(%s) %d] ", strings.TrimSpace(sh.connect), state, len(sh.history))
}
