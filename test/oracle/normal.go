package oracle

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// Entry is an item in comparable form.
type Entry struct {
	Step   int
	Conn   string
	Kind   ItemKind
	Exch   string
	Op     proto.OpCode
	Fields []Field
	raw    []byte
}

// String shows an entry on one line.
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Conn, e.Kind)
	if e.Kind == KindFrame {
		fmt.Fprintf(&b, " %s", e.Exch)
	}
	for _, f := range e.Fields {
		fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
	}
	return b.String()
}

// field returns a field's value, or "".
func (e Entry) field(name string) string {
	for _, f := range e.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// closeEnough is how far a transaction's time may lie from this machine's
// clock at the comparison: it only tells milliseconds from seconds.
const closeEnough = time.Hour

// normal maps one server's values to comparable ones. It is used for one
// transcript, from its start to its end.
type normal struct {
	names    *strings.Replacer // of the script's root and of servers
	bases    []int64
	sessions map[int64]string
	passwds  map[string]string // password bytes → the session it was given to
	times    map[int64]int64   // zxid → the time that came with it
}

// Normalise puts a transcript into comparable form.
func Normalise(t Transcript) []Entry {
	names := []string{t.Root, "$"}
	for i, m := range t.Members {
		names = append(names, m, fmt.Sprintf("<server %d>", i+1))
	}
	n := &normal{names: strings.NewReplacer(names...), bases: t.Bases, sessions: map[int64]string{}, passwds: map[string]string{}, times: map[int64]int64{}}
	out := make([]Entry, 0, len(t.Items))
	for _, it := range t.Items {
		out = append(out, Entry{Step: it.Step, Conn: it.Conn, Kind: it.Kind, Exch: it.Exch, Op: it.Op,
			Fields: n.item(it), raw: it.Frame})
	}
	for step := range t.Closing {
		sortEvents(out, step)
	}
	return out
}

// sortEvents sorts each run of events of one connection and zxid in a step
// that ended a session.
func sortEvents(entries []Entry, step int) {
	isEvent := func(e Entry) bool { return e.Exch == "event" && e.Step == step }
	for i := 0; i < len(entries); {
		j := i
		for j < len(entries) && isEvent(entries[j]) && entries[j].Conn == entries[i].Conn &&
			entries[j].field("zxid") == entries[i].field("zxid") {
			j++
		}
		if j == i {
			i++
			continue
		}
		slices.SortFunc(entries[i:j], func(a, b Entry) int { return strings.Compare(a.String(), b.String()) })
		i = j
	}
}

// zxid returns the distance from the last base that is not above: "+n" since
// the script's start, "r1+n" since the first restart.
func (n *normal) zxid(z int64) string {
	if z == 0 || z == -1 {
		return fmt.Sprint(z)
	}
	for i := len(n.bases) - 1; i >= 0; i-- {
		switch base := n.bases[i]; {
		case z < base:
		case i == 0:
			return fmt.Sprintf("+%d", z-base)
		default:
			return fmt.Sprintf("r%d+%d", i, z-base)
		}
	}
	return "old"
}

// notItsTime stands for a time that differs from one that the same zxid had
// before.
const notItsTime = "not the time of its zxid"

// time returns "t" for the one time that belongs to a zxid.
func (n *normal) time(zxid, ms int64) string {
	if ms == 0 {
		return "0"
	}
	if was, ok := n.times[zxid]; ok && was != ms {
		return notItsTime
	}
	n.times[zxid] = ms
	if d := time.Since(time.UnixMilli(ms)); d > closeEnough || d < -closeEnough {
		return "far from now"
	}
	return "t"
}

// session names a session id by its first appearance.
func (n *normal) session(id int64) string {
	if id == 0 {
		return "0"
	}
	if name, ok := n.sessions[id]; ok {
		return name
	}
	name := fmt.Sprintf("S%d", len(n.sessions)+1)
	n.sessions[id] = name
	return name
}

// passwd names a password by the session to which it was first given.
func (n *normal) passwd(id int64, p []byte) string {
	if len(p) != proto.PasswordLen {
		return hex.EncodeToString(p)
	}
	if strings.Trim(string(p), "\x00") == "" {
		return "16 zero bytes"
	}
	if name, ok := n.passwds[string(p)]; ok {
		return name
	}
	name := "password of " + n.session(id)
	for _, used := range n.passwds {
		if used == name {
			name = "another " + name
			break
		}
	}
	n.passwds[string(p)] = name
	return name
}
