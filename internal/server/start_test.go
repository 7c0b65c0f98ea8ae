package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/zooraft/zooraft/internal/consensus"
)

// What the operator must settle in the data directory is told as that, with
// what to do; everything else stays what it is.
func TestAnErrorOfTheDataDirectorySaysWhatToDo(t *testing.T) {
	at := func(err error) error {
		return fmt.Errorf("consensus: %w", &fs.PathError{Op: "open", Path: "/data", Err: err})
	}
	for _, c := range []struct {
		err  error
		data bool
		want string
	}{
		{at(syscall.EACCES), true, "must be able to write"},
		{at(os.ErrPermission), true, "must be able to write"},
		{at(syscall.EROFS), true, "must be able to write"},
		{at(syscall.ENOSPC), true, "free some space"},
		{at(syscall.EDQUOT), true, "free some space"},
		{fmt.Errorf("open: %w", consensus.ErrLocked), true, ""},
		{fmt.Errorf("open: %w", consensus.ErrLess), true, ""},
		{at(syscall.EMFILE), false, "too many open files"},
	} {
		got := dataError(c.err)
		if errors.Is(got, ErrData) != c.data || !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%v became %v", c.err, got)
		}
	}
}
