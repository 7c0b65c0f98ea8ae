package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
)

// answerHealth serves a fixed answer on the admin socket below a data
// directory.
func answerHealth(t *testing.T, dataDir, answer string) {
	t.Helper()
	own := filepath.Join(dataDir, "zooraft")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", admin.SocketPath(own))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, answer)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-done })
}

func TestHealthExitsByWhatTheServerSays(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		args         []string
		code         int
		stdout       string // a part of it
		stderr       string
	}{
		{"ready", `{"live":true,"ready":true,"mode":"standalone","address":"127.0.0.1:2181","zxid":10}`, nil,
			0, "live: yes\nready: yes\nmode: standalone\naddress: 127.0.0.1:2181\nzxid: 0xa\n", ""},
		{"loading", `{"live":true,"reason":"A snapshot is being loaded."}`, nil,
			1, "ready: no\nreason: A snapshot is being loaded.\n", "not healthy: A snapshot is being loaded."},
		{"loading, liveness probe", `{"live":true,"reason":"A snapshot is being loaded."}`, []string{"--live"}, 0, "live: yes\n", ""},
		{"dead, liveness probe", `{"reason":"The disk is broken."}`, []string{"--live"}, 1, "live: no\n", "The disk is broken."},
		{"as JSON", `{"live":true,"ready":true}`, []string{"--json"}, 0, "\"ready\": true,\n", ""},
		{"nonsense", `<html>`, nil, 2, "", "not understood"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			answerHealth(t, dir, c.answer)
			var stdout, stderr bytes.Buffer
			code := run(append([]string{"health", "--data-dir", dir}, c.args...), &stdout, &stderr)
			if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("exit %d\n%s\n%s\nwant exit %d, %q, %q", code, &stdout, &stderr, c.code, c.stdout, c.stderr)
			}
		})
	}
}

func TestHealthFindsTheServerOfAZooCfg(t *testing.T) {
	dir := t.TempDir()
	answerHealth(t, filepath.Join(dir, "data"), `{"live":true,"ready":true}`)
	file := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("dataDir=%s\nclientPort=2181\nsecureClientPort=2182\n", filepath.Join(dir, "data"))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := run([]string{"health", file}, &out, &out); code != 0 {
		t.Errorf("exit %d: %s", code, &out)
	}
}

func TestHealthExitsWithTwoWhenItCannotAsk(t *testing.T) {
	for name, args := range map[string][]string{
		"nobody there": {"--data-dir", t.TempDir()},
		"no such file": {filepath.Join(t.TempDir(), "zoo.cfg")},
		"unknown flag": {"--ready"},
		"too many":     {"a", "b"},
		"bad duration": {"--timeout", "x"},
	} {
		var out bytes.Buffer
		if code := run(append([]string{"health"}, args...), &out, &out); code != 2 {
			t.Errorf("%s: exit %d, %s", name, code, &out)
		}
	}
}
