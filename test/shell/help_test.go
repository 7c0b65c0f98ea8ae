package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/shell"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// output runs the binary itself.
func output(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(peer.ZooraftBinary(t, false), args...).Output()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return string(out)
}

func TestHelpHasExamplesAndNeedsNoServer(t *testing.T) {
	if out := output(t, "shell", "--help"); !strings.Contains(out, "Examples:") || !strings.Contains(out, "Exit codes:") {
		t.Errorf("shell --help:\n%s", out)
	}
	list := output(t, "shell", "help")
	for _, name := range shell.Names() {
		if !strings.Contains(list, "\n  "+name+" ") {
			t.Errorf("help does not list %s", name)
		}
		text := output(t, "shell", name, "--help")
		if !strings.HasPrefix(text, name+" ") || !strings.Contains(text, "\nExamples:\n  "+name) {
			t.Errorf("%s --help:\n%s", name, text)
		}
	}
}

func TestTheManualPageHasEveryCommand(t *testing.T) {
	page := output(t, "man")
	if !regexp.MustCompile(`^\.TH ZOORAFT 1 "" "zooraft [^ "]+"\n`).MatchString(page) {
		t.Errorf("the page does not begin with its title and the version: %.80q", page)
	}
	for _, name := range shell.Names() {
		if !strings.Contains(page, ".SS \""+name+"\"\n") {
			t.Errorf("the page lacks %s", name)
		}
	}
	for _, command := range []string{"serve", "shell", "bench", "completion", "man", "health"} {
		if !strings.Contains(page, ".SS \"zooraft "+command+"\"\n") {
			t.Errorf("the page lacks zooraft %s", command)
		}
	}
	for _, line := range strings.Split(page, "\n") {
		known := []string{".TH ", ".SH ", ".SS ", ".B ", ".I ", ".PP", ".TP", ".nf", ".fi", ".sp"}
		request := strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'")
		for _, k := range known {
			request = request && !strings.HasPrefix(line, k)
		}
		if request {
			t.Errorf("roff would take this line for a request: %s", line)
		}
	}
}

func TestCompletionKnowsCommandsFlagsAndPaths(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	must(t, server.Address, "", "create", "/apple")
	must(t, server.Address, "", "create", "/apricot")
	for _, row := range []struct {
		words []string
		want  string
	}{
		{[]string{"shell", "getA"}, "getAcl\ngetAllChildrenNumber\n"},
		{[]string{"shell", "-server", server.Address, "get", "/ap"}, "/apple\n/apricot\n"},
		{[]string{"shell", "--server", server.Address, "get", "/appl"}, "/apple\n"},
		{[]string{"shell", "get", "--r"}, "--raw\n"},
		{[]string{"completion", ""}, "bash\nzsh\nfish\n"},
	} {
		out := output(t, append([]string{"__completeNoDesc"}, row.words...)...)
		found, _, _ := strings.Cut(out, ":")
		if found != row.want {
			t.Errorf("%q completes to %q, want %q", row.words, found, row.want)
		}
	}
}

func TestCompletionScriptsAreForTheirShells(t *testing.T) {
	for name, holds := range map[string]string{
		"bash": "complete -o default", "zsh": "#compdef zooraft", "fish": "complete -c zooraft",
	} {
		if out := output(t, "completion", name); !strings.Contains(out, holds) {
			t.Errorf("the script for %s lacks %q", name, holds)
		}
	}
	toolchain.Need(t, "bash")
	// What a user's bash does with it, also where the package bash-completion is
	// missing. Bash splits words at colons.
	server := peer.StartZooraft(t, peer.Options{})
	must(t, server.Address, "", "create", "/a path")
	host, port, _ := strings.Cut(server.Address, ":")
	for _, row := range []struct{ line, words, want string }{
		{"zooraft shell getAc", "zooraft shell getAc", "getAcl"},
		{"zooraft shell getAc /x", "zooraft shell getAc", "getAcl"}, // the cursor is before /x
		{"zooraft shell -server " + server.Address + " ls /a", "zooraft shell -server " + host + " : " + port + " ls /a", `/a\ path`},
		{"zooraft shell ls ", "zooraft shell ls ''", "/"},
	} {
		script := `source <(zooraft completion bash)
COMP_LINE=$1; COMP_POINT=$2; COMP_WORDS=(` + row.words + `); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_TYPE=9
__start_zooraft; printf '%s\n' "${COMPREPLY[@]}"`
		point := len(strings.TrimSuffix(row.line, " /x"))
		cmd := exec.Command("bash", "--norc", "-c", script, "bash", row.line, strconv.Itoa(point))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(peer.ZooraftBinary(t, false))+":"+os.Getenv("PATH"))
		if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != row.want {
			t.Errorf("bash completes %q to %q, %v", row.line, out, err)
		}
	}
}
