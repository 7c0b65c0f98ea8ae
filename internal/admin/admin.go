package admin

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// Errors of this room.
var (
	// ErrUnreachable is returned when no server answers on the admin socket.
	ErrUnreachable = errors.New("admin: no server answers on the admin socket")
	// ErrSocketPath is returned when the admin socket cannot be put where it
	// belongs: the path is too long for this system, a file that is no socket
	// is in its place, or another server listens there.
	ErrSocketPath = errors.New("admin: the admin socket cannot be placed")
)

// Config is what this room needs to know.
type Config struct {
	// Allows tells whether clients may use a word (4lw.commands.whitelist). It
	// must not change its mind.
	Allows func(word string) bool
	Build  Build
	// Zone is what dump prints its times in. Default: the machine's zone.
	Zone *time.Location
}

// Admin answers the words and the admin channel. All methods may overlap.
type Admin struct {
	config    Config
	server    Server
	registry  *metrics.Registry
	traceMask atomic.Int64
}

// New returns an Admin for the server. It declares in the registry the gauges
// that mntr shows and every metric of Apache's that no room measures; the
// registry must not serve another Admin.
func New(config Config, server Server, registry *metrics.Registry) *Admin {
	if config.Zone == nil {
		config.Zone = time.Local
	}
	a := &Admin{config: config, server: server, registry: registry}
	a.traceMask.Store(defaultTraceMask)
	declareGauges(registry, server)
	metrics.Complete(registry)
	return a
}

// defaultTraceMask is what gtmk answers before any stmk. Source: ZooKeeper's
// default. Nothing here reads the mask; it is kept for tools.
const defaultTraceMask = 306

const notServing = "This ZooKeeper instance is not currently serving requests\n"

// Word is one four-letter word.
type Word struct {
	name string
	// argBytes is how many bytes the client sends after the word.
	argBytes int
	// always marks words that answer when the server is not serving.
	always bool
	gather func(a *Admin, arg []byte) report
}

// Name returns the word.
func (w Word) Name() string { return w.name }

// ArgBytes is how many bytes follow the word on the connection: 8 for stmk
// when it is allowed, else 0. Read them, if they arrive, before Execute.
func (w Word) ArgBytes() int { return w.argBytes }

// report is what a word has found out. Its fields are the facts, for any
// encoding; writeText prints Apache's text.
type report interface {
	writeText(out io.Writer)
}

// Word tells whether the first four bytes of a connection are a word. It is
// one also when the whitelist forbids it: the answer is then a text. A
// connection that has sent one gets the text of Execute and is closed.
func (a *Admin) Word(first [4]byte) (Word, bool) {
	w, ok := words[string(first[:])]
	if ok && !a.config.Allows(w.name) {
		w.argBytes = 0
	}
	return w, ok
}

// Execute gathers what the word asks for and writes its text. It returns the
// write's error, or an error without having written when the argument is too
// short.
func (a *Admin) Execute(w Word, arg []byte, out io.Writer) error {
	if !a.config.Allows(w.name) {
		_, err := io.WriteString(out, w.name+" is not executed because it is not in the whitelist.\n")
		return err
	}
	return a.execute(w, arg, out)
}

func (a *Admin) execute(w Word, arg []byte, out io.Writer) error {
	if len(arg) < w.argBytes {
		return fmt.Errorf("admin: %s needs %d bytes after it, got %d", w.name, w.argBytes, len(arg))
	}
	buffered := bufio.NewWriter(out)
	if !w.always && !a.server.Serving() {
		text := notServing
		if w.name == "hash" {
			text = text[:len(text)-1] // Apache forgets the newline here.
		}
		_, _ = buffered.WriteString(text)
	} else {
		w.gather(a, arg).writeText(buffered)
	}
	return buffered.Flush()
}

// words lists the four-letter words of ZooKeeper 3.9.5.
var words = wordTable(
	Word{name: "ruok", always: true, gather: func(*Admin, []byte) report { return rawText("imok") }},
	Word{name: "srvr", gather: func(a *Admin, _ []byte) report { return a.serverReport(false) }},
	Word{name: "stat", gather: func(a *Admin, _ []byte) report { return a.serverReport(true) }},
	Word{name: "srst", gather: func(a *Admin, _ []byte) report {
		a.server.ResetStats()
		a.registry.Reset()
		return rawText("Server stats reset.\n")
	}},
	Word{name: "mntr", gather: func(a *Admin, _ []byte) report { return a.monitorReport() }},
	Word{name: "cons", gather: func(a *Admin, _ []byte) report { return connectionsReport(a.server.Connections()) }},
	Word{name: "crst", gather: func(a *Admin, _ []byte) report {
		a.server.ResetConnectionStats()
		return rawText("Connection stats reset.\n")
	}},
	Word{name: "conf", gather: func(a *Admin, _ []byte) report { return a.confReport() }},
	Word{name: "envi", always: true, gather: func(a *Admin, _ []byte) report { return a.environment() }},
	Word{name: "dump", gather: func(a *Admin, _ []byte) report { return a.dumpReport() }},
	Word{name: "dirs", gather: func(a *Admin, _ []byte) report {
		data, log := a.server.DirSizes()
		return dirsReport{data, log}
	}},
	Word{name: "wchs", gather: func(a *Admin, _ []byte) report { return watchSummaryReport(a.server.WatchSummary()) }},
	Word{name: "wchc", gather: func(a *Admin, _ []byte) report { return watchesReport(a.server.WatchesBySession()) }},
	Word{name: "wchp", gather: func(a *Admin, _ []byte) report { return watchesByPathReport(a.server.WatchesByPath()) }},
	Word{name: "isro", always: true, gather: func(a *Admin, _ []byte) report { return a.readOnlyReport() }},
	Word{name: "gtmk", always: true, gather: func(a *Admin, _ []byte) report { return traceMaskReport(a.traceMask.Load()) }},
	Word{name: "stmk", always: true, argBytes: 8, gather: func(a *Admin, arg []byte) report {
		mask := int64(binary.BigEndian.Uint64(arg))
		a.traceMask.Store(mask)
		return traceMaskReport(mask)
	}},
	Word{name: "hash", gather: func(a *Admin, _ []byte) report { return digestsReport(a.server.Digests()) }},
)

func wordTable(list ...Word) map[string]Word {
	table := make(map[string]Word, len(list))
	for _, w := range list {
		table[w.name] = w
	}
	return table
}
