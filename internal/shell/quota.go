package shell

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// Where servers keep quotas (ZooKeeper's Quotas).
const (
	quotaRoot  = "/zookeeper/quota"
	limitsName = "zookeeper_limits"
	statsName  = "zookeeper_stats"
)

// quotaKeys are the flags of setquota and delquota with their names in a limits
// node.
var quotaKeys = []struct{ flag, key, what string }{
	{"n", "count", "num soft quota"},
	{"b", "bytes", "bytes soft quota"},
	{"N", "countHardLimit", "num hard quota"},
	{"B", "byteHardLimit", "bytes hard quota"},
}

func quotaCommands() []*command {
	var set, del []flag
	for _, k := range quotaKeys {
		set = append(set, flag{name: k.flag, arg: "val", help: k.what})
		del = append(del, flag{name: k.flag, help: k.what})
	}
	exclusive := []string{"n", "b", "N", "B"}
	return []*command{
		{
			name: "setquota", synopsis: "-n|-b|-N|-B val path", summary: "Limit the nodes or bytes below a node",
			flags: set, exclusive: exclusive, min: 1, max: -1, run: runSetQuota,
			examples: []string{
				"setquota -n 1000 /app                 # a soft limit: the server warns",
				"setquota -N 1000 /app                 # a hard one, where enforceQuota is on",
			},
		},
		{
			name: "listquota", synopsis: "path", summary: "Print the limits of a node and what it uses",
			min: 1, max: -1, run: runListQuota,
			examples: []string{"listquota --json /app                 # -1 stands for no limit"},
		},
		{
			name: "delquota", synopsis: "[-n|-b|-N|-B] path", summary: "Take away limits of a node",
			flags: del, exclusive: exclusive, min: 1, max: -1, run: runDelQuota,
			examples: []string{"delquota /app                         # all of them"},
		},
	}
}

// track is the content of a limits or stats node.
type track map[string]int64

// parseTrack reads key=number pairs separated by commas or semicolons.
func parseTrack(data []byte) track {
	t := track{}
	for _, pair := range strings.FieldsFunc(string(data), func(r rune) bool { return r == ',' || r == ';' }) {
		fields := strings.Split(pair, "=")
		if len(fields) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			t[fields[0]] = n
		}
	}
	return t
}

func (t track) get(key string) int64 {
	if n, ok := t[key]; ok {
		return n
	}
	return -1
}

// String writes count and bytes first, and a further "=" before the rest:
// readers before the hard limits existed stop there.
func (t track) String() string {
	text := fmt.Sprintf("count=%d,bytes=%d", t.get("count"), t.get("bytes"))
	more := ""
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if key != "count" && key != "bytes" {
			more += fmt.Sprintf(";%s=%d", key, t[key])
		}
	}
	if more != "" {
		text += "=" + more
	}
	return text
}

// quotaPath returns the node that stands for a path in the tree of quotas.
func quotaPath(path string) string { return quotaRoot + path }

// limitsPath keeps the double slash that zkCli makes of the root: the server
// refuses it there and here.
func limitsPath(path string) string { return quotaPath(path) + "/" + limitsName }

func (in *invocation) get(ctx context.Context, path string) ([]byte, error) {
	if err := checkPath(path, false); err != nil {
		return nil, err
	}
	data, _, err := in.session.Get(ctx, path, false)
	return data, err
}

func (in *invocation) exists(ctx context.Context, path string) (bool, error) {
	if err := checkPath(path, false); err != nil {
		return false, err
	}
	_, err := in.session.Exists(ctx, path, false)
	if client.Code(err) == proto.ErrNoNode {
		return false, nil
	}
	return err == nil, err
}

func (in *invocation) create(ctx context.Context, path, data string) error {
	request := proto.CreateRequest{Path: path, ACL: proto.OpenACL, TTL: -1}
	if data != "" {
		request.Data = []byte(data)
	}
	_, err := in.session.Create(ctx, request)
	return err
}

