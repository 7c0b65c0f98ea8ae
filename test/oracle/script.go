package oracle

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Script is a named list of steps and the server configuration that they want.
// Its text form is what Parse reads and String writes:
//
//	script <name>
//	config <key>=<value> -D<property>=<value> …
//	turn <n>
//	<step>
//	…
//
// Blank lines and lines that begin with # are ignored.
type Script struct {
	Name   string
	Config string // in normal form: the fields in the order given, one space between
	// Turn turns the servers of an ensemble under the connections: with 0,
	// connection a is at the leader and b and c at followers, with 1, a is at
	// the first follower and c at the leader, and so on. One server alone does
	// not care.
	Turn int
	// Fixed tells that the script means this turn and no other.
	Fixed bool
	Steps []Step
}

// Step is one line of a script: a verb, mostly a connection's name, and
// arguments. The tokens are kept as written, strings quoted as in Go.
//
//	dial C [at=n]               open TCP, send nothing
//	connect C [timeout=ms] [zxid=Z] [session=C] [passwd=own|wrong|zero|null|empty|short] [ro=none|0|1] [cut=n] [pad=hex] [at=n]
//	call C OP …                 send a request, then fence everything
//	send C OP …                 send a request and go on: pipelining
//	ask C OP …                  send a request, read its answer and go on: other servers may not have it yet
//	frame C hex                 send a frame with this payload, then fence
//	raw C hex                   send bytes as they are; C is fenced no more
//	cork C / uncork C           hold back what is sent; send it in one write
//	fence                       fence every connection
//	drop C                      close the TCP connection, say nothing
//	expire C [live]             drop (or stay silent) and wait until the session has expired
//	await C close               read until the server closes
//	await C deleted PATH        read until the event of this deletion comes
//	mark M                      remember the last zxid as @M
//	restart [kill]              end all servers, start them on their data
//	down N / up N               kill a follower of an ensemble; start it again
//	word abcd [at=n]            run a four-letter word; only a close or an answer counts
//
// at is the server of an ensemble to go to, counted from 1 at the script's turn;
// without it connection a is at the first server, b at the second, d at the
// first again. A session moves by a connect elsewhere.
//
// Z is a number, `last`, `base` or `@M`, with +n or -n behind it. In every
// string `$` stands for the script's own root node.
type Step struct {
	Tokens []string
}

// String returns the step's line.
func (s Step) String() string { return strings.Join(s.Tokens, " ") }

// Verb returns the first token.
func (s Step) Verb() string { return s.token(0) }

// Conn returns the connection's name.
func (s Step) Conn() string { return s.token(1) }

// Op returns the operation of a call or send.
func (s Step) Op() string {
	if v := s.Verb(); v == "call" || v == "send" || v == "ask" {
		return s.token(2)
	}
	return ""
}

func (s Step) token(i int) string {
	if i < len(s.Tokens) {
		return s.Tokens[i]
	}
	return ""
}

// step makes a Step from a format.
func step(format string, args ...any) Step {
	t, err := tokenize(fmt.Sprintf(format, args...))
	if err != nil {
		panic(fmt.Sprintf("oracle: %v in a step of our own: %s", err, fmt.Sprintf(format, args...)))
	}
	return Step{Tokens: t}
}

// String returns the script's text form.
func (s Script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "script %s\n", s.Name)
	if s.Config != "" {
		fmt.Fprintf(&b, "config %s\n", s.Config)
	}
	if s.Fixed {
		fmt.Fprintf(&b, "turn %d\n", s.Turn)
	}
	for _, st := range s.Steps {
		fmt.Fprintln(&b, st)
	}
	return b.String()
}

// Parse reads scripts in text form.
func Parse(r io.Reader) ([]Script, error) {
	var scripts []Script
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<22)
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		tokens, err := tokenize(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		switch verb := tokens[0]; {
		case verb == "script" && len(tokens) > 1:
			scripts = append(scripts, Script{Name: strings.Join(tokens[1:], " ")})
			continue
		case len(scripts) == 0:
			return nil, fmt.Errorf("line %d: no script yet", line)
		case verb == "config":
			scripts[len(scripts)-1].Config = strings.Join(tokens[1:], " ")
			continue
		case verb == "turn" && len(tokens) == 2:
			n, err := strconv.Atoi(tokens[1])
			if err != nil || n < 0 {
				return nil, fmt.Errorf("line %d: turn %q", line, tokens[1])
			}
			scripts[len(scripts)-1].Turn, scripts[len(scripts)-1].Fixed = n, true
			continue
		case !verbs[verb]:
			return nil, fmt.Errorf("line %d: unknown verb %q", line, verb)
		}
		last := &scripts[len(scripts)-1]
		last.Steps = append(last.Steps, Step{Tokens: tokens})
	}
	return scripts, sc.Err()
}

// verbs are the words a step may begin with.
var verbs = map[string]bool{
	"dial": true, "connect": true, "call": true, "send": true, "ask": true, "frame": true, "raw": true,
	"cork": true, "uncork": true, "fence": true, "drop": true, "expire": true,
	"await": true, "mark": true, "word": true, "restart": true, "down": true, "up": true,
}

// tokenize splits a line at blanks outside of quotes.
func tokenize(line string) ([]string, error) {
	var tokens []string
	for line = strings.TrimLeft(line, " \t"); line != ""; line = strings.TrimLeft(line, " \t") {
		end := 0
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			if line[end] != '"' {
				end++
				continue
			}
			q, err := strconv.QuotedPrefix(line[end:])
			if err != nil {
				return nil, fmt.Errorf("unclosed quote: %s", line[end:])
			}
			end += len(q)
		}
		tokens = append(tokens, line[:end])
		line = line[end:]
	}
	return tokens, nil
}

// args are the key=value tokens of an operation, and the one token without a
// key, which is the path.
type args struct {
	path  string // as written
	has   bool   // a path was given
	named map[string]string
}

func parseArgs(tokens []string) args {
	a := args{named: map[string]string{}}
	for _, t := range tokens {
		if k, v, ok := strings.Cut(t, "="); ok && !strings.ContainsAny(k, `"/$`) {
			a.named[k] = v
			continue
		}
		a.path, a.has = t, true
	}
	return a
}

// num returns a named number, or its default.
func (a args) num(key string, def int64) int64 {
	v, ok := a.named[key]
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil {
		return def
	}
	return n
}
