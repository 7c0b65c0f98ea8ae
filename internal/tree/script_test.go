package tree

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// script drives a tree by a text: see testdata/README.
type script struct {
	tree     *Tree
	zxid     proto.Zxid
	session  proto.SessionID
	ids      []proto.ID
	switches uint32
	local    bool
}

func newScript() *script {
	return &script{tree: New(), session: 1, switches: proto.SwitchExtendedTypes | proto.SwitchEnforceQuota}
}

var rewrite = flag.Bool("rewrite", false, "write what the tree answers into the scripts, to be read and judged before it is committed")

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, newScript(), string(text))
			if *rewrite {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// runScript runs each command and compares its output with the lines after it
// that start with a space. It returns the text with the outputs as they are.
func runScript(t *testing.T, s *script, text string) string {
	t.Helper()
	var b strings.Builder
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		at := i
		line := lines[i]
		i++
		if line == "" || line[0] == '#' {
			b.WriteString(line + "\n")
			continue
		}
		if line == "multi" {
			for lines[i] != "end" {
				line += "\n" + lines[i]
				i++
			}
			i++
		}
		var want []string
		for i < len(lines) && strings.HasPrefix(lines[i], " ") {
			want = append(want, strings.TrimSpace(lines[i]))
			i++
		}
		got := s.run(line)
		b.WriteString(strings.Join(lines[at:i-len(want)], "\n") + "\n")
		for _, l := range got {
			b.WriteString(" " + l + "\n")
		}
		if *rewrite {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("line %d: %s\ngot:\n %s\nwant:\n %s", at+1, line, strings.Join(got, "\n "), strings.Join(want, "\n "))
		}
		if s.tree.Digest() != s.tree.DigestFull() {
			t.Fatalf("line %d: %s: digest %x, recomputed %x", at+1, line, s.tree.Digest(), s.tree.DigestFull())
		}
	}
	return b.String()
}

// args are the words of a command after its name.
type args []string

// text returns word i, where null and "" have their own spelling.
func (a args) text(i int) string {
	switch {
	case i >= len(a) || a[i] == "":
		return ""
	case a[i] == "null":
		return proto.NullString
	case a[i][0] == '"':
		s, err := strconv.Unquote(a[i])
		if err != nil {
			panic(err)
		}
		return s
	}
	return a[i]
}

func (a args) data(i int) []byte {
	if s := a.text(i); s != proto.NullString {
		return []byte(s)
	}
	return nil
}

func (a args) number(i int, otherwise int32) int32 {
	if i >= len(a) {
		return otherwise
	}
	n, err := strconv.ParseInt(a[i], 10, 32)
	if err != nil {
		panic(err)
	}
	return int32(n)
}

// take removes name=value from the words and returns the value.
func (a *args) take(name, otherwise string) string {
	for i, w := range *a {
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			*a = slices.Delete(slices.Clone(*a), i, i+1)
			return v
		}
	}
	return otherwise
}

// parseACL reads perms:scheme:id entries separated by semicolons; null and none
// are the lists without entries.
func parseACL(s string) []proto.ACL {
	switch s {
	case "null":
		return nil
	case "none":
		return []proto.ACL{}
	}
	var out []proto.ACL
	for _, e := range strings.Split(s, ";") {
		f := strings.SplitN(e, ":", 3)
		n, err := strconv.Atoi(f[0])
		if err != nil {
			panic(err)
		}
		w := args(f)
		out = append(out, proto.ACL{Perms: int32(n), ID: proto.ID{Scheme: w.text(1), ID: w.text(2)}})
	}
	return out
}

