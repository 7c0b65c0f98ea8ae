package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/zkcli"
)

// eventually waits for a state; the patience is only met by a hang.
func eventually(t *testing.T, what string, reached func() bool) {
	t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// fill makes a small tree.
func fill(t *testing.T, address string) {
	t.Helper()
	for _, line := range []string{
		"create /app", "create /app/a 123", "create /app/a/deep x", "create /app/b 1234567890", "create /app/c",
		"setAcl /app/b world:anyone:rwa",
	} {
		must(t, address, "", strings.Fields(line)...)
	}
}

func TestTreeDrawsNamesAndSizes(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		fill(t, address)
		want := `/app [0 B]
├── a [3 B]
│   └── deep [1 B]
├── b [10 B]
└── c [0 B]
5 nodes, 14 B
`
		if out := must(t, address, "", "tree", "/app"); out != want {
			t.Errorf("tree drew\n%s", out)
		}
		if out := must(t, address, "", "tree", "--depth", "1", "/app"); !strings.Contains(out, "├── a [3 B, 1 children]\n├── b") {
			t.Errorf("tree to a depth of 1 drew\n%s", out)
		}
	})
}

func TestFindByNameOwnerSizeAndAge(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		fill(t, address)
		holder := zkcli.Begin(t, zooraftShell(t, address))
		if _, err := holder.Exchange("create -e /app/held x"); err != nil {
			t.Fatal(err)
		}
		owner := lines(t, must(t, address, "", "--json", "stat", "/app/held"))[0]["ephemeralOwner"].(string)
		for _, row := range []struct{ words, want string }{
			{"find /app --name d*", "/app/a/deep\n"},
			{"find /app --size +3", "/app/b\n"},
			{"find /app --size 3", "/app/a\n"},
			{"find /app --size -1 --childless", "/app/c\n"},
			{"find /app --owner any", "/app/held\n"},
			{"find --owner " + owner, "/app/held\n"},
			{"find /app --age +1d", ""},
			{"find /app --age -1d --size 10", "/app/b\n"},
		} {
			if out := must(t, address, "", strings.Fields(row.words)...); out != row.want {
				t.Errorf("%s printed %q, want %q", row.words, out, row.want)
			}
		}
		end(t, holder)
	})
}

func TestCopyMoveAndDiff(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		fill(t, address)
		must(t, address, "", "cp", "/app", "/copy")
		if r := run(t, address, "", "diff", "--acl", "/app", "/copy"); r.code != 0 || r.out != "" {
			t.Errorf("a copy differs: %d, %s", r.code, r.out)
		}
		must(t, address, "", "set", "/copy/a/deep", "other")
		must(t, address, "", "delete", "/copy/c")
		must(t, address, "", "create", "/copy/d")
		must(t, address, "", "setAcl", "/copy/b", "world:anyone:cdrwa")
		want := "~ /a/deep data\n~ /b acl\n- /c\n+ /d\n"
		if r := run(t, address, "", "diff", "--acl", "/app", "/copy"); r.out != want || r.code != 10 {
			t.Errorf("diff printed %q with exit code %d, want %q", r.out, r.code, want)
		}
		must(t, address, "", "mv", "/copy", "/moved")
		if out := must(t, address, "", "ls", "-R", "/moved"); out != "/moved\n/moved/a\n/moved/b\n/moved/d\n/moved/a/deep\n" {
			t.Errorf("mv left %q", out)
		}
		if r := run(t, address, "", "stat", "/copy"); r.code != 4 {
			t.Errorf("mv left its source: exit code %d", r.code)
		}
		if r := run(t, address, "", "mv", "/moved", "/moved/below"); r.code != 2 {
			t.Errorf("mv into itself: exit code %d", r.code)
		}
		if r := run(t, address, "", "cp", "/app", "/moved"); r.code != 5 {
			t.Errorf("cp over a node: exit code %d", r.code)
		}
		must(t, address, "", "cp", "--replace", "/app", "/moved")
		if r := run(t, address, "", "diff", "/app", "/moved"); r.out != "+ /d\n" {
			t.Errorf("after cp --replace: %s", r.out)
		}
	})
}

func TestATreeGoesFromOneServerToAnother(t *testing.T) {
	one, other := peer.StartZooraft(t, peer.Options{}).Address, peer.StartZooraft(t, peer.Options{}).Address
	fill(t, one)
	must(t, one, "", "cp", "--with", other, "/app", "/app")
	if r := run(t, one, "", "diff", "--acl", "--with", other, "/app"); r.code != 0 {
		t.Errorf("the copy at the other server differs: %s%s", r.out, r.err)
	}
	must(t, other, "", "set", "/app/a", "x")
	if r := run(t, one, "", "diff", "--with", other, "/app"); r.out != "~ /a data\n" || r.code != 10 {
		t.Errorf("diff printed %q, exit code %d", r.out, r.code)
	}
}