func runListQuota(ctx context.Context, in *invocation) error {
	path := in.arg(0)
	limits := limitsPath(path)
	if !in.json {
		in.sh.note("absolute path is %s", limits)
	}
	data, err := in.get(ctx, limits)
	if client.Code(err) == proto.ErrNoNode {
		return &failure{text: "quota for " + path + " does not exist.", cause: err}
	}
	if err != nil {
		return err
	}
	used, err := in.get(ctx, quotaPath(path)+"/"+statsName)
	if err != nil {
		return err
	}
	limit, usage := parseTrack(data), parseTrack(used)
	return in.say(map[string]any{"path": path, "limits": limit, "usage": usage},
		"Output quota for %s %s\nOutput stat for %s %s", path, limit, path, usage)
}

func runDelQuota(ctx context.Context, in *invocation) error {
	path := in.arg(0)
	limits := limitsPath(path)
	exists, err := in.exists(ctx, limits)
	if err != nil {
		return err
	}
	if !exists {
		return in.say(map[string]any{"path": path, "deleted": false}, "Quota does not exist for %s", path)
	}
	data, err := in.get(ctx, limits)
	if err != nil {
		return err
	}
	quota, some := parseTrack(data), false
	for _, k := range quotaKeys {
		if in.has(k.flag) {
			quota[k.key], some = -1, true
		}
	}
	if some {
		_, err = in.session.Set(ctx, limits, []byte(quota.String()), -1)
	} else {
		err = in.cutQuota(ctx, quotaPath(path))
	}
	if err != nil {
		return err
	}
	return in.answerJSON(map[string]any{"path": path, "deleted": true})
}

