package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestTheMembershipMovesIntoAFileOfItsOwn(t *testing.T) {
	path := writeConfig(t, "# ours\ndataDir=DIR\r\nclientPort=2181\nclientPortAddress=127.0.0.1\npeerType=participant\n"+
		"server.1=a:1:2;2181\n# the second\nserver.2=\\\n  b:1:2;2181\ninitLimit=5\nsyncLimit=2\nreconfigEnabled=true\nstandaloneEnabled=false\ngroup.1=1:2\nweight.1=1")
	writeMyID(t, path, "1\n")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := proto.Membership{Version: 0x1f}
	for i, text := range []string{"a:1:2;2181", "b:1:2:observer;2181", "c:1:2;2181"} {
		one, err := proto.ParseMember([]int64{1, 2, 10}[i], text, false)
		if err != nil {
			t.Fatal(err)
		}
		m.Members = append(m.Members, one)
	}
	if err := WriteMembership(path, m, 1); err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), filepath.Dir(path), "DIR")
	}
	if got := read(path + ".bak"); got != strings.ReplaceAll(string(before), filepath.Dir(path), "DIR") {
		t.Errorf("the backup says\n%s", got)
	}
	wantDynamic := "server.10=c:1:2:participant;0.0.0.0:2181\nserver.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:observer;0.0.0.0:2181"
	if got := read(path + ".dynamic.1f"); got != wantDynamic {
		t.Errorf("the dynamic file says\n%s", got)
	}
	wantStatic := "# ours\ndataDir=DIR\r\n# the second\ninitLimit=5\nsyncLimit=2\nreconfigEnabled=true\nstandaloneEnabled=false\n" +
		"dynamicConfigFile=DIR/" + filepath.Base(path) + ".dynamic.1f\n"
	if got := read(path); got != wantStatic {
		t.Errorf("zoo.cfg says\n%s\nwant\n%s", got, wantStatic)
	}

	m.Version = 0x20
	m.Members = m.Members[:2]
	if err := WriteMembership(path, m, 1); err != nil {
		t.Fatal(err)
	}
	if got := read(path); got != strings.Replace(wantStatic, ".1f", ".20", 1) {
		t.Errorf("written again, zoo.cfg says\n%s", got)
	}
	if got := read(path + ".bak"); !strings.Contains(got, "server.1=") {
		t.Errorf("the backup is no longer of what was there first:\n%s", got)
	}
	c, _, err := load(t, Options{File: path, AllowUnprotected: true})
	if err != nil {
		t.Fatal(err)
	}
	if c.Ensemble.Version != 0x20 || len(c.Ensemble.Servers) != 2 || c.Listen.Port != 2181 || !c.Ensemble.Servers[1].Observer {
		t.Errorf("read again: %+v, %+v", c.Ensemble, c.Listen)
	}
}
