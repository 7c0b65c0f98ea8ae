package shell

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

func whoCommands() []*command {
	return []*command{
		{
			name: "who", synopsis: "[--admin socket] [path | session | address]", beyond: true,
			summary: "Print sessions with their clients, ephemerals and watches",
			detail: "Of all, or of those that own or watch a path or something below it, of one session (0x…), or of a\n" +
				"client's address. It asks every server of -server by the words cons, dump and wchc. Where a server does\n" +
				"not tell one of them, a line on standard error says so. The word wchc has only the watches of data that fire\n" +
				"once; --admin tells those of every kind.",
			flags: []flag{adminFlag},
			max:   1, run: runWho, offline: true,
			examples: []string{
				"who                                   # every session",
				"who /app/leader                       # who holds and who watches it",
				"who 0x1000a1b2c3d0000                 # all that one session has",
			},
		},
	}
}

// sessionInfo is what is known about one session.
type sessionInfo struct {
	Session    string         `json:"session"`
	Address    string         `json:"address,omitempty"`
	Server     string         `json:"server,omitempty"`
	Timeout    int64          `json:"timeoutMs,omitempty"`
	Received   int64          `json:"received"`
	Ephemerals []string       `json:"ephemerals"`
	Watches    []sessionWatch `json:"watches"`
}

func runWho(ctx context.Context, in *invocation) error {
	all, err := in.everySession(ctx)
	if err != nil {
		return err
	}
	subject := in.arg(0)
	detailed := subject != ""
	all = slices.DeleteFunc(all, func(s *sessionInfo) bool { return detailed && !s.concerns(subject) })
	if strings.HasPrefix(subject, "/") {
		for _, s := range all {
			s.Ephemerals = keepWithin(s.Ephemerals, subject)
			s.Watches = slices.DeleteFunc(s.Watches, func(w sessionWatch) bool { return !w.concerns(subject) })
		}
	}
	if in.json {
		for _, s := range all {
			if err := in.answer(s, nil); err != nil {
				return err
			}
		}
		return nil
	}
	return in.answer(nil, func(w io.Writer) { printSessions(w, all, detailed) })
}

func printSessions(w io.Writer, all []*sessionInfo, detailed bool) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SESSION\tCLIENT\tSERVER\tTIMEOUT\tREQUESTS\tEPHEMERALS\tWATCHES")
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d ms\t%d\t%d\t%d\n", s.Session, orDash(s.Address), orDash(s.Server), s.Timeout,
			s.Received, len(s.Ephemerals), len(s.Watches))
	}
	table.Flush()
	if !detailed {
		return
	}
	for _, s := range all {
		for _, path := range s.Ephemerals {
			fmt.Fprintf(w, "%s owns %s\n", s.Session, path)
		}
		for _, watch := range s.Watches {
			kind := ""
			if watch.Kind != dataWatch {
				kind = " (" + watch.Kind + ")"
			}
			fmt.Fprintf(w, "%s watches %s%s\n", s.Session, watch.Path, kind)
		}
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func keepWithin(paths []string, root string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return !within(path, root) })
}

// concerns tells whether a session is one of a path, an id or an address.
func (s *sessionInfo) concerns(subject string) bool {
	if !strings.HasPrefix(subject, "/") {
		host := s.Address[:max(0, strings.LastIndexByte(s.Address, ':'))] // an address of IPv6 has colons itself
		return s.Session == subject || s.Address == subject || host != "" && strings.Trim(host, "[]") == strings.Trim(subject, "[]")
	}
	inside := func(path string) bool { return within(path, subject) }
	return slices.ContainsFunc(s.Ephemerals, inside) ||
		slices.ContainsFunc(s.Watches, func(w sessionWatch) bool { return w.concerns(subject) })
}

// dataWatch is the kind of watch that every server tells.
const dataWatch = "data"

// concerns tells whether a watch is of a path or below it. A recursive one above
// is of it too.
func (w sessionWatch) concerns(path string) bool {
	return within(w.Path, path) || w.Kind == "recursive" && within(path, w.Path)
}

// everySession asks all servers and joins what they tell, by session.
func (in *invocation) everySession(ctx context.Context) ([]*sessionInfo, error) {
	sources, err := in.sources()
	if err != nil {
		return nil, err
	}
	sessions := map[string]*sessionInfo{}
	info := func(id string) *sessionInfo {
		if sessions[id] == nil {
			sessions[id] = &sessionInfo{Session: id, Ephemerals: []string{}, Watches: []sessionWatch{}}
		}
		return sessions[id]
	}
	silent, answers := false, 0
	var last error
	for _, source := range sources {
		gathered, err := in.askSource(ctx, source, info, &silent)
		if err != nil {
			last = err
			in.sh.note("%s: %s", source.name, Message(err))
			continue
		}
		answers += gathered
	}
	if answers == 0 {
		return nil, cmpErr(last, failf(ErrNotTold, "no server tells about its sessions"))
	}
	delete(sessions, "0x0")
	var all []*sessionInfo
	for _, s := range sessions {
		slices.Sort(s.Ephemerals)
		s.Ephemerals = slices.Compact(s.Ephemerals)
		slices.SortFunc(s.Watches, func(a, b sessionWatch) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
		})
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sessionInfo) int { return strings.Compare(a.Session, b.Session) })
	return all, nil
}

// askSource asks one server for connections, ephemerals and watches, and returns
// how many of them it told.
func (in *invocation) askSource(ctx context.Context, from source, info func(string) *sessionInfo, silent *bool) (told int, err error) {
	ask := func(word string) (string, error) {
		text, err := from.word(ctx, word)
		text, err = in.told(text, err, silent)
		if text != "" {
			told++
		}
		return text, err
	}
	text, err := ask("cons")
	if err != nil {
		return told, err
	}
	for _, c := range parseConnections(from.name, text) {
		if c.Session != "" {
			s := info(c.Session)
			s.Address, s.Server, s.Timeout, s.Received = c.Address, c.Server, c.Timeout, c.Received
		}
	}
	if text, err = ask("dump"); err != nil {
		return told, err
	}
	for id, paths := range parseEphemerals(text) {
		s := info(id)
		s.Ephemerals = append(s.Ephemerals, paths...)
	}
	if from.watches != nil {
		all, err := from.watches(ctx)
		for _, w := range all {
			s := info(w.Session)
			s.Watches = append(s.Watches, w.sessionWatch)
		}
		return told, err
	}
	if text, err = ask("wchc"); err != nil {
		return told, err
	}
	for id, paths := range parseGroups(text) {
		s := info(id)
		for _, path := range paths {
			s.Watches = append(s.Watches, sessionWatch{Path: path, Kind: dataWatch})
		}
	}
	return told, nil
}
