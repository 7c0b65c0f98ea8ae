package admin

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// goldenKeys are the keys that room admin tests itself against.
func goldenKeys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(toolchain.Root(), "internal", "admin", "testdata", "mntr-keys.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// monitor returns mntr's keys in order and their values.
func monitor(t *testing.T, s *scene) (keys []string, values map[string]string) {
	t.Helper()
	text, _ := s.ask("mntr")
	values = map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || values[key] != "" {
			t.Errorf("%s: %q is no new key with a value", s.server.Kind, line)
		}
		keys, values[key] = append(keys, key), value
	}
	return keys, values
}

func TestTheGoldenKeysAreThoseOfApache(t *testing.T) {
	s := &scene{t: t, server: peer.StartApache(t, allWords()), names: map[string]string{}}
	keys, _ := monitor(t, s)
	slices.Sort(keys)
	if golden := goldenKeys(t); !slices.Equal(keys, golden) {
		t.Errorf("the real server has %d keys, the golden file %d; differing ones:\n%v", len(keys), len(golden), unequal(keys, golden))
	}
}

func unequal(a, b []string) (only []string) {
	for _, key := range a {
		if !slices.Contains(b, key) {
			only = append(only, "+"+key)
		}
	}
	for _, key := range b {
		if !slices.Contains(a, key) {
			only = append(only, "-"+key)
		}
	}
	return only
}

// equalNumbers are the keys whose numbers must be the real server's after the
// same script; a regular expression, without the zk_ prefix.
var equalNumbers = regexp.MustCompile(`^zk_(` + strings.Join([]string{
	"server_state", "znode_count", "ephemerals_count", "watch_count", "approximate_data_size",
	"global_sessions", "local_sessions", "num_alive_connections", "outstanding_requests",
	"packets_received", "packets_sent", "bytes_received_count", "auth_failed_count",
	"(last|min|max)_client_response_size", "response_bytes", "watch_bytes",
	"connection_(request_count|rejected|drop_count|revalidate_count|drop_probability)",
	"(sessionless_connections|stale_sessions)_expired",
	"cnt_(read|update)latency", "(avg|min|max|cnt|sum)_node_(created|deleted|changed|children)_watch_count",
	"(avg|min|max|cnt|sum)_.*_per_namespace", ".*_quota_.*_per_namespace",
	"outstanding_tls_handshake", "max_file_descriptor_count", "throttled_ops", "stale_.*", "large_requests_rejected",
	"unrecoverable_error_count", "digest_mismatches_count", "(commit|proposal|looking|snap|diff)_count",
}, "|") + `)$`)

// kindOfNumber is what a value looks like: its form must be the same where its
// number cannot be.
func kindOfNumber(value string) string {
	switch {
	case regexp.MustCompile(`^-?\d+$`).MatchString(value):
		return "integer"
	case regexp.MustCompile(`^-?\d+\.\d+(E-?\d+)?$`).MatchString(value):
		return "decimal"
	}
	return "text"
}

func allWords() peer.Options {
	return peer.Options{Config: map[string]string{"4lw.commands.whitelist": "*"}}
}

func TestMntrCountsWhatApacheCounts(t *testing.T) {
	measure := func(server *peer.Server) map[string]string {
		s := &scene{t: t, server: server, names: map[string]string{}}
		s.say("srst")
		s.work()
		_, values := monitor(t, s)
		return values
	}
	want, got := measure(peer.StartApache(t, allWords())), measure(peer.StartZooraft(t, allWords()))
	var wrong []string
	for key, value := range want {
		ours, ok := got[key]
		switch {
		case !ok:
			wrong = append(wrong, key+" is missing")
		case equalNumbers.MatchString(key) && ours != value:
			wrong = append(wrong, fmt.Sprintf("%s is %s, on the real server %s", key, ours, value))
		case kindOfNumber(ours) != kindOfNumber(value):
			wrong = append(wrong, fmt.Sprintf("%s is %q, on the real server %q", key, ours, value))
		}
	}
	for key, value := range got {
		if _, ok := want[key]; !ok && equalNumbers.MatchString(key) {
			wrong = append(wrong, fmt.Sprintf("%s is %s, and the real server has no such line", key, value))
		}
	}
	slices.Sort(wrong)
	for _, w := range wrong {
		t.Error(w)
	}
}

// docs/metrics.md says what a number is worth. What it says is always zero must
// be, and what it says is measured must have been seen to move.
func TestThePageOfMetricsTellsTheTruth(t *testing.T) {
	s := &scene{t: t, server: peer.StartZooraft(t, allWords()), names: map[string]string{}}
	s.work()
	d := s.session("d", 10000)
	d.create("/d", "", 1, proto.ErrOK)
	d.read(proto.OpExists, "/d", true, proto.ErrOK)
	_, values := monitor(t, s)
	// The script meets no limit, no failure, no pause, no snapshot, no replica
	// that differs, and no ensemble.
	quiet := regexp.MustCompile(`snapshottime|startup_snap_load_time|jvm_pause|_(rejected|dropped|expired)$|^(stale|throttled|large|request_throttle|quota_exceeded)_|` +
		`without_zk_server_running|token_deficit|connection_drop_count|node_(created|children)_watch|outstanding_requests|` +
		`connection_drop_probability|auth_failed_count|digest_mismatches|` +
		`^(quorum_size|local_sessions|observer_master_id|learners|synced_.*|leader_uptime|(last|max|min)_proposal_size|` +
		`election_time|looking_count|(leader_)?unavailable_time|(proposal|commit|snap)_count|learner_(proposal|commit)_received_count|(follower|observer)_sync_time)$`)
	for _, m := range rowsOfThePage(t) {
		name, standing := m[1], m[2]
		moved := hasMoved(values, name)
		// Latencies and queue lengths may be true zeros; their counts are not.
		switch {
		case standing == "0" && moved:
			t.Errorf("%s moves, and the page says that it is always zero", name)
		case standing != "0" && !moved && !quiet.MatchString(name) && !strings.HasSuffix(name, "_latency"):
			t.Errorf("%s stays zero, and the page says %q", name, standing)
		}
	}
}

// rowsOfThePage are the names of docs/metrics.md with their standing.
func rowsOfThePage(t *testing.T) [][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(toolchain.Root(), "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|.*\\| (same|nearest|0) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 100 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	return rows
}

// hasMoved tells whether one of a metric's values is not zero.
func hasMoved(values map[string]string, name string) bool {
	for key, value := range values {
		if isKeyOf(key, name) && kindOfNumber(value) != "text" && strings.Trim(value, "0.") != "" {
			return true
		}
	}
	return false
}

// movedWithoutReason are the metrics that the page says are always zero and are not.
func movedWithoutReason(t *testing.T, values map[string]string) (wrong []string) {
	t.Helper()
	for _, m := range rowsOfThePage(t) {
		if m[2] == "0" && hasMoved(values, m[1]) {
			wrong = append(wrong, m[1]+" moves, and the page says that it is always zero")
		}
	}
	return wrong
}

var statistic = regexp.MustCompile(`^zk_(avg|min|max|cnt|sum|p50|p95|p99|p999)_`)

// isKeyOf tells whether a key of mntr belongs to the metric.
func isKeyOf(key, name string) bool {
	if strings.HasSuffix(name, "_per_namespace") {
		return strings.HasSuffix(key, "_"+name)
	}
	return key == "zk_"+name || statistic.ReplaceAllString(key, "") == name
}
