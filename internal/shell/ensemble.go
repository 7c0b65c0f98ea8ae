package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

func ensembleCommands() []*command {
	stat := flag{name: "s", help: "print the stat as well"}
	return []*command{
		{
			name: "config", synopsis: "[-c] [-w] [-s]", summary: "Print the configuration of the ensemble",
			flags: []flag{stat, {name: "w", help: "watch it"}, {name: "c", help: "as a connect string for clients"}},
			max:   -1, run: runConfig,
			examples: []string{"config -c                             # version and host:port,host:port"},
		},
		{
			name: "reconfig",
			synopsis: "[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | " +
				"[-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]",
			summary: "Change the members of the ensemble",
			flags: []flag{
				stat,
				{name: "v", arg: "version", help: "only if the configuration has this version, in hexadecimal"},
				{name: "file", arg: "path", help: "the new members, as lines of a configuration file"},
				{name: "members", arg: "list", help: "the new members, separated by commas"},
				{name: "add", arg: "list", help: "members to add or change"},
				{name: "remove", arg: "ids", help: "members to remove, by number"},
			},
			max: -1, run: runReconfig,
			examples: []string{
				"reconfig -add server.4=h4:2888:3888;2181",
				"reconfig -remove 2,3                  # both in one step",
			},
		},
		{
			name: "version", summary: "Print the version of this shell", run: runVersion, offline: true,
			examples: []string{"version                               # of the shell, not of the server"},
		},
	}
}

func runConfig(ctx context.Context, in *invocation) error {
	data, stat, err := in.session.Config(ctx, in.has("w"))
	if err != nil {
		return err
	}
	text := string(data)
	if data == nil {
		text = "null"
	}
	parsed := parseMembers(text)
	shown := text
	if in.has("c") {
		shown = parsed.Version + " " + strings.Join(parsed.Clients, ",")
	}
	value := struct {
		members
		Config string    `json:"config"`
		Stat   *statJSON `json:"stat"`
	}{parsed, text, statValue(&stat)}
	return in.answer(value, func(w io.Writer) {
		fmt.Fprintln(w, shown)
		if in.has("s") {
			printStat(w, &stat)
		}
	})
}

// members is what the text of a configuration says.
type members struct {
	Version string            `json:"version"`
	Servers map[string]string `json:"servers"`
	Clients []string          `json:"clients"` // where clients connect, in the order of the text
}

var serverLine = regexp.MustCompile(`^server\.(\d+)=(.*)$`)

// parseMembers reads the node /zookeeper/config.
func parseMembers(text string) members {
	m := members{Servers: map[string]string{}, Clients: []string{}}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if version, ok := strings.CutPrefix(line, "version="); ok {
			m.Version = version
		}
		match := serverLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		m.Servers[match[1]] = match[2]
		peer, client, ok := strings.Cut(match[2], ";")
		if !ok {
			continue
		}
		if !strings.Contains(client, ":") {
			client = strings.SplitN(peer, ":", 2)[0] + ":" + client
		}
		m.Clients = append(m.Clients, client)
	}
	return m
}

func runReconfig(ctx context.Context, in *invocation) error {
	request, err := in.reconfigRequest()
	if err != nil {
		return err
	}
	data, stat, err := in.session.Reconfig(ctx, request)
	if err != nil {
		return err
	}
	value := struct {
		members
		Config string    `json:"config"`
		Stat   *statJSON `json:"stat"`
	}{parseMembers(string(data)), string(data), statValue(&stat)}
	return in.answer(value, func(w io.Writer) {
		fmt.Fprintf(w, "Committed new configuration:\n%s\n", data)
		if in.has("s") {
			printStat(w, &stat)
		}
	})
}

func (in *invocation) reconfigRequest() (proto.ReconfigRequest, error) {
	var none proto.ReconfigRequest
	whole, steps := in.has("file") || in.has("members"), in.has("add") || in.has("remove")
	switch {
	case !whole && !steps:
		return none, failf(ErrUsage, "%s", in.command.usage())
	case whole && steps:
		return none, failf(ErrUsage, "Can't use -file or -members together with -add or -remove (mixing incremental"+
			" and non-incremental modes is not allowed)")
	case in.has("file") && in.has("members"):
		return none, failf(ErrUsage, "Can't use -file and -members together (conflicting non-incremental modes)")
	}
	list := func(name string) string {
		if !in.has(name) {
			return proto.NullString
		}
		return strings.ToLower(in.value(name))
	}
	request := proto.ReconfigRequest{
		Joining: list("add"), Leaving: list("remove"), NewMembers: list("members"), CurConfigID: -1,
	}
	if in.has("v") {
		id, err := strconv.ParseInt(in.value("v"), 16, 64)
		if err != nil {
			return none, failf(ErrUsage, "-v must be followed by a long (configuration version)")
		}
		request.CurConfigID = id
	}
	if in.has("file") {
		text, err := os.ReadFile(in.value("file"))
		if err != nil {
			return none, failf(ErrUsage, "Error processing %s: %v", in.value("file"), err)
		}
		request.NewMembers = memberLines(string(text))
		if request.NewMembers == "" {
			return none, failf(ErrUsage, "Error processing %s: it names no server", in.value("file"))
		}
	}
	return request, nil
}

// memberLines takes the lines about members out of a configuration file; the
// server judges them.
func memberLines(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		known := []string{"server.", "group.", "weight."}
		if slices.ContainsFunc(known, func(key string) bool { return strings.HasPrefix(line, key) }) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func runVersion(_ context.Context, in *invocation) error {
	return in.say(map[string]string{"version": in.sh.config.Version}, "ZooKeeper CLI version: zooraft %s", in.sh.config.Version)
}
