package shell

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// dataFlags are how create and set take data that is no word.
var dataFlags = []flag{
	{name: "file", arg: "file", help: "take the data from a file, byte by byte; - is standard input", long: true},
}

func nodeCommands() []*command {
	return []*command{
		{
			name: "create", synopsis: "[-s] [-e] [-c] [-t ttl] path [data] [acl]",
			summary: "Create a node and print its path",
			flags: append([]flag{
				{name: "e", help: "ephemeral: gone with the session"},
				{name: "s", help: "sequential: a number is added to the name"},
				{name: "c", help: "container: gone after its last child"},
				{name: "t", arg: "ttl", help: "gone when unchanged for this many milliseconds and without children"},
				{name: "parents", help: "create the missing nodes above it, too", long: true},
			}, dataFlags...),
			min: 1, max: -1, run: runCreate,
			examples: []string{
				"create /app \"some data\"               # a node with data",
				"create -s /app/job- x                 # prints Created /app/job-0000000000",
				"create --file cert.der /app/cert      # binary data from a file",
				"create /app/x data world:anyone:r     # with an access list",
			},
		},
		{
			name: "set", synopsis: "path data [-s] [-v version] [-b]",
			summary: "Set the data of a node",
			flags: append([]flag{
				{name: "s", help: "Print znode stats additionally"},
				{name: "v", arg: "version", help: "Set with an expected version"},
				{name: "b", help: "Supply data in base64 format"},
			}, dataFlags...),
			min: 1, max: -1, run: runSet, usageFlags: true,
			examples: []string{
				"set /app new                          # whatever the version",
				"set -v 3 /app new                     # exit code 6 unless the version is 3",
				"set /app --file - < cert.der          # binary data from standard input",
			},
		},
		{
			name: "get", synopsis: "[-s] [-w] [-b] [-x] path",
			summary: "Print the data of a node",
			flags: []flag{
				{name: "s", help: "Print znode stats additionally"},
				{name: "w", help: "Watch for changes on the znode"},
				{name: "b", help: "Output data in base64 format"},
				{name: "x", help: "Output data in hexdump format"},
				{name: "raw", help: "print the bytes alone, without an end of line", long: true},
				{name: "file", arg: "file", help: "write the bytes to a file and print nothing", long: true},
			},
			min: 1, max: -1, run: runGet, usageFlags: true, exclusive: []string{"b", "x", "raw", "file"},
			examples: []string{
				"get -s /app                           # data and stat",
				"get --raw /app | sha256sum            # the bytes alone",
				"get --file cert.der /app/cert         # binary data to a file",
			},
		},
		{
			name: "stat", synopsis: "[-w] path", summary: "Print the stat of a node",
			flags: []flag{{name: "w", help: "watch the node, also one that does not exist"}},
			min:   1, max: -1, run: runStat,
			examples: []string{"stat /app                             # exit code 4 if it does not exist"},
		},
		{
			name: "sync", synopsis: "path", summary: "Wait until the server has caught up with the leader",
			min: 1, max: -1, run: runSync,
			examples: []string{"sync /                                # then get reads what was written anywhere before"},
		},
	}
}

// warnOld says that a form of a command is old, as zkCli does.
func (in *invocation) warnOld(old, now string) {
	in.sh.note("'%s' has been deprecated. Please use '%s' instead.", old, now)
}

