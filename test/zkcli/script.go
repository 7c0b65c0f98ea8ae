package zkcli

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// Exchange is one line of a script:
//
//	a> ls /        a command typed into session a, which a first line opens
//	$ ls /         a shell of its own with the command as arguments
//	# text         a comment
//
// ADDRESS stands for the server's.
type Exchange struct {
	// Name is the number of the line and the line.
	Name string
	// Session is empty for a shell of its own.
	Session, Command string
}

// ReadScript reads a script. Any line that is none of the above is an error that
// names it.
func ReadScript(path string) ([]Exchange, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var script []Exchange
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		e := Exchange{Name: fmt.Sprintf("%d %s", number, line)}
		if command, own := strings.CutPrefix(line, "$ "); own {
			e.Command = command
		} else if session, command, ok := strings.Cut(line, "> "); ok {
			e.Session, e.Command = session, command
		} else {
			return nil, fmt.Errorf("%s:%d: neither a session nor a shell: %q", path, number, line)
		}
		script = append(script, e)
	}
	return script, lines.Err()
}