// cutQuota deletes a quota's nodes, and then those above that keep none.
func (in *invocation) cutQuota(ctx context.Context, path string) error {
	names, _, err := in.session.Children(ctx, path, false)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := in.session.Delete(ctx, join(path, name), -1); err != nil {
			return err
		}
	}
	for path != quotaRoot {
		names, _, err := in.session.Children(ctx, path, false)
		if err != nil || len(names) > 0 {
			return err
		}
		if err := in.session.Delete(ctx, path, -1); err != nil {
			return err
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return nil
}

func runSetQuota(ctx context.Context, in *invocation) error {
	path := in.arg(0)
	wanted, err := in.wantedQuota()
	if err != nil {
		return err
	}
	if strings.HasPrefix(path, quotaRoot) {
		return failf(ErrUsage, "cannot set a quota under the path: %s", quotaRoot)
	}
	exists, err := in.exists(ctx, path)
	if err != nil {
		return err
	}
	if !exists {
		none := &client.ServerError{Op: proto.OpExists, Path: path, Code: proto.ErrNoNode}
		return &failure{text: path + " does not exist.", cause: none}
	}
	if err := in.noQuotaBelow(ctx, path); err != nil {
		return err
	}
	if err := in.noQuotaAbove(ctx, path); err != nil {
		return err
	}
	if err := in.makeQuotaNodes(ctx, path); err != nil {
		return err
	}
	if err := in.writeQuota(ctx, path, wanted); err != nil {
		return err
	}
	return in.answerJSON(map[string]any{"path": path, "limits": wanted})
}

// wantedQuota reads the one limit that the flags name.
func (in *invocation) wantedQuota() (track, error) {
	var alternatives []string
	for _, k := range quotaKeys {
		alternatives = append(alternatives, "-"+k.flag+" "+k.what)
		if !in.has(k.flag) {
			continue
		}
		least, bits := int64(0), 64
		if strings.HasPrefix(k.key, "count") {
			least, bits = 1, 32
		}
		n, err := strconv.ParseInt(in.value(k.flag), 10, bits)
		switch {
		case err != nil:
			return nil, failf(ErrUsage, "NumberFormatException happens when parsing the option value")
		case n < least && least == 1:
			return nil, failf(ErrUsage, "the num quota must be greater than zero")
		case n < least:
			return nil, failf(ErrUsage, "the bytes quota must be greater than or equal to zero")
		}
		return track{"count": -1, "bytes": -1, "countHardLimit": -1, "byteHardLimit": -1, k.key: n}, nil
	}
	return nil, failf(ErrUsage, "Missing required option: [%s]", strings.Join(alternatives, ", "))
}

// noQuotaBelow refuses a quota above another one: servers cannot count for
// both.
func (in *invocation) noQuotaBelow(ctx context.Context, path string) error {
	own := quotaPath(path)
	if err := checkPath(own, false); err != nil {
		return err
	}
	err := walk(ctx, in.session, own, visitor{enter: func(node *walked) (bool, error) {
		if node.path != own && slices.Contains(node.children, limitsName) {
			return false, failf(ErrInput, "%s has a child %s which has a quota", path, strings.TrimPrefix(node.path, quotaRoot))
		}
		return true, nil
	}})
	if client.Code(err) == proto.ErrNoNode {
		return nil
	}
	return err
}

func (in *invocation) noQuotaAbove(ctx context.Context, path string) error {
	above := quotaRoot
	parts := strings.Split(path, "/")
	for _, name := range parts[1 : len(parts)-1] {
		above += "/" + name
		names, _, err := in.session.Children(ctx, above, false)
		if client.Code(err) == proto.ErrNoNode {
			return nil
		}
		if err != nil {
			return err
		}
		if slices.Contains(names, limitsName) {
			return failf(ErrInput, "%s has a parent %s which has a quota", path, strings.TrimPrefix(above, quotaRoot))
		}
	}
	return nil
}

// makeQuotaNodes creates what is missing on the way to a quota.
func (in *invocation) makeQuotaNodes(ctx context.Context, path string) error {
	at := ""
	for _, name := range strings.Split(quotaPath(path), "/")[1:] {
		if name == "" {
			continue
		}
		at += "/" + name
		exists, err := in.exists(ctx, at)
		if err != nil {
			return err
		}
		if exists {
			continue
		}
		if err := in.create(ctx, at, ""); err != nil && client.Code(err) != proto.ErrNodeExists {
			return err
		}
	}
	return nil
}

// writeQuota adds a limit to those that are there, and warns when it is passed
// already.
func (in *invocation) writeQuota(ctx context.Context, path string, wanted track) error {
	base := quotaPath(strings.TrimSuffix(path, "/"))
	limits, stats := base+"/"+limitsName, base+"/"+statsName
	exists, err := in.exists(ctx, limits)
	if err != nil {
		return err
	}
	quota := wanted
	if exists {
		data, err := in.get(ctx, limits)
		if err != nil {
			return err
		}
		quota = parseTrack(data)
		for key, n := range wanted {
			if n > -1 {
				quota[key] = n
			}
		}
	} else {
		if err := in.create(ctx, limits, quota.String()); err != nil {
			return err
		}
		if err := in.create(ctx, stats, track{"count": 0, "bytes": 0}.String()); err != nil {
			return err
		}
	}
	used, err := in.get(ctx, stats)
	if err != nil {
		return err
	}
	in.warnPassed(quota, parseTrack(used))
	if exists {
		_, err = in.session.Set(ctx, limits, []byte(quota.String()), -1)
	}
	return err
}

func (in *invocation) warnPassed(quota, used track) {
	passed := func(key, hard string) bool {
		n := used.get(key)
		return quota.get(key) > -1 && quota.get(key) < n || quota.get(hard) > -1 && quota.get(hard) < n
	}
	if passed("count", "countHardLimit") {
		in.sh.note("[Warning]: the count quota you create is less than the existing count:%d", used.get("count"))
	}
	if passed("bytes", "byteHardLimit") {
		in.sh.note("[Warning]: the bytes quota you create is less than the existing bytes:%d", used.get("bytes"))
	}
}
