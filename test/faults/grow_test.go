package faults

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// Whoever begins with one server and adds server lines to its file keeps the data
// and the sessions, and can go back to one server.
func TestAServerAloneGrowsIntoAnEnsembleByItsFileAndBack(t *testing.T) {
	f := newFleet(t, 1)
	f.alone(1)
	f.write(1)
	c := f.world.mustDial(1)
	if _, err := c.Create(context.Background(), "/ephemeral", nil, proto.CreateEphemeral); err != nil {
		t.Fatal(err)
	}
	f.address(2, "127.0.0.1")
	f.address(3, "127.0.0.1")
	f.launch(2)
	f.launch(3)
	f.roll(1)
	f.settle(1, 2, 3)
	resumed, err := f.world.resume(3, c.Session(), c.Password())
	if err != nil {
		t.Fatalf("the session of the server alone, at a new one: %v", err)
	}
	if stat, err := resumed.Exists(context.Background(), "/ephemeral", false); err != nil || proto.SessionID(stat.EphemeralOwner) != c.Session() {
		t.Errorf("its ephemeral: %+v, %v", stat, err)
	}

	// Alone is not what one of three can be; one that leads itself is.
	f.lead(1)
	delete(f.lines, 2)
	delete(f.lines, 3)
	f.edit(1, func(text string) string { return text + "standaloneEnabled=false\n" })
	f.roll(1)
	f.lead(1)
	f.eventually("server 1 is the only member", func() bool {
		s, err := f.status()
		return err == nil && s.Settled && len(s.Members) == 1
	})
	f.drop(2)
	f.drop(3)
	f.edit(1, func(text string) string { return strings.ReplaceAll(text, "standaloneEnabled=false\n", "") })
	f.servers[1].Restart(t)
	f.alone(1)
	f.write(1)
	f.readAll(1)
}

// alone waits until a server runs as a server alone.
func (f *fleet) alone(id int) {
	f.t.Helper()
	f.eventually("the server runs alone", func() bool {
		return field(f.srvr(id), "Mode") == "standalone"
	})
}

// edit changes the text of a server's file.
func (f *fleet) edit(id int, change func(string) string) {
	f.t.Helper()
	path := f.servers[id].ConfigFile
	text, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(bytes.TrimRight(text, "\n"))+"\n")), 0o644); err != nil {
		f.t.Fatal(err)
	}
}
