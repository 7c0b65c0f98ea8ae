package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// terminal is the process's terminal while a line is edited.
type terminal struct {
	sh   *Shell
	fd   int
	edit *term.Terminal
}

// Interactive reads lines at the terminal, with history and completion, and runs
// them until quit or the end of input. The terminal is raw only while a line is
// edited, so that an interrupt reaches a command that runs.
func (sh *Shell) Interactive(ctx context.Context) error {
	file, ok := sh.streams.In.(*os.File)
	if !ok {
		return failf(ErrInput, "standard input is no terminal")
	}
	t := &terminal{sh: sh, fd: int(file.Fd())}
	screen := struct {
		io.Reader
		io.Writer
	}{&interrupts{reader: file}, sh.streams.Out}
	t.edit = term.NewTerminal(screen, "")
	t.edit.AutoCompleteCallback = t.complete
	lines := newLineHistory(sh.config.HistoryFile)
	t.edit.History = lines
	defer lines.close()
	if _, err := sh.current(); err != nil {
		sh.complain(err)
		return err
	}
	sh.outMu.Lock()
	sh.events, sh.states = t.edit, true
	sh.outMu.Unlock()
	if err := sh.await(ctx, sh.session, sh.config.Wait); err != nil {
		sh.complain(err) // and go on: the servers may come
	}
	sh.config.Wait = 0 // from now on a user at the prompt is told at once
	sh.session.SetPatient(false)
	var last error
	for ctx.Err() == nil {
		line, err := t.readLine()
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			return err
		}
		last = t.run(ctx, line)
		if errors.Is(last, errQuit) {
			return nil
		}
	}
	return last
}

// readLine edits one line in raw mode.
func (t *terminal) readLine() (string, error) {
	old, err := term.MakeRaw(t.fd)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	defer term.Restore(t.fd, old)
	if width, height, err := term.GetSize(t.fd); err == nil && width > 0 {
		_ = t.edit.SetSize(width, height) // an odd size costs only looks
	}
	t.edit.SetPrompt(t.sh.Prompt())
	line, err := t.edit.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return line, err
}

// run runs a line; meanwhile events go to the plain terminal, and an interrupt
// ends the command alone.
func (t *terminal) run(ctx context.Context, line string) error {
	sh := t.sh
	sh.outMu.Lock()
	sh.events = sh.out
	sh.outMu.Unlock()
	defer func() {
		sh.outMu.Lock()
		sh.events = t.edit
		sh.outMu.Unlock()
	}()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT)
	defer stop()
	return sh.Line(ctx, line)
}

// tab is the key that completes.
const tab = '\t'

// complete is called for each key: at a tab it completes the word before the
// cursor, or shows what it could become.
func (t *terminal) complete(line string, pos int, key rune) (string, int, bool) {
	if key != tab {
		return "", 0, false
	}
	start, last, quoted := lastWord(line[:pos])
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	found := t.sh.CompleteWord(ctx, append(splitLine(line[:start]), last))
	if len(found) == 0 {
		return line, pos, true
	}
	common := commonPrefix(found)
	if len(found) > 1 && common == last {
		fmt.Fprintf(t.edit, "%s\n", columns(found, 80))
		return line, pos, true
	}
	path := strings.HasPrefix(common, "/")
	if quoted || strings.ContainsAny(common, blanks+quotes) {
		common = quote(common)
	}
	if len(found) == 1 && !path {
		common += " "
	}
	return line[:start] + common + line[pos:], start + len(common), true
}

func commonPrefix(words []string) string {
	common := words[0]
	for _, word := range words[1:] {
		for !strings.HasPrefix(word, common) {
			runes := []rune(common)
			common = string(runes[:len(runes)-1])
		}
	}
	return common
}

// maxShown is the longest list of completions that is drawn.
const maxShown = 200

// columns draws words in columns.
func columns(words []string, width int) string {
	more := ""
	if len(words) > maxShown {
		more = fmt.Sprintf("\n... and %d more", len(words)-maxShown)
		words = words[:maxShown]
	}
	column := 0
	for _, word := range words {
		column = max(column, len(word)+2)
	}
	each := max(1, width/column)
	var b strings.Builder
	for i, word := range words {
		switch {
		case i > 0 && i%each == 0:
			b.WriteString("\n" + word)
		case i > 0:
			b.WriteString(strings.Repeat(" ", column-len(words[i-1])) + word)
		default:
			b.WriteString(word)
		}
	}
	return b.String() + more
}

// interrupts turns an interrupt at the prompt into an empty line: to the end,
// and delete to the start.
type interrupts struct {
	reader  io.Reader
	pending []byte
}

const (
	keyInterrupt = 0x03
	keyLineEnd   = 0x05
	keyDeleteAll = 0x15
)

func (r *interrupts) Read(p []byte) (int, error) {
	if len(r.pending) == 0 {
		buffer := make([]byte, max(1, len(p)/2))
		n, err := r.reader.Read(buffer)
		for _, c := range buffer[:n] {
			if c == keyInterrupt {
				r.pending = append(r.pending, keyLineEnd, keyDeleteAll)
			} else {
				r.pending = append(r.pending, c)
			}
		}
		if n == 0 {
			return 0, err
		}
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

// maxHistory is how many lines the history keeps.
const maxHistory = 1000

// HistoryFile returns where the lines of interactive shells are kept: in the
// user's state directory.
func HistoryFile(env func(string) string) string {
	dir := env("XDG_STATE_HOME")
	if dir == "" && env("HOME") == "" {
		return ""
	}
	if dir == "" {
		dir = filepath.Join(env("HOME"), ".local", "state")
	}
	return filepath.Join(dir, "zooraft", "history")
}

// lineHistory keeps lines, the oldest first, in memory and in a file. Lines with
// a password stay out of both.
type lineHistory struct {
	lines []string
	file  *os.File
}

func newLineHistory(name string) *lineHistory {
	h := &lineHistory{}
	if name == "" {
		return h
	}
	text, _ := os.ReadFile(name) // no file, no lines
	h.lines = slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return line == "" })
	h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
	if os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return h
	}
	if len(text) > 0 && len(h.lines) == maxHistory {
		_ = os.WriteFile(name, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600) // shorter, if it can be
	}
	h.file, _ = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600) // a history in memory does, too
	return h
}

func (h *lineHistory) Add(line string) {
	words := splitLine(line)
	if len(words) == 0 || words[0] == "addauth" && len(words) > 2 {
		return
	}
	if n := len(h.lines); n > 0 && h.lines[n-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if h.file != nil {
		fmt.Fprintln(h.file, line)
	}
}

func (h *lineHistory) Len() int { return len(h.lines) }

// At returns the i-th line from the newest.
func (h *lineHistory) At(i int) string { return h.lines[len(h.lines)-1-i] }

func (h *lineHistory) close() {
	if h.file != nil {
		h.file.Close()
	}
}
