// Package graph holds the import graph of the rooms: who may import whom, and
// which module belongs to one room alone. docs/architecture.md draws the same
// graph; the test here keeps both true.
package graph

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

const module = "github.com/zooraft/zooraft"

// rooms is the whole graph: each package of the product with the packages of
// this module that it may import. A new arrow is a change of the design: it
// belongs into docs/architecture.md first.
var rooms = map[string][]string{
	"internal/proto":     {},
	"internal/metrics":   {},
	"internal/consensus": {},
	"internal/config":    {"internal/proto"},
	"internal/tree":      {"internal/proto"},
	"internal/session":   {"internal/proto"},
	"internal/watch":     {"internal/metrics", "internal/proto"},
	"internal/snapshot":  {"internal/proto"},
	"internal/auth":      {"internal/proto"},
	"internal/client":    {"internal/proto"},
	"internal/bench":     {"internal/client", "internal/proto"},
	"internal/shell":     {"internal/client", "internal/proto"},
	"internal/state":     {"internal/proto", "internal/session", "internal/snapshot", "internal/tree", "internal/watch"},
	"internal/admin":     {"internal/metrics", "internal/proto"},
	"internal/server": {
		"internal/admin", "internal/auth", "internal/config", "internal/consensus", "internal/metrics",
		"internal/proto", "internal/session", "internal/state", "internal/tree", "internal/watch",
	},
	"":                 {"internal/admin", "internal/config", "internal/metrics", "internal/server"},
	"zktest":           {"internal/config", "internal/proto", "internal/server"},
	"internal/control": {"zktest"},
	"cmd/zooraft": {
		"", "internal/admin", "internal/bench", "internal/config", "internal/control", "internal/server", "internal/shell", "zktest",
	},
}

// owners names, by prefix, the modules that only some packages may import, and
// why. Everything else outside the standard library is listed in
// docs/dependencies.md and allowed where that page says.
var owners = []struct {
	prefix string
	rooms  []string
	why    string
}{
	{"github.com/hashicorp/", []string{"internal/consensus"}, "Raft is one room's secret"},
	{"go.etcd.io/bbolt", []string{"internal/consensus"}, "it is the file below one of the log stores"},
	{"golang.org/x/sys", []string{"internal/consensus"}, "system calls of the log's files"},
	{"golang.org/x/term", []string{"cmd/zooraft", "internal/shell"}, "only a shell draws on a terminal"},
	{"github.com/spf13/", []string{"cmd/zooraft"}, "a command line is no one else's business"},
	{"github.com/prometheus/", []string{""}, "who embeds a server hands in their registerer"},
	{"github.com/", nil, "a new dependency needs a line here and in docs/dependencies.md"},
	{"golang.org/x/", nil, "a new dependency needs a line here and in docs/dependencies.md"},
	{"go.uber.org/", nil, "a new dependency needs a line here and in docs/dependencies.md"},
	{"go.etcd.io/", nil, "a new dependency needs a line here and in docs/dependencies.md"},
}

func TestEveryArrowBetweenRoomsIsInTheTable(t *testing.T) {
	for room, imports := range product(t) {
		allowed, known := rooms[room]
		if !known {
			t.Errorf("package %q is in no row of the table: add it with what it may import", room)
			continue
		}
		for _, path := range imports {
			target, inside := cut(path)
			if inside && !slices.Contains(allowed, target) {
				t.Errorf("%q imports %q, which its row does not allow", room, target)
			}
		}
	}
}

// A table that allows more than there is would let the graph drift.
func TestEveryArrowOfTheTableIsUsed(t *testing.T) {
	all := product(t)
	for room, targets := range rooms {
		imports, exists := all[room]
		if !exists {
			t.Errorf("the table has a row for %q, which is no package", room)
		}
		for _, target := range targets {
			path := module
			if target != "" {
				path += "/" + target
			}
			if !slices.Contains(imports, path) {
				t.Errorf("the table lets %q import %q, which it does not: take it out", room, target)
			}
		}
	}
}

