package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// A server of an ensemble with options.crooked runs on a machine that can be
// made to fail: see the command crooked.

// machine is how a server's machine fails. Its fields are those of the
// command's Settings.
type machine struct {
	ClockOffset time.Duration
	Disk        string // "", "hang", "fail", "full" or "unread"
	RefuseEvery int
	// CommandLevel makes the program a later version at its next start.
	CommandLevel byte
}

// control is how a crooked server is told and asked.
type control struct {
	settings string // path of the file
	address  string // where it is asked
	now      machine
}

func (c control) env() []string {
	return []string{"CROOKED_SETTINGS=" + c.settings, "CROOKED_ADDRESS=" + c.address}
}

// crook changes a server's machine. It is in effect within milliseconds, and
// over restarts.
func (e *ensemble) crook(id int, change func(m *machine)) {
	e.t.Helper()
	c := e.controls[id]
	change(&c.now)
	text, err := json.Marshal(c.now)
	if err == nil {
		err = os.WriteFile(c.settings+".tmp", text, 0o644)
	}
	if err == nil {
		err = os.Rename(c.settings+".tmp", c.settings)
	}
	if err != nil {
		e.t.Fatalf("faults: %v", err)
	}
}

// mend makes a server's disk and Raft good again; its clock and its version stay.
func (e *ensemble) mend(id int) {
	e.crook(id, func(m *machine) { *m = machine{ClockOffset: m.ClockOffset, CommandLevel: m.CommandLevel} })
}

// errCrooked is returned when a crooked server does not do what it is asked.
var errCrooked = errors.New("faults: the server refuses")

// ask asks a crooked server, for at most ten seconds.
func (e *ensemble) ask(id int, question string) ([]byte, error) {
	asker := http.Client{Timeout: 10 * time.Second}
	r, err := asker.Get("http://" + e.controls[id].address + question)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %s", errCrooked, strings.TrimSpace(string(body)))
	}
	return body, err
}

// handOver asks a leader to make another server the leader, and waits for its
// word.
func (e *ensemble) handOver(from, to int) error {
	_, err := e.ask(from, fmt.Sprintf("/lead?to=%d", to))
	return err
}