// request encodes one write.
func parseRequest(line string) (proto.OpCode, []byte) {
	a := args(strings.Fields(line))
	name := a[0]
	a = a[1:]
	acl := parseACL(a.take("acl", "31:world:anyone"))
	flags, _ := strconv.Atoi(a.take("flags", "0"))
	ttl, _ := strconv.Atoi(a.take("ttl", "-1"))
	creates := map[string]proto.OpCode{
		"create": proto.OpCreate, "create2": proto.OpCreate2, "container": proto.OpCreateContainer, "ttl": proto.OpCreateTTL,
	}
	if op, ok := creates[name]; ok {
		r := proto.CreateRequest{Path: a.text(0), Data: a.data(1), ACL: acl, Flags: int32(flags), TTL: int64(ttl)}
		return op, r.Append(nil, op)
	}
	switch name {
	case "delete":
		return proto.OpDelete, (&proto.PathVersion{Path: a.text(0), Version: a.number(1, -1)}).Append(nil)
	case "check":
		return proto.OpCheck, (&proto.PathVersion{Path: a.text(0), Version: a.number(1, -1)}).Append(nil)
	case "set":
		return proto.OpSetData, (&proto.SetDataRequest{Path: a.text(0), Data: a.data(1), Version: a.number(2, -1)}).Append(nil)
	case "setacl":
		return proto.OpSetACL, (&proto.SetACLRequest{Path: a.text(0), ACL: acl, Version: a.number(1, -1)}).Append(nil)
	case "read":
		return proto.OpGetData, (&proto.PathWatch{Path: a.text(0)}).Append(nil)
	}
	panic("no such write: " + line)
}

func encodeMulti(lines []string) []byte {
	var body []byte
	for _, l := range lines {
		op, rec := parseRequest(strings.TrimSpace(l))
		body = append(proto.AppendMultiHeader(body, proto.MultiHeader{Type: op, Err: -1}), rec...)
	}
	return proto.AppendMultiHeader(body, proto.MultiEnd)
}

func (s *script) txn() Txn {
	s.zxid++
	return Txn{
		Zxid: s.zxid, TimeMillis: int64(s.zxid) * 1000, Session: s.session, Identities: s.ids,
		Switches: s.switches, LocalSession: s.local,
	}
}

func (s *script) apply(op proto.OpCode, body []byte) []string {
	res, changes := s.tree.Apply(s.txn(), op, body, nil)
	var out []string
	if op == proto.OpMulti && res.Err == proto.ErrOK {
		for i := range res.Sub {
			out = append(out, showResult(res.Sub[i].Type, &res.Sub[i]))
		}
		if len(out) == 0 {
			out = []string{"ok"}
		}
	} else {
		out = append(out, showResult(op, &res))
	}
	if res.NoZxid {
		out[0] += " no zxid"
	}
	if res.QuotaOver != "" {
		out = append(out, "over "+res.QuotaOver)
	}
	return append(out, showChanges(changes)...)
}

func showResult(op proto.OpCode, r *Result) string {
	switch {
	case op == proto.OpError || r.Err != proto.ErrOK:
		return strconv.Itoa(int(r.Err))
	case op == proto.OpDelete || op == proto.OpCheck || op == proto.OpDeleteContainer:
		return "ok"
	case op == proto.OpCreate:
		return "ok " + r.Path
	case op == proto.OpSetData || op == proto.OpSetACL:
		return "ok " + showStat(r.Stat)
	}
	return "ok " + r.Path + " " + showStat(r.Stat)
}

func showStat(s proto.Stat) string {
	return fmt.Sprintf("c=%d@%d m=%d@%d p=%d v=%d/%d/%d owner=%d len=%d kids=%d",
		s.Czxid, s.Ctime/1000, s.Mzxid, s.Mtime/1000, s.Pzxid, s.Version, s.CVersion, s.AVersion, s.EphemeralOwner, s.DataLength, s.NumChildren)
}

func showACL(acl []proto.ACL) string {
	var out []string
	for _, a := range acl {
		out = append(out, fmt.Sprintf("%d:%s:%s", a.Perms, a.ID.Scheme, a.ID.ID))
	}
	return strings.Join(out, ";")
}

func showChanges(changes []Change) []string {
	var out []string
	for _, c := range changes {
		l := fmt.Sprintf("%s %s", strings.TrimPrefix(c.Type.String(), "Node"), c.Path)
		if !slices.Equal(c.ACL.acl, proto.OpenACL) {
			l += " " + showACL(c.ACL.acl)
		}
		out = append(out, l)
	}
	return out
}