func TestADumpIsLoadedAsItWas(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		fill(t, address)
		must(t, address, "\x00\xff\n", "set", "/app/a", "--file", "-")
		must(t, address, "", "create", "/app/empty", "")
		dump := must(t, address, "", "dump", "/app")
		must(t, address, dump, "load", "/some/where")
		if r := run(t, address, "", "diff", "--acl", "/app", "/some/where"); r.code != 0 {
			t.Errorf("what was loaded differs: %s%s", r.out, r.err)
		}
		if again := must(t, address, "", "dump", "/some/where"); again != dump {
			t.Errorf("a second dump is\n%s\nafter\n%s", again, dump)
		}
		if r := run(t, address, "no json\n", "load", "/x"); r.code != 1 || !strings.Contains(r.err, "line 1") {
			t.Errorf("a wrong line: exit code %d, %s", r.code, r.err)
		}
	})
}

func TestEditWritesBackOnlyTheVersionThatWasRead(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	must(t, server.Address, "", "create", "/conf", "old text")
	edit := func(editor string) result {
		return runIn(t, t.TempDir(), []string{"VISUAL=", "EDITOR=" + editor}, "", "-server", server.Address, "edit", "/conf")
	}
	if r := edit("sed -i s/old/new/"); r.code != 0 || r.out != "version 1\n" {
		t.Errorf("an edit: %v", r)
	}
	if out := must(t, server.Address, "", "get", "/conf"); out != "new text\n" {
		t.Errorf("the node holds %q", out)
	}
	if r := edit("true"); r.out != "unchanged\n" {
		t.Errorf("an edit without a change: %v", r)
	}
	// Most editors end the last line of whatever they write.
	if r := edit("sed -i -e '$a\\'"); r.out != "unchanged\n" {
		t.Errorf("an edit that only ends the line: %v", r)
	}
	if r := edit(`printf 'newer text\n' > "$1"; true`); r.code != 0 || must(t, server.Address, "", "get", "/conf") != "newer text\n" {
		t.Errorf("an edit by an editor that ends the line: %v, %q", r, must(t, server.Address, "", "get", "/conf"))
	}
	must(t, server.Address, "two\nlines\n", "set", "/conf", "--file", "-")
	if r := edit("sed -i s/two/2/"); r.code != 0 || must(t, server.Address, "", "get", "--raw", "/conf") != "2\nlines\n" {
		t.Errorf("data with a newline at the end lose it: %v", r)
	}
	// This editor lets somebody else be faster.
	script := filepath.Join(t.TempDir(), "editor")
	text := "#!/bin/sh\n" + peer.ZooraftBinary(t, false) + " shell -server " + server.Address + " set /conf theirs\necho ours > \"$1\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	r := edit(script)
	_, kept, _ := strings.Cut(strings.TrimSpace(r.err), "your text is in ")
	defer os.Remove(kept)
	if text, err := os.ReadFile(kept); r.code != 6 || err != nil || string(text) != "ours\n" {
		t.Errorf("a lost race: exit code %d, %q, kept %q (%v)", r.code, r.err, text, err)
	}
	if out := must(t, server.Address, "", "get", "/conf"); out != "theirs\n" {
		t.Errorf("the node holds %q", out)
	}
}

func TestWatchFollowsEveryChangeBelow(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		must(t, address, "", "create", "/app")
		w := startWatch(t, address, "watch", "--count", "4", "/app")
		for _, line := range []string{"create /app/x 1", "create /outside", "set /app/x 2", "create /app/x/y", "deleteall /app/x/y"} {
			must(t, address, "", strings.Fields(line)...)
		}
		var changes []string
		for _, line := range strings.Split(strings.TrimSpace(w.wait(t)), "\n") {
			_, change, _ := strings.Cut(line, " ")
			changes = append(changes, change)
		}
		want := "NodeCreated /app/x, NodeDataChanged /app/x, NodeCreated /app/x/y, NodeDeleted /app/x/y"
		if have := strings.Join(changes, ", "); have != want {
			t.Errorf("watch printed %s, want %s", have, want)
		}
	})
}

func TestWhoTellsWhoHoldsAndWhoWatches(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		must(t, address, "", "create", "/seen", "x")
		holder := zkcli.Begin(t, zooraftShell(t, address))
		for _, line := range []string{"create -e /lock x", "get -w /seen"} {
			if _, err := holder.Exchange(line); err != nil {
				t.Fatal(err)
			}
		}
		owner := lines(t, must(t, address, "", "--json", "stat", "/lock"))[0]["ephemeralOwner"].(string)
		out := must(t, address, "", "who", "/lock")
		if !strings.Contains(out, owner+"  127.0.0.1:") || !strings.Contains(out, owner+" owns /lock\n") || strings.Contains(out, "/seen") {
			t.Errorf("who /lock:\n%s", out)
		}
		if out := must(t, address, "", "who", "/seen"); !strings.Contains(out, owner+" watches /seen\n") {
			t.Errorf("who /seen:\n%s", out)
		}
		info := lines(t, must(t, address, "", "--json", "who", owner))
		if len(info) != 1 || len(info[0]["ephemerals"].([]any)) != 1 || len(info[0]["watches"].([]any)) != 1 {
			t.Errorf("who %s: %v", owner, info)
		}
		end(t, holder)
	})
}

