package main

import (
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
)

func TestTheStatusOfAnEnsembleSaysWhoKeepsTheCommandLevel(t *testing.T) {
	for want, status := range map[string]admin.EnsembleStatus{
		"command level  2\n": {CommandLevel: 2},
		"command level  1, a higher one waits for server 3\n":    {CommandLevel: 1, LevelWaitsFor: []int{3}},
		"command level  1, a higher one waits for server 3, 4\n": {CommandLevel: 1, LevelWaitsFor: []int{3, 4}},
	} {
		var out strings.Builder
		if err := printEnsemble(&out, status, false); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v\n%swant %s", err, out.String(), want)
		}
	}
}
