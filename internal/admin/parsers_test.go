package admin

import (
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// listen answers words on a TCP port as the server does, each answer passed
// through edit.
func listen(t *testing.T, a *Admin, edit func(string) string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				var first [4]byte
				if _, err := io.ReadFull(conn, first[:]); err != nil {
					return
				}
				var text strings.Builder
				if word, ok := a.Word(first); ok && a.Execute(word, nil, &text) == nil {
					_, _ = io.WriteString(conn, edit(text.String()))
				}
			})
		}
	})
	t.Cleanup(func() { listener.Close(); open.Wait() })
	return listener.Addr().String()
}

func asItIs(text string) string { return text }

func TestTheGoClientParsesRuok(t *testing.T) {
	address := listen(t, newTestAdmin(busyServer()), asItIs)
	if ok := zk.FLWRuok([]string{address}, time.Second); !ok[0] {
		t.Error("FLWRuok says no")
	}
}

// FLWSrvr wants the date form of ZooKeeper 3.4 (MM/dd/yyyy). It refuses the
// real 3.9.5 for that, and us, who keep 3.9.5's form because current tools read
// that one. Everything else is what it wants: with the old form it parses.
func TestTheGoClientParsesSrvrExceptForTheDate(t *testing.T) {
	a := newTestAdmin(busyServer())
	if _, ok := zk.FLWSrvr([]string{listen(t, a, asItIs)}, time.Second); ok {
		t.Error("FLWSrvr takes the ISO date now: remove the exception")
	}
	date := regexp.MustCompile(`(\d{4})-(\d\d)-(\d\d)`)
	address := listen(t, a, func(text string) string { return date.ReplaceAllString(text, "$2/$3/$1") })
	stats, ok := zk.FLWSrvr([]string{address}, time.Second)
	if !ok {
		t.Fatalf("FLWSrvr: %v", stats[0].Error)
	}
	s := stats[0]
	if s.Received != 37 || s.Sent != 35 || s.NodeCount != 9 || s.AvgLatency != 7 || s.MaxLatency != 60 ||
		s.Connections != 4 || s.Counter != 10 || s.Mode != zk.ModeStandalone {
		t.Errorf("FLWSrvr: %+v", *s)
	}
}

// FLWCons reports an error for every line without a session, as the asking
// connection's always is, on the real server too, and parses the others.
func TestTheGoClientParsesCons(t *testing.T) {
	address := listen(t, newTestAdmin(busyServer()), asItIs)
	clients, ok := zk.FLWCons([]string{address}, time.Second)
	if ok || len(clients) != 1 || len(clients[0].Clients) != 1 {
		t.Fatalf("FLWCons: %v, %+v", ok, clients)
	}
	c := clients[0].Clients[0]
	if c.SessionID != int64(sessionB) || c.LastOperation != "PING" || c.Lcxid != 8 || c.Lzxid != 8 ||
		c.Timeout != 20000 || c.MaxLatency != 9 || c.Addr != "127.0.0.1:53644" {
		t.Errorf("FLWCons: %+v", *c)
	}
}

// What kazoo and zktop do with the version, and what agents do with mntr.
func TestTheUsualPatternsOfAgentsMatch(t *testing.T) {
	a := newTestAdmin(busyServer())
	for _, c := range []struct{ tool, word, pattern, want string }{
		{"kazoo's server_version", "envi", `(?m)^zookeeper\.version=(\d+\.\d+\.\d+)-`, "3.9.5"},
		{"zktop's version", "stat", `^Zookeeper version: (\d+\.\d+\.\d+)`, "3.9.5"},
		{"zktop's client line", "stat", `(?m)^ /([^[]+:\d+)\[\d+\]\(queued=\d+,recved=10,`, "127.0.0.1:53644"},
		{"a version of three numbers", "srvr", `^Zookeeper version: ([^.]+\.[^.]+\.[^-]+)-`, "3.9.5"},
		{"a version in mntr", "mntr", `^zk_version\s+([\w.\-]+)`, "3.9.5-zooraft-0.1.0-4c2f01ab99d0"},
		{"a number in mntr", "mntr", `(?m)^zk_znode_count\s+(-?[\d.]+)$`, "9"},
		{"a decimal in mntr", "mntr", `(?m)^zk_avg_latency\s+(-?[\d.]+)$`, "7.0"},
	} {
		match := regexp.MustCompile(c.pattern).FindStringSubmatch(say(t, a, c.word))
		if match == nil || match[1] != c.want {
			t.Errorf("%s: %v, want %q", c.tool, match, c.want)
		}
	}
}
