package ledger

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// cases are the numbers of the list of what users of other servers have hit;
// the list has gaps.
var cases = []int{
	1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35, 37, 38, 40, 41, 43, 44,
	46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62,
}

func rows(t *testing.T) []Row {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(toolchain.Root(), "test", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryCaseHasOneRow(t *testing.T) {
	count := map[string]int{}
	for _, r := range rows(t) {
		if count[r.ID]++; count[r.ID] > 1 {
			t.Errorf("line %d: %s has two rows", r.Line, r.ID)
		}
	}
	for _, n := range cases {
		if count["case "+strconv.Itoa(n)] == 0 {
			t.Errorf("case %d has no row", n)
		}
	}
	if n := len(count) - len(cases); n < 20 {
		t.Errorf("only %d rows for demands of the issues", n)
	}
}

func TestEveryNamedTestExists(t *testing.T) {
	known := map[string][]string{}
	for _, r := range rows(t) {
		for _, name := range r.Tests {
			functions, seen := known[name.Folder]
			if !seen {
				functions = testFunctions(t, name.Folder)
				known[name.Folder] = functions
			}
			if !slices.Contains(functions, name.Func()) {
				t.Errorf("line %d, %s: %s does not exist", r.Line, r.ID, name)
			}
		}
	}
}

// testFunctions lists the tests, fuzz targets and examples of a folder.
func testFunctions(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(toolchain.Root(), filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && slices.ContainsFunc([]string{"Test", "Fuzz", "Example"}, func(kind string) bool {
				return strings.HasPrefix(f.Name.Name, kind)
			}) {
				all = append(all, f.Name.Name)
			}
		}
	}
	return all
}

func TestRowsAreRead(t *testing.T) {
	page := "# t\n\n| id | demand | tests |\n| --- | --- | --- |\n| a | x | `internal/tree.TestA`, `test/x.TestB/sub name` |\n| b | y | waits: issue 3, because |\n"
	got, err := Parse([]byte(page))
	want := []Row{
		{Line: 5, ID: "a", Tests: []Name{{"internal/tree", "TestA"}, {"test/x", "TestB/sub name"}}},
		{Line: 6, ID: "b", Waits: "issue 3, because"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"| a | x | nothing |", "| a | x | `internal/tree.Helper` |", "| a | x | waits: |"} {
		if _, err := Parse([]byte(bad)); !errors.Is(err, ErrBadRow) {
			t.Errorf("%q: error %v, want ErrBadRow", bad, err)
		}
	}
}