func TestNothingBelowTheServerImportsConsensus(t *testing.T) {
	for room, imports := range product(t) {
		if slices.Contains(imports, module+"/internal/consensus") && room != "internal/server" {
			t.Errorf("%q imports consensus; only the server may", room)
		}
	}
}

func TestEachForeignModuleStaysWithItsOwner(t *testing.T) {
	for room, imports := range product(t) {
		for _, path := range imports {
			if _, inside := cut(path); inside {
				continue
			}
			for _, o := range owners {
				if !strings.HasPrefix(path, o.prefix) {
					continue
				}
				if !slices.Contains(o.rooms, room) {
					t.Errorf("%q imports %s, which only %v may: %s", room, path, o.rooms, o.why)
				}
				break
			}
		}
	}
}

func TestTheProductNeverImportsItsTests(t *testing.T) {
	for room, imports := range product(t) {
		for _, path := range imports {
			if target, inside := cut(path); inside && strings.HasPrefix(target, "test/") {
				t.Errorf("%q imports %q", room, target)
			}
		}
	}
}

func TestTheArrowsOfTheTableFormNoCircle(t *testing.T) {
	var visit func(room string, above []string)
	visit = func(room string, above []string) {
		if slices.Contains(above, room) {
			t.Fatalf("circle: %v → %s", above, room)
		}
		for _, next := range rooms[room] {
			visit(next, append(slices.Clone(above), room))
		}
	}
	for room := range rooms {
		visit(room, nil)
	}
}

// The page lists every arrow that the code has, and no other.
func TestTheArchitecturePageListsTheSameArrows(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(toolchain.Root(), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "<!-- arrows -->")
	block, _, closed := strings.Cut(block, "<!-- end of arrows -->")
	if !found || !closed {
		t.Fatal("docs/architecture.md has no block of arrows")
	}
	drawn := map[string]bool{}
	for _, line := range strings.Split(block, "\n") {
		from, to, ok := strings.Cut(strings.Trim(line, "- `"), " → ")
		if !ok {
			continue
		}
		for _, target := range strings.Split(to, ", ") {
			drawn[from+" → "+target] = true
		}
	}
	real := map[string]bool{}
	for room, imports := range product(t) {
		for _, path := range imports {
			if target, inside := cut(path); inside {
				real[short(room)+" → "+short(target)] = true
			}
		}
	}
	for _, arrow := range slices.Sorted(maps.Keys(real)) {
		if !drawn[arrow] {
			t.Errorf("the page lacks %s", arrow)
		}
	}
	for _, arrow := range slices.Sorted(maps.Keys(drawn)) {
		if !real[arrow] {
			t.Errorf("the page has %s, the code has not", arrow)
		}
	}
}

// short is a package's name on the page.
func short(room string) string {
	if room == "" {
		return "zooraft"
	}
	return strings.TrimPrefix(room, "internal/")
}

// cut returns a path within this module without the module's name.
func cut(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

// product returns the imports of every package that ships, by folder. Test
// files are left out: a room's test may use what the room may not.
func product(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	root := toolchain.Root()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if entry.IsDir() {
			if rel == "test" || rel == "build" || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		room := filepath.ToSlash(filepath.Dir(rel))
		if room == "." {
			room = ""
		}
		if found[room] == nil {
			found[room] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			found[room][name] = true
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d packages found, %v", len(found), err)
	}
	all := map[string][]string{}
	for room, imports := range found {
		all[room] = slices.Sorted(maps.Keys(imports))
	}
	return all
}

// The page follows one write through files; each step must name a function
// that is in that file.
func TestTheWriteOnTheArchitecturePageIsWhereItSays(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(toolchain.Root(), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile("`(internal/[a-z]+/[a-z]+\\.go)`(?: \\||\\s)\\s*`(\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(steps) < 6 {
		t.Fatalf("%d steps found on the page, want at least 6", len(steps))
	}
	for _, step := range steps {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(toolchain.Root(), step[1]), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Name.Name == step[2]
		}) {
			t.Errorf("%s has no function %s", step[1], step[2])
		}
	}
}
