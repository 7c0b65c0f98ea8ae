package shell

import (
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

func findCommands() []*command {
	return []*command{
		{
			name: "find", synopsis: "[path] [--name glob] [--owner session] [--size [+|-]n] [--age [+|-]time]", beyond: true,
			summary: "Print the paths below a node that meet every condition",
			detail:  "+ stands for more than, - for less than, neither for exactly; an age without a sign is a least age.",
			flags: []flag{
				{name: "name", arg: "glob", help: "the last part of the path matches: * ? [a-z]", long: true},
				{name: "owner", arg: "session", help: "ephemerals of this session; any for all of them, none for other nodes", long: true},
				{name: "size", arg: "bytes", help: "bytes of data; with k or m for KiB or MiB", long: true},
				{name: "age", arg: "time", help: "time since the last change of data, by this machine's clock: 90s, 15m, 12h, 7d", long: true},
				{name: "childless", help: "nodes without children", long: true},
			},
			max: 1, run: runFind,
			examples: []string{
				`find /app --name "job-*" --age +7d    # not changed for a week`,
				"find --size +512k                     # large data, anywhere",
				"find /app --owner 0x1000a1b2c3d0000   # what a client holds",
			},
		},
	}
}

// condition tells whether a node is looked for.
type condition func(node *walked) bool

func runFind(ctx context.Context, in *invocation) error {
	root := "/"
	if len(in.args) > 0 {
		root = in.arg(0)
	}
	if err := checkPath(root, false); err != nil {
		return err
	}
	conditions, err := in.conditions(time.Now())
	if err != nil {
		return err
	}
	p := in.sh.progress("nodes searched", true)
	defer p.done()
	return walk(ctx, in.session, root, visitor{enter: func(node *walked) (bool, error) {
		p.add(1)
		for _, meets := range conditions {
			if !meets(node) {
				return true, nil
			}
		}
		value := struct {
			Path string    `json:"path"`
			Stat *statJSON `json:"stat"`
		}{node.path, statValue(&node.stat)}
		return true, in.answer(value, func(w io.Writer) { fmt.Fprintln(w, node.path) })
	}})
}

// conditions reads the flags of find.
func (in *invocation) conditions(now time.Time) ([]condition, error) {
	var all []condition
	if glob := in.value("name"); glob != "" {
		if _, err := path.Match(glob, ""); err != nil {
			return nil, failf(ErrUsage, "--name %s: %v", glob, err)
		}
		all = append(all, func(node *walked) bool {
			ok, _ := path.Match(glob, path.Base(node.path))
			return ok
		})
	}
	if in.has("owner") {
		c, err := ownerCondition(in.value("owner"))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if in.has("size") {
		sign, text := cutSign(in.value("size"))
		bytes, err := parseSize(text)
		if err != nil {
			return nil, failf(ErrUsage, "--size needs a number of bytes, not %q", in.value("size"))
		}
		all = append(all, func(node *walked) bool { return compare(int64(node.stat.DataLength), bytes, sign) })
	}
	if in.has("age") {
		sign, text := cutSign(in.value("age"))
		age, err := parseAge(text)
		if err != nil {
			return nil, failf(ErrUsage, "--age needs a time as in 90s, 15m, 12h or 7d, not %q", in.value("age"))
		}
		if sign == 0 {
			sign = '+'
		}
		all = append(all, func(node *walked) bool {
			return compare(now.UnixMilli()-node.stat.Mtime, age.Milliseconds(), sign)
		})
	}
	if in.has("childless") {
		all = append(all, func(node *walked) bool { return node.stat.NumChildren == 0 })
	}
	return all, nil
}

func ownerCondition(text string) (condition, error) {
	switch text {
	case "any":
		return func(node *walked) bool { return node.stat.EphemeralOwner != 0 }, nil
	case "none":
		return func(node *walked) bool { return node.stat.EphemeralOwner == 0 }, nil
	}
	id, err := parseSession(text)
	if err != nil {
		return nil, err
	}
	return func(node *walked) bool { return node.stat.EphemeralOwner == int64(id) }, nil
}

// parseSession reads a session id as tools print it.
func parseSession(text string) (proto.SessionID, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		return 0, failf(ErrUsage, "a session is a hexadecimal number, not %q", text)
	}
	return proto.SessionID(n), nil
}

// cutSign takes a + or - off a number.
func cutSign(text string) (sign byte, rest string) {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		return text[0], text[1:]
	}
	return 0, text
}

func compare(have, want int64, sign byte) bool {
	switch sign {
	case '+':
		return have > want
	case '-':
		return have < want
	}
	return have == want
}

func parseSize(text string) (int64, error) {
	factor := int64(1)
	switch lower := strings.ToLower(text); {
	case strings.HasSuffix(lower, "k"):
		factor, text = 1<<10, text[:len(text)-1]
	case strings.HasSuffix(lower, "m"):
		factor, text = 1<<20, text[:len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return n * factor, err
}

// parseAge is time.ParseDuration with days.
func parseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
