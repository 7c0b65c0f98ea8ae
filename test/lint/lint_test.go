// Package lint checks the house rules that a machine can check. Each rule
// carries its reason, and each exception its own: see CONTRIBUTING.md.
package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// source is one Go file of this repository.
type source struct {
	path string // relative to the root, with slashes
	text []byte
	file *ast.File
	set  *token.FileSet
}

func (s *source) room() string { return filepath.ToSlash(filepath.Dir(s.path)) }

func (s *source) test() bool {
	return strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(s.path, "test/")
}

func (s *source) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(pos).Line)
}

func sources(t *testing.T) []*source {
	t.Helper()
	var all []*source
	walk(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		s := &source{path: path, text: text, set: token.NewFileSet()}
		var err error
		if s.file, err = parser.ParseFile(s.set, path, text, parser.ParseComments); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	})
	if len(all) == 0 {
		t.Fatal("no Go files found")
	}
	return all
}

// walk visits every file of the repository that is ours.
func walk(t *testing.T, visit func(path string, text []byte)) {
	t.Helper()
	root := toolchain.Root()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch name := entry.Name(); {
		case entry.IsDir() && (rel == "build" || name == "testdata" || name == "node_modules" || name == ".git" || name == "zooraft-data"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			visit(rel, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryFileIsFormatted(t *testing.T) {
	for _, s := range sources(t) {
		want, err := format.Source(s.text)
		if err != nil || !bytes.Equal(want, s.text) {
			t.Errorf("%s: run gofmt (%v)", s.path, err)
		}
	}
}

// Limits of size, in lines. The house style aims lower, at 400 and 70; what is
// above is split, or listed here with its reason.
const (
	maxFileLines     = 480
	maxFunctionLines = 85
)

var longFiles = map[string]string{}

// longFunctions may be longer than the limit. A switch over op codes may, when
// each arm is one call; a table of test rows may.
var longFunctions = map[string]string{
	"internal/config.noEffectKeys": "one table of keys with their reasons",
}

func TestFilesAndFunctionsStayShort(t *testing.T) {
	for _, s := range sources(t) {
		if n := bytes.Count(s.text, []byte("\n")); n > maxFileLines && longFiles[s.path] == "" {
			t.Errorf("%s has %d lines, more than %d: split it by noun", s.path, n, maxFileLines)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil || s.test() {
				continue
			}
			n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line
			if n > maxFunctionLines && longFunctions[s.room()+"."+f.Name.Name] == "" {
				t.Errorf("%s: %s has %d lines, more than %d", s.at(f.Pos()), f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

// behindTheLog are the rooms whose result must not depend on the host.
var behindTheLog = []string{"internal/proto", "internal/tree", "internal/session", "internal/watch", "internal/state", "internal/snapshot"}

// bannedImports names what may not be imported, where, and why.
var bannedImports = []struct {
	path  string
	rooms []string // nil: everywhere outside tests
	why   string
}{
	{"log", nil, "log through log/slog, so that level and form are the operator's choice"},
	{"io/ioutil", nil, "deprecated; use io and os"},
	{"math/rand", nil, "use crypto/rand for secrets and ids, math/rand/v2 with a handed-in seed elsewhere"},
	{"unsafe", nil, "no measured need"},
	{"reflect", behindTheLog, "apply is total and plain"},
	{"math/rand/v2", behindTheLog, "nothing behind the log may depend on chance"},
	{"crypto/rand", behindTheLog, "nothing behind the log may depend on chance"},
	{"os", behindTheLog, "nothing behind the log does I/O"},
	{"log/slog", behindTheLog, "nothing waits or logs under the state lock"},
	{"net", []string{"internal/proto", "internal/session", "internal/watch", "internal/state", "internal/snapshot"}, "these rooms know no sockets"},
}

// excusedImports are exceptions, by file and import, with their reason.
var excusedImports = map[[2]string]string{
	{"internal/consensus/logging.go", "log"}: "the library's logger interface has a method that returns a *log.Logger",
}

func TestBannedImportsAreNotUsed(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		for _, spec := range s.file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			for _, ban := range bannedImports {
				if ban.path == path && excusedImports[[2]string{s.path, path}] == "" && (ban.rooms == nil || slices.Contains(ban.rooms, s.room())) {
					t.Errorf("%s imports %s: %s", s.at(spec.Pos()), path, ban.why)
				}
			}
		}
	}
}

// bannedCalls names functions that may not be called, where, and why.
var bannedCalls = []struct {
	call  string
	where func(*source) bool
	why   string
}{
	{"time.Sleep", (*source).test, "a sleep is no synchronisation: wait for a value"},
	{"time.Now", func(s *source) bool { return !s.test() && slices.Contains(behindTheLog, s.room()) }, "time comes in the log entry or is handed in"},
	{"time.Since", func(s *source) bool { return !s.test() && slices.Contains(behindTheLog, s.room()) }, "time comes in the log entry or is handed in"},
	{"time.NewTimer", func(s *source) bool { return !s.test() && slices.Contains(behindTheLog, s.room()) }, "timers propose; they live in the server"},
	{"t.Skip", skipElsewhere, "only test/toolchain skips, so that CI can forbid it"},
	{"t.Skipf", skipElsewhere, "only test/toolchain skips, so that CI can forbid it"},
	{"t.SkipNow", skipElsewhere, "only test/toolchain skips, so that CI can forbid it"},
	{"tb.Skip", skipElsewhere, "only test/toolchain skips, so that CI can forbid it"},
}

func skipElsewhere(s *source) bool { return s.room() != "test/toolchain" }

func TestBannedCallsAreNotMade(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			base, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, ban := range bannedCalls {
				if ban.call == base.Name+"."+sel.Sel.Name && ban.where(s) {
					t.Errorf("%s calls %s: %s", s.at(call.Pos()), ban.call, ban.why)
				}
			}
			return true
		})
	}
}

func TestPackagesAreNamedByTheirNounAndSaySo(t *testing.T) {
	commented := map[string]bool{}
	for _, s := range sources(t) {
		commented[s.room()] = commented[s.room()] || s.file.Doc != nil
		for _, dull := range []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "base"} {
			if s.file.Name.Name == dull {
				t.Errorf("%s: package %s says nothing of what it owns", s.path, dull)
			}
		}
	}
	for room, ok := range commented {
		if !ok {
			t.Errorf("%s has no package comment: say what it owns and what it may not touch", room)
		}
	}
}

func TestNoUnfinishedWorkIsMarked(t *testing.T) {
	marks := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	walk(t, func(path string, text []byte) {
		switch filepath.Ext(path) {
		case ".go", ".md", ".java", ".py", ".js", ".c", ".yml", "":
			for i, line := range bytes.Split(text, []byte("\n")) {
				if marks.Match(line) {
					t.Errorf("%s:%d: %s: finish it or file an issue", path, i+1, bytes.TrimSpace(line))
				}
			}
		}
	})
}

// page reads a page of docs.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(toolchain.Root(), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A goroutine is named on the page by the function that starts it.
func TestEveryGoroutineIsOnThePageOfThreads(t *testing.T) {
	threads := page(t, "threads.md")
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			name := "`" + short(s.room()) + "." + f.Name.Name + "`"
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if start, ok := n.(*ast.GoStmt); ok {
					used[name] = true
					if !strings.Contains(threads, name) {
						t.Errorf("%s starts a goroutine that docs/threads.md does not list: add %s", s.at(start.Pos()), name)
					}
				}
				return true
			})
		}
	}
	for _, name := range regexp.MustCompile("started by `[^`]+`").FindAllString(threads, -1) {
		if name = strings.TrimPrefix(name, "started by "); !used[name] {
			t.Errorf("docs/threads.md lists %s, which starts no goroutine", name)
		}
	}
}

// A lock is named on the page by its type and field.
func TestEveryLockIsOnThePageOfLocks(t *testing.T) {
	locks := page(t, "locks.md")
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			body, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range body.Fields.List {
				if !isLock(field.Type) {
					continue
				}
				names := []string{"Mutex"}
				if len(field.Names) > 0 {
					names = nil
					for _, id := range field.Names {
						names = append(names, id.Name)
					}
				}
				for _, id := range names {
					name := "`" + short(s.room()) + "." + spec.Name.Name + "." + id + "`"
					if !strings.Contains(locks, name) {
						t.Errorf("%s is a lock that docs/locks.md does not list: add %s", s.at(field.Pos()), name)
					}
				}
			}
			return true
		})
	}
}

func isLock(expr ast.Expr) bool {
	sel, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	base, ok := sel.X.(*ast.Ident)
	return ok && base.Name == "sync" && (sel.Sel.Name == "Mutex" || sel.Sel.Name == "RWMutex")
}

func short(room string) string {
	if room == "." {
		return "zooraft"
	}
	return strings.TrimPrefix(room, "internal/")
}
