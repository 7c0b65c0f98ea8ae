package clients

import (
	"path/filepath"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// TestCClient is the C client: checks of every call, synchronous and
// asynchronous, compiled with the client's own source in its threaded form.
// The source is the one that npm's zookeeper ships and configures.
func TestCClient(t *testing.T) {
	takeTurn(t)
	toolchain.Need(t, "gcc", "make", "java", "mvn")
	modules := nodeModules(t)
	source := filepath.Join(modules, "node_modules", "zookeeper", "deps", "zookeeper-client-c")
	program := buildCChecks(t, source)
	compare(t, suite{name: "C client", run: func(t *testing.T, g target, names []string) map[string]Result {
		server := g.start(t, peer.Options{Defines: map[string]string{"zookeeper.extendedTypesEnabled": "true"}})
		return onlyNamed(readVerdicts(t, runTool(t, g, g.folder, nil, program, server.Address)), names)
	}})
}

// buildCChecks compiles the checks and the client into one program. Warnings
// are on for ours and off for theirs.
func buildCChecks(t *testing.T, client string) string {
	t.Helper()
	dir := toolchain.Build(t, "clients", "c")
	ours := filepath.Join(toolchain.Root(), "test", "clients", "cclient")
	flags := []string{"-O1", "-g", "-DHAVE_CONFIG_H", "-DTHREADED", "-I" + ours, "-I" + client,
		"-isystem", filepath.Join(client, "include"), "-isystem", filepath.Join(client, "generated"),
		"-I" + filepath.Join(client, "src")}
	theirs := glob(t, filepath.Join(client, "src", "hashtable", "*.c"))
	for _, name := range []string{"zookeeper", "mt_adaptor", "zk_log", "zk_hashtable", "addrvec", "recordio"} {
		theirs = append(theirs, filepath.Join(client, "src", name+".c"))
	}
	theirs = append(theirs, filepath.Join(client, "generated", "zookeeper.jute.c"))
	objects := filepath.Join(dir, "client.o")
	toolchain.Once(t, filepath.Join(dir, "objects"), theirs, func() {
		args := append(append([]string{"-w", "-r", "-nostdlib"}, flags...), "-o", objects)
		toolchain.Run(t, dir, nil, "gcc", append(args, theirs...)...)
	})
	program := filepath.Join(dir, "checks")
	args := append([]string{"-Wall", "-Wextra", "-Werror"}, flags...)
	args = append(args, glob(t, filepath.Join(ours, "*.c"))...)
	toolchain.Run(t, dir, nil, "gcc", append(args, objects, "-o", program, "-lpthread", "-lm")...)
	return program
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("nothing matches %s: %v", pattern, err)
	}
	return paths
}
