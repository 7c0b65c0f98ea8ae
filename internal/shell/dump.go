package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

func dumpCommands() []*command {
	return []*command{
		{
			name: "dump", synopsis: "[--no-acl] [--file file] path", beyond: true,
			summary: "Write a subtree as lines of JSON",
			detail: "A node a line, parents first, with paths below the node: path, data (data64 when it is no UTF-8,\n" +
				"null when there is none), acl, and kind for ephemerals.",
			flags: []flag{
				{name: "no-acl", help: "leave out access lists", long: true},
				{name: "file", arg: "file", help: "write to a file, not to standard output", long: true},
			},
			min: 1, max: 1, run: runDump,
			examples: []string{"dump /app > app.jsonl                 # in bounded memory"},
		},
		{
			name: "load", synopsis: "[--replace] [--ephemerals] [--file file] path", beyond: true,
			summary: "Create a subtree from the lines of dump",
			flags: []flag{
				{name: "replace", help: "set the data and access list of nodes that are there", long: true},
				{name: "ephemerals", help: "create ephemeral nodes, too, as ordinary ones", long: true},
				{name: "file", arg: "file", help: "read from a file, not from standard input", long: true},
			},
			min: 1, max: 1, run: runLoad,
			examples: []string{"load /restored < app.jsonl"},
		},
	}
}

func runDump(ctx context.Context, in *invocation) error {
	root, err := in.path(0)
	if err != nil {
		return err
	}
	out, close := io.Writer(in.sh.out), func() error { return nil }
	if name := in.value("file"); name != "" {
		file, err := os.Create(name)
		if err != nil {
			return fmt.Errorf("write the dump: %w", err)
		}
		buffered := bufio.NewWriter(file)
		out, close = buffered, func() error { return cmpErr(buffered.Flush(), file.Close()) }
	}
	p := in.sh.progress("nodes dumped", !in.has("file"))
	defer p.done()
	err = fetchTree(ctx, in.session, root, !in.has("no-acl"), func(node *fetched) error {
		line := nodeJSON{Path: below(node.path, root, "/")}
		line.setData(node.data)
		if !in.has("no-acl") {
			line.ACL = aclTexts(node.acl)
		}
		if node.isEphemeral() {
			line.Kind = "ephemeral"
		}
		p.add(1)
		_, err := fmt.Fprintln(out, jsonLine(line))
		return err
	})
	return cmpErr(err, close())
}

// maxLoadLine is the longest line that load reads, in bytes: data of 64 MiB, far
// above any server's limit, in base64.
const maxLoadLine = 96 << 20

func runLoad(ctx context.Context, in *invocation) error {
	root, err := in.path(0)
	if err != nil {
		return err
	}
	input := in.sh.streams.In
	if name := in.value("file"); name != "" {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("read the dump: %w", err)
		}
		defer file.Close()
		input = file
	}
	if err := makeParents(ctx, in.session, root, proto.OpenACL); err != nil {
		return err
	}
	c := &creator{session: in.session, replace: in.has("replace"), p: in.sh.progress("nodes loaded", false)}
	defer c.p.done()
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, maxLoadLine)
	for number := 1; lines.Scan(); number++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := in.loadLine(ctx, c, root, lines.Bytes()); err != nil {
			var server *client.ServerError
			if asServer(err, &server) {
				return err
			}
			return failf(err, "line %d: %s", number, Message(err))
		}
	}
	if err := cmpErr(lines.Err(), c.finish(ctx)); err != nil {
		return err
	}
	return in.answerJSON(map[string]any{"path": root, "nodes": c.count})
}

// loadLine creates the node of one line.
func (in *invocation) loadLine(ctx context.Context, c *creator, root string, text []byte) error {
	var line nodeJSON
	if err := json.Unmarshal(text, &line); err != nil {
		return failf(ErrInput, "no line of a dump: %v", err)
	}
	path := below(line.Path, "/", root)
	if err := checkPath(path, false); err != nil {
		return err
	}
	if path == "/" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return nil // every server has its own
	}
	if line.Kind == "ephemeral" && !in.has("ephemerals") {
		in.sh.note("%s was ephemeral and is left out", path)
		return nil
	}
	acls := proto.OpenACL
	if line.ACL != nil {
		var wrong error
		acls = nil
		for _, text := range line.ACL {
			acl, _ := parseEntry(text, func(format string, args ...any) { wrong = failf(ErrInput, format, args...) })
			acls = append(acls, acl)
		}
		if wrong != nil {
			return wrong
		}
	}
	return c.create(ctx, proto.CreateRequest{Path: path, Data: line.bytes(), ACL: acls, TTL: -1})
}