func TestWhoSaysWhatAServerDoesNotTell(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	r := run(t, server.Address, "", "who")
	if r.code != 1 || !strings.Contains(r.err, "does not tell wchc") || !strings.Contains(r.err, "--admin") {
		t.Errorf("who without a whitelist: exit code %d, %s", r.code, r.err)
	}
	socket, err := filepath.Glob(filepath.Join(server.DataDir, "zooraft", "admin.sock"))
	if err != nil || len(socket) != 1 {
		t.Fatalf("no admin socket in %s: %v", server.DataDir, err)
	}
	holder := zkcli.Begin(t, zooraftShell(t, server.Address))
	for _, line := range []string{"create -e /lock x", "ls -w /lock", "stat -w /lock", "addWatch /", "addWatch -m PERSISTENT /lock"} {
		if _, err := holder.Exchange(line); err != nil {
			t.Fatal(err)
		}
	}
	out := must(t, server.Address, "", "who", "--admin", socket[0], "/lock")
	for _, says := range []string{
		" watches /lock\n", " watches /lock (children)\n", " watches /lock (persistent)\n", " watches / (recursive)\n",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("who through the admin channel does not say %q:\n%s", says, out)
		}
	}
	if out := must(t, server.Address, "", "who", "--admin", socket[0], "/lock"); !strings.Contains(out, "owns /lock") {
		t.Errorf("who through the admin channel:\n%s", out)
	}
	end(t, holder)
}

// end closes a shell.
func end(t *testing.T, shell *zkcli.Conversation) {
	t.Helper()
	if text, err := shell.Close(); err != nil {
		t.Errorf("the shell's end: %v\n%s", err, text)
	}
}

// keepBusy repeats a command in a shell of its own until stop is called.
func keepBusy(t *testing.T, address, command string) (stop func()) {
	busy := zkcli.Begin(t, zooraftShell(t, address))
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			if _, err := busy.Exchange(command); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
		end(t, busy)
	}
}

func TestTopShowsRatesClientsAndChangedPaths(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		must(t, address, "", "create", "/hot", "x")
		stop := keepBusy(t, address, "set /hot y")
		looks := lines(t, must(t, address, "", "--json", "top", "--count", "4", "--interval", "300ms"))
		stop()
		hot, clients := false, false
		for _, look := range looks {
			if len(look["servers"].([]any)) != 1 {
				t.Errorf("a look has no server: %v", look)
			}
			clients = clients || len(look["clients"].([]any)) > 0
			for _, path := range look["paths"].([]any) {
				hot = hot || path.(map[string]any)["path"] == "/hot"
			}
		}
		if len(looks) != 4 || !hot || !clients {
			t.Errorf("no change of /hot or no client in %v", looks)
		}
	})
}

func TestTopCountsReadsThroughTheAdminChannel(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	must(t, server.Address, "", "create", "/read", "x")
	must(t, server.Address, "", "create", "/other", "x")
	stopReads := keepBusy(t, server.Address, "get /read")
	stopWrites := keepBusy(t, server.Address, "set /other y")
	defer stopWrites()
	defer stopReads()
	socket := filepath.Join(server.DataDir, "zooraft", "admin.sock")
	top := []string{"--json", "top", "--admin", socket, "--count", "2", "--interval", "1s"}
	seen := map[string]bool{}
	for _, look := range lines(t, must(t, server.Address, "", top...)) {
		for _, p := range look["paths"].([]any) {
			path := p.(map[string]any)
			name := path["path"].(string)
			seen[name+" read"] = seen[name+" read"] || path["readsPerSecond"].(float64) > 0
			seen[name+" changed"] = seen[name+" changed"] || path["changesPerSecond"].(float64) > 0
		}
	}
	if !seen["/read read"] || seen["/read changed"] || !seen["/other changed"] || seen["/other read"] {
		t.Errorf("reads of /read and changes of /other, and no others, were to be seen: %v", seen)
	}
	for _, look := range lines(t, must(t, server.Address, "", append(top, "--path", "/read")...)) {
		for _, p := range look["paths"].([]any) {
			if name := p.(map[string]any)["path"]; name != "/read" {
				t.Errorf("--path /read shows %v", name)
			}
		}
	}
}

func TestACLHelpersKeepTheOtherEntries(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		must(t, address, "", "create", "/n", "x")
		id := strings.TrimSpace(must(t, address, "secret\n", "digest", "ann"))
		must(t, address, "", "addAcl", "/n", "digest:"+id+":r")
		acl := lines(t, must(t, address, "", "--json", "getAcl", "/n"))[0]["acl"].([]any)
		if len(acl) != 2 || acl[0] != "world:anyone:cdrwa" || acl[1] != "digest:"+id+":r" {
			t.Errorf("after addAcl: %v", acl)
		}
		must(t, address, "", "removeAcl", "/n", "world:anyone")
		if r := run(t, address, "", "get", "/n"); r.code != 7 {
			t.Errorf("anybody reads it: exit code %d", r.code)
		}
		if out := must(t, address, "", "--auth", "digest:ann:secret", "get", "/n"); out != "x\n" {
			t.Errorf("ann reads %q", out)
		}
	})
}
