// Package ledger reads test/cases.md, which maps every demand and every known
// bug of other servers to the tests that stand for it. It owns the page's
// grammar; whether a test ran is the run driver's business.
//
// A row of a table is a demand: its first cell the id, its last the names of
// its tests, each in backquotes as `folder.TestName` or
// `folder.TestName/sub test`. A row whose last cell begins with "waits:" has no
// test yet and says why and for which issue.
package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrBadRow is returned when a row has neither tests nor a reason to wait.
var ErrBadRow = errors.New("ledger: a row names no test and no reason to wait")

// Row is one demand.
type Row struct {
	Line  int
	ID    string
	Tests []Name
	Waits string // the reason, when there is no test yet
}

// Name is a test: the folder of its package and its function, perhaps with a
// sub-test behind slashes.
type Name struct {
	Folder, Test string
}

// String returns the name as the page has it.
func (n Name) String() string { return n.Folder + "." + n.Test }

// Func returns the test's function, without a sub-test.
func (n Name) Func() string {
	f, _, _ := strings.Cut(n.Test, "/")
	return f
}

var testName = regexp.MustCompile("`([a-z0-9_/.]*)\\.((?:Test|Fuzz|Example)[^`]*)`")

// Parse reads the page.
func Parse(page []byte) ([]Row, error) {
	var rows []Row
	for i, line := range bytes.Split(page, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if !strings.HasPrefix(text, "|") || strings.HasPrefix(text, "| ---") || strings.HasPrefix(text, "| id |") {
			continue
		}
		cells := strings.Split(strings.Trim(text, "|"), " | ")
		last := strings.TrimSpace(cells[len(cells)-1])
		row := Row{Line: i + 1, ID: strings.TrimSpace(cells[0])}
		for _, m := range testName.FindAllStringSubmatch(last, -1) {
			row.Tests = append(row.Tests, Name{Folder: m[1], Test: m[2]})
		}
		if reason, waits := strings.CutPrefix(last, "waits:"); waits {
			row.Waits = strings.TrimSpace(reason)
		}
		if len(row.Tests) == 0 && row.Waits == "" {
			return nil, fmt.Errorf("%w: line %d, %s", ErrBadRow, row.Line, row.ID)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