// run carries out one command and returns its output lines.
func (s *script) run(line string) []string {
	name, rest, _ := strings.Cut(line, " ")
	a := args(strings.Fields(rest))
	r := Reader{Identities: s.ids, SkipACL: s.switches&proto.SwitchSkipACL != 0}
	switch name {
	case "session":
		s.session = proto.SessionID(a.number(0, 0))
	case "ids":
		s.ids = nil
		for _, w := range a {
			scheme, id, _ := strings.Cut(w, ":")
			s.ids = append(s.ids, proto.ID{Scheme: scheme, ID: id})
		}
	case "switches":
		s.switches, s.local = 0, false
		for _, w := range a {
			s.local = s.local || w == "local"
			s.switches |= map[string]uint32{
				"ttl": proto.SwitchExtendedTypes, "quota": proto.SwitchEnforceQuota, "skipACL": proto.SwitchSkipACL,
				"sasl": proto.SwitchSASL, "x509": proto.SwitchX509, "noDigest": proto.SwitchNoDigest,
			}[w]
		}
	case "close":
		txn := s.txn()
		txn.Session = proto.SessionID(a.number(0, 0))
		return showChanges(s.tree.CloseSession(txn, nil))
	case "reap":
		var out []string
		for _, p := range s.tree.Reapable(int64(a.number(0, 0))*1000, int64(a.number(1, 0))*1000, 100) {
			out = append(out, fmt.Sprintf("%s %d %d", p.Path, p.Czxid, p.Mzxid))
		}
		slices.Sort(out)
		return out
	case "reaped":
		return s.apply(proto.OpDeleteContainer, AppendReap(nil, Reap{Path: a.text(0), Czxid: proto.Zxid(a.number(1, 0)), Mzxid: proto.Zxid(a.number(2, 0))}))
	case "node":
		st, _ := strconv.ParseInt(a[1], 10, 32)
		cv, _ := strconv.ParseInt(a[2], 10, 32)
		return s.seed(a[0], int32(st), int32(cv))
	case "get", "exists", "ls", "getacl", "all", "ephemerals":
		return s.read(r, name, a)
	default:
		if strings.HasPrefix(line, "multi") {
			return s.apply(proto.OpMulti, encodeMulti(strings.Split(line, "\n")[1:]))
		}
		return s.apply(parseRequest(line))
	}
	return nil
}

func (s *script) read(r Reader, name string, a args) []string {
	path := a.text(0)
	switch name {
	case "get":
		data, st, code := s.tree.Get(r, path)
		if code == proto.ErrOK {
			if data == nil {
				return []string{"null", showStat(st)}
			}
			return []string{fmt.Sprintf("%q", data), showStat(st)}
		}
		return []string{strconv.Itoa(int(code))}
	case "exists":
		st, code := s.tree.Exists(r, path)
		return []string{showResult(proto.OpSetData, &Result{Err: code, Stat: st})}
	case "ls":
		kids, st, code := s.tree.Children(r, path)
		if code != proto.ErrOK {
			return []string{strconv.Itoa(int(code))}
		}
		names := slices.Sorted(kids.All())
		if len(names) != kids.Len() || len(names) != int(st.NumChildren) {
			return []string{"numbers of children differ"}
		}
		return []string{strings.Join(names, " ") + "."}
	case "getacl":
		acl, _, code := s.tree.ACL(r, path)
		if code != proto.ErrOK {
			return []string{strconv.Itoa(int(code))}
		}
		return []string{showACL(acl)}
	case "all":
		n, code := s.tree.AllChildrenNumber(r, path)
		return []string{fmt.Sprint(int(code), n)}
	default:
		return s.tree.Ephemerals(proto.SessionID(a.number(1, 0)), path)
	}
}

// seed adds a node with the given version and count of creates, which no
// client could reach in a test's time.
func (s *script) seed(path string, version, cversion int32) []string {
	b := NewBuilder()
	v := s.tree.Freeze()
	defer v.Release()
	if err := v.Nodes(b.Add); err != nil {
		return []string{err.Error()}
	}
	if err := b.Add(path, nil, nil, proto.StatPersisted{Version: version, CVersion: cversion}); err != nil {
		return []string{err.Error()}
	}
	t, err := b.Tree()
	if err != nil {
		return []string{err.Error()}
	}
	s.tree = t
	return nil
}
