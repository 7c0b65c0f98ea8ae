// Package image proves the container image without a container engine: the
// static program, alone in an empty root with its two volumes, as uid 1000.
package image

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

func TestMain(m *testing.M) { os.Exit(toolchain.Main(m)) }

// user is the user and group that the image runs as.
const user = 1000

// dockerfile is what the Dockerfile's last stage says.
type dockerfile struct {
	entrypoint, command, health, volumes []string
	user, from                           string
}

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(toolchain.Root(), "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	var d dockerfile
	list := func(line string) []string {
		var words []string
		if err := json.Unmarshal([]byte(line[strings.Index(line, "["):]), &words); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return words
	}
	for _, line := range strings.Split(joined, "\n") {
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "FROM":
			d = dockerfile{from: rest}
		case "USER":
			d.user = rest
		case "VOLUME":
			d.volumes = list(line)
		case "ENTRYPOINT":
			d.entrypoint = list(line)
		case "CMD":
			d.command = list(line)
		case "HEALTHCHECK":
			d.health = list(line)
		}
	}
	return d
}

// root is a folder laid out as the image's file system.
func root(t *testing.T, d dockerfile, port int) string {
	t.Helper()
	dir := t.TempDir()
	// The folders that Go's testing makes are closed to others.
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, d.entrypoint[0]), "./cmd/zooraft")
	build.Dir = toolchain.Root()
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config, err := os.ReadFile(filepath.Join(toolchain.Root(), "container", "zoo.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	config = bytes.Replace(config, []byte("clientPort=2181"), fmt.Appendf(nil, "clientPort=%d", port), 1)
	if err := os.Mkdir(filepath.Join(dir, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "conf", "zoo.cfg"), config, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.volumes {
		if err := os.Mkdir(filepath.Join(dir, v), 0o755); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 {
			if err := os.Chown(filepath.Join(dir, v), user, user); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// confined is a command that sees nothing but dir, as uid 1000, with an empty
// environment. Who is not root gets that by a user namespace.
func confined(dir string, words ...string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}}
	return cmd
}

func TestTheImageIsOneStaticProgramForAnOrdinaryUser(t *testing.T) {
	d := readDockerfile(t)
	if d.from != "scratch" || d.user != "1000:1000" || !slices.Equal(d.volumes, []string{"/data", "/datalog"}) {
		t.Errorf("the last stage is %+v", d)
	}
	dir := root(t, d, 1)
	f, err := elf.Open(filepath.Join(dir, d.entrypoint[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a loader: it is not static")
		}
	}
}

func TestTheImagesProgramServesInAnEmptyRootWithItsVolumesOnly(t *testing.T) {
	d := readDockerfile(t)
	port := peer.FreePort(t)
	dir := root(t, d, port)
	if out, err := confined(dir, d.entrypoint[0], "version").CombinedOutput(); errors.Is(err, os.ErrPermission) {
		toolchain.Denied(t, "another root folder", toolchain.Holds(toolchain.SysChroot))
	} else if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for _, path := range []string{"/first", "/second"} {
		stop := serve(t, d, dir, address)
		if out, err := confined(dir, d.health...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", d.health, err, out)
		}
		c := peer.Dial(t, address)
		req := proto.ConnectRequest{TimeoutMillis: 10000, Password: make([]byte, proto.PasswordLen)}
		if _, err := c.Connect(req, 20*time.Second); err != nil {
			t.Fatal(err)
		}
		create := proto.CreateRequest{Path: path, ACL: proto.OpenACL}
		if h, _, err := c.Call(1, proto.OpCreate, create.Append(nil, proto.OpCreate), 20*time.Second); err != nil || h.Err != proto.ErrOK {
			t.Errorf("create: %+v, %v", h, err)
		}
		read := proto.PathWatch{Path: "/first"}
		if h, _, err := c.Call(2, proto.OpExists, read.Append(nil), 20*time.Second); err != nil || h.Err != proto.ErrOK {
			t.Errorf("the first run's node: %+v, %v", h, err)
		}
		stop()
	}
	if out, err := confined(dir, d.health...).CombinedOutput(); err == nil {
		t.Errorf("%v succeeds without a server:\n%s", d.health, out)
	}
	for _, v := range d.volumes {
		if entries, err := os.ReadDir(filepath.Join(dir, v)); err != nil || len(entries) == 0 {
			t.Errorf("volume %s is not used: %v", v, err)
		}
	}
}

// serve starts the image's command and waits until it serves; stop ends it
// with SIGTERM and expects a clean exit.
func serve(t *testing.T, d dockerfile, dir, address string) (stop func()) {
	t.Helper()
	var log bytes.Buffer
	cmd := confined(dir, append(slices.Clone(d.entrypoint), d.command...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(60 * time.Second)
	for ready := regexp.MustCompile("Mode: "); ; {
		if text, err := peer.Word(address, "srvr"); err == nil && ready.MatchString(text) {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("the server ended: %v\n%s", err, log.String())
		case <-limit:
			t.Fatalf("the server does not serve")
		case <-tick.C:
		}
	}
	return func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("after SIGTERM: %v\n%s", err, log.String())
		}
	}
}
