package shell

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
)

// grow makes a tree of folders with leaves, by load.
func grow(t *testing.T, address, root string, folders, leaves int) {
	t.Helper()
	read, write := io.Pipe()
	go func() {
		out := bufio.NewWriter(write)
		fmt.Fprintln(out, `{"path":"/","null":true}`)
		for f := range folders {
			fmt.Fprintf(out, "{\"path\":\"/folder-%04d\",\"null\":true}\n", f)
			for l := range leaves {
				fmt.Fprintf(out, "{\"path\":\"/folder-%04d/leaf-%06d\",\"data\":\"x\"}\n", f, l)
			}
		}
		write.CloseWithError(out.Flush())
	}()
	cmd := zooraftShell(t, address, "load", root)
	cmd.Stdin = read
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("load: %v\n%s", err, out)
	}
}

// peak runs a shell, counts its lines of output, and returns the largest memory
// it held, in KiB.
func peak(t *testing.T, address string, args ...string) (printed int, kib int64) {
	t.Helper()
	cmd := zooraftShell(t, address, args...)
	// The collector's slack would hide what is held.
	cmd.Env = append(cmd.Environ(), "GOGC=25")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		printed++
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return printed, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
}

// The memory of ls -R, dump, cp and deleteall must not grow with the tree: a
// tree of five times as many folders may cost no more than the noise of a
// collector. ZOORAFT_SHELL_FOLDERS makes it larger, 1000 for a million nodes.
func TestLargeTreesTakeNoMoreMemoryThanSmallOnes(t *testing.T) {
	const leaves, noise = 1000, 16 << 10
	folders := 15
	if text := os.Getenv("ZOORAFT_SHELL_FOLDERS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		folders = n
	}
	server := peer.StartZooraft(t, peer.Options{})
	grow(t, server.Address, "/small", 3, leaves)
	grow(t, server.Address, "/large", folders, leaves)
	for _, row := range []struct {
		words  string
		prints bool
	}{
		{"ls -R PATH", true}, {"find PATH", true}, {"dump PATH", true}, {"cp PATH PATH-copy", false}, {"deleteall PATH", false},
	} {
		_, small := peak(t, server.Address, strings.Fields(strings.ReplaceAll(row.words, "PATH", "/small"))...)
		printed, large := peak(t, server.Address, strings.Fields(strings.ReplaceAll(row.words, "PATH", "/large"))...)
		t.Logf("%s: %d KiB for 3 folders, %d KiB for %d", row.words, small, large, folders)
		if want := 1 + folders*(1+leaves); row.prints && printed != want {
			t.Errorf("%s printed %d lines, want %d", row.words, printed, want)
		}
		if large > small+noise {
			t.Errorf("%s took %d KiB for 3 folders and %d KiB for %d", row.words, small, large, folders)
		}
	}
	if r := run(t, server.Address, "", "stat", "/large"); r.code != 4 {
		t.Errorf("deleteall left the tree: exit code %d", r.code)
	}
}

// BenchmarkOneCommand is what a script pays for a command, process and session
// included.
func BenchmarkOneCommand(b *testing.B) {
	server := peer.StartZooraft(b, peer.Options{})
	binary := peer.ZooraftBinary(b, false)
	for b.Loop() {
		if out, err := exec.Command(binary, "shell", "-server", server.Address, "ls", "/").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}