// data takes the data of create and set: from --file, or the argument at.
func (in *invocation) data(at int) (data []byte, given bool, err error) {
	if !in.has("file") {
		if at < len(in.args) {
			return []byte(in.args[at]), true, nil
		}
		return nil, false, nil
	}
	name := in.value("file")
	if name == "-" {
		data, err = io.ReadAll(in.sh.streams.In)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the data: %w", err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, true, nil
}

func runCreate(ctx context.Context, in *invocation) error {
	request, err := in.createRequest()
	if err != nil {
		return err
	}
	if in.has("parents") {
		if err := makeParents(ctx, in.session, request.Path, request.ACL); err != nil {
			return err
		}
	}
	if len(request.ACL) == 0 {
		return emptyACL(proto.OpCreate)
	}
	created, err := in.session.Create(ctx, request)
	if client.Code(err) == proto.ErrInvalidACL { // zkCli says it twice
		return &failure{text: "KeeperErrorCode = InvalidACL for " + request.Path + "\n" + Message(err), cause: err}
	}
	if err != nil {
		return err
	}
	return in.say(map[string]string{"created": created}, "Created %s", created)
}

// createRequest reads the words of create.
func (in *invocation) createRequest() (proto.CreateRequest, error) {
	var none proto.CreateRequest
	e, s, c, t := in.has("e"), in.has("s"), in.has("c"), in.has("t")
	ttl, err := in.number("t", 0, 64)
	switch {
	case c && (e || s):
		return none, failf(ErrUsage, "-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
	case err != nil:
		return none, failf(ErrUsage, "-t argument must be a long value")
	case t && e:
		return none, failf(ErrUsage, "TTLs cannot be used with Ephemeral znodes")
	case t && c:
		return none, failf(ErrUsage, "TTLs cannot be used with Container znodes")
	case t && (ttl <= 0 || ttl > proto.MaxTTLMillis):
		return none, failf(ErrUsage, "ttl must be positive and cannot be larger than: %d", proto.MaxTTLMillis)
	}
	request := proto.CreateRequest{Path: in.arg(0), ACL: proto.OpenACL, Flags: createFlags(e, s, c, t), TTL: -1}
	if t {
		request.TTL = ttl
	}
	if err := checkPath(request.Path, s); err != nil {
		return none, err
	}
	data, given, err := in.data(1)
	if err != nil {
		return none, err
	}
	request.Data = data
	aclAt := 2
	if in.has("file") {
		aclAt = 1
	}
	if given && aclAt < len(in.args) {
		request.ACL = parseACL(in.args[aclAt], in.sh.note)
	}
	return request, nil
}

func createFlags(ephemeral, sequential, container, ttl bool) int32 {
	switch {
	case ephemeral && sequential:
		return proto.CreateEphemeralSequential
	case ephemeral:
		return proto.CreateEphemeral
	case container:
		return proto.CreateContainer
	case sequential && ttl:
		return proto.CreatePersistentSequentialTTL
	case sequential:
		return proto.CreatePersistentSequential
	case ttl:
		return proto.CreatePersistentTTL
	}
	return proto.CreatePersistent
}

func runSet(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	data, given, err := in.data(1)
	if err != nil {
		return err
	}
	if !given {
		return failf(ErrUsage, "%s", in.command.usage())
	}
	if in.has("b") {
		if data, err = base64.StdEncoding.DecodeString(string(data)); err != nil {
			return failf(ErrInput, "-b needs base64: %v", err)
		}
	}
	version, err := in.version()
	if err != nil {
		return err
	}
	stat, err := in.session.Set(ctx, path, data, version)
	if err != nil {
		return err
	}
	return in.answer(statValue(&stat), func(w io.Writer) {
		if in.has("s") {
			printStat(w, &stat)
		}
	})
}

func runGet(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	watch := in.has("w")
	if len(in.args) > 1 {
		in.warnOld("get path [watch]", "get [-s] [-w] path")
		watch = true
	}
	data, stat, err := in.session.Get(ctx, path, watch)
	if err != nil {
		return err
	}
	if in.has("file") {
		if err := os.WriteFile(in.value("file"), data, 0o644); err != nil {
			return fmt.Errorf("write the data: %w", err)
		}
		return nil
	}
	if in.has("raw") {
		in.sh.outMu.Lock()
		defer in.sh.outMu.Unlock()
		_, err := in.sh.out.Write(data)
		return err
	}
	value := nodeJSON{Path: path, Stat: statValue(&stat)}
	value.setData(data)
	return in.answer(value, func(w io.Writer) {
		fmt.Fprintln(w, in.format(data))
		if in.has("s") {
			printStat(w, &stat)
		}
	})
}

// format shows data as the flags of get say; null is shown as the word.
func (in *invocation) format(data []byte) string {
	if data == nil {
		data = []byte("null")
	}
	switch {
	case in.has("x"):
		return hexDump(data)
	case in.has("b"):
		return base64.StdEncoding.EncodeToString(data)
	}
	return string(data)
}

func runStat(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	watch := in.has("w")
	if len(in.args) > 1 {
		in.warnOld("stat path [watch]", "stat [-w] path")
		watch = true
	}
	stat, err := in.session.Exists(ctx, path, watch)
	if err != nil {
		return err
	}
	value := struct {
		Path string `json:"path"`
		*statJSON
	}{path, statValue(&stat)}
	return in.answer(value, func(w io.Writer) { printStat(w, &stat) })
}

func runSync(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	if err := in.session.Sync(ctx, path); err != nil {
		return err
	}
	return in.say(map[string]bool{"synced": true}, "Sync is OK")
}
