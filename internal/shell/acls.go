package shell

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

func aclCommands() []*command {
	stat := flag{name: "s", help: "print the stat as well"}
	return []*command{
		{
			name: "getAcl", synopsis: "[-s] path", summary: "Print the access list of a node",
			flags: []flag{stat}, min: 1, max: -1, run: runGetACL,
			examples: []string{"getAcl --json /app                    # entries in the form that setAcl takes"},
		},
		{
			name: "setAcl", synopsis: "[-s] [-v version] [-R] path acl", summary: "Set the access list of a node",
			flags: []flag{
				stat,
				{name: "v", arg: "version", help: "only if the access list has this version"},
				{name: "R", help: "on every node below it, too"},
			},
			min: 2, max: -1, run: runSetACL,
			examples: []string{
				"setAcl /app world:anyone:r            # scheme:id:permissions, of the letters cdrwa",
				"setAcl /app auth::cdrwa               # whoever this session has authenticated as",
			},
		},
		{
			name: "addauth", synopsis: "scheme auth", summary: "Take on an identity",
			min: 1, max: -1, run: runAddAuth,
			detail:   "With the scheme digest and a user without a password, the password is asked for.",
			examples: []string{"addauth digest ann                    # asks for the password"},
		},
		{
			name: "whoami", summary: "Print the identities of this session", max: -1, run: runWhoAmI,
			examples: []string{"whoami                                # ip: 127.0.0.1 and those of addauth"},
		},
		{
			name: "digest", synopsis: "user", beyond: true, offline: true,
			summary: "Ask for a password and print the digest id for an access list",
			detail:  "The password is never a word of the command, where other users and the history could read it.\nWithout a terminal it is the first line of standard input.",
			min:     1, max: 1, run: runDigest,
			examples: []string{"digest ann                            # prints ann:…, for digest:ann:…:cdrwa"},
		},
		{
			name: "addAcl", synopsis: "path acl", beyond: true, min: 2, max: 2, run: runAddACL,
			summary:  "Add entries to the access list of a node, or change those of the same identity",
			examples: []string{"addAcl /app world:anyone:r            # keeps the other entries"},
		},
		{
			name: "removeAcl", synopsis: "path scheme:id", beyond: true, min: 2, max: 2, run: runRemoveACL,
			summary:  "Take an identity out of the access list of a node",
			examples: []string{"removeAcl /app world:anyone           # keeps the other entries"},
		},
	}
}

func runGetACL(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	acls, stat, err := in.session.ACL(ctx, path)
	if err != nil {
		return err
	}
	value := map[string]any{"path": path, "acl": aclTexts(acls), "stat": statValue(&stat)}
	return in.answer(value, func(w io.Writer) {
		for _, acl := range acls {
			fmt.Fprintf(w, "'%s,'%s\n: %s\n", acl.ID.Scheme, acl.ID.ID, permText(acl.Perms))
		}
		if in.has("s") {
			printStat(w, &stat)
		}
	})
}

func runSetACL(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	acls := parseACL(in.arg(1), in.sh.note)
	if len(acls) == 0 {
		return emptyACL(proto.OpSetACL)
	}
	version, err := in.version()
	if err != nil {
		return err
	}
	if in.has("R") {
		return in.setACLs(ctx, path, acls, version)
	}
	stat, err := in.session.SetACL(ctx, path, acls, version)
	if err != nil {
		return err
	}
	return in.answerACL(&stat)
}

// emptyACL is what ZooKeeper's clients say without asking the server.
func emptyACL(op proto.OpCode) error { return &client.ServerError{Op: op, Code: proto.ErrInvalidACL} }

func (in *invocation) answerACL(stat *proto.Stat) error {
	return in.answer(statValue(stat), func(w io.Writer) {
		if in.has("s") {
			printStat(w, stat)
		}
	})
}

// setACLs sets the access list of a whole subtree. It goes on after a node that
// refuses, and fails at the end.
func (in *invocation) setACLs(ctx context.Context, root string, acls []proto.ACL, version int32) error {
	p := in.sh.progress("access lists set", false)
	defer p.done()
	var failed error
	count := 0
	err := walk(ctx, in.session, root, visitor{leave: func(node *walked) error {
		if _, err := in.session.SetACL(ctx, node.path, acls, version); err != nil {
			if client.Code(err) == proto.ErrConnectionLoss {
				return err
			}
			in.sh.note("%s", Message(err))
			failed = err
			return nil
		}
		count++
		p.add(1)
		return nil
	}})
	if err != nil || failed != nil {
		return cmpErr(err, failed)
	}
	return in.answerJSON(map[string]any{"path": root, "nodes": count})
}

// cmpErr returns the first error there is.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func runAddAuth(ctx context.Context, in *invocation) error {
	scheme := in.arg(0)
	var auth []byte
	if len(in.args) > 1 {
		auth = []byte(in.arg(1))
	}
	if in.sh.streams.ReadPassword != nil && scheme == "digest" && len(auth) > 0 && !strings.Contains(string(auth), ":") {
		password, err := in.sh.password("Password of " + string(auth) + ": ")
		if err != nil {
			return err
		}
		auth = append(append(auth, ':'), password...)
	}
	if err := in.session.AddAuth(ctx, scheme, auth); err != nil {
		return err
	}
	return in.answerJSON(map[string]string{"added": scheme})
}

// password asks at the terminal, or takes a line of standard input.
func (sh *Shell) password(prompt string) (string, error) {
	if sh.streams.ReadPassword != nil {
		return sh.streams.ReadPassword(prompt)
	}
	var line []byte
	one := make([]byte, 1)
	for {
		n, err := sh.streams.In.Read(one)
		if n == 1 && one[0] != '\n' {
			line = append(line, one[0])
			continue
		}
		if n == 1 || err != nil {
			break
		}
	}
	if len(line) == 0 {
		return "", failf(ErrInput, "no password given")
	}
	return strings.TrimSuffix(string(line), "\r"), nil
}

func runWhoAmI(ctx context.Context, in *invocation) error {
	ids, err := in.session.WhoAmI(ctx)
	if err != nil {
		return err
	}
	type identity struct {
		Scheme string `json:"scheme"`
		User   string `json:"user"`
	}
	value := []identity{}
	for _, id := range ids {
		value = append(value, identity{id.Scheme, id.ID})
	}
	return in.answer(map[string]any{"identities": value}, func(w io.Writer) {
		fmt.Fprintln(w, "Auth scheme: User")
		for _, id := range ids {
			fmt.Fprintf(w, "%s: %s\n", id.Scheme, id.ID)
		}
	})
}

func runDigest(_ context.Context, in *invocation) error {
	user := in.arg(0)
	if strings.Contains(user, ":") {
		return failf(ErrUsage, "the user has no colon; the password is asked for, never a word of the command")
	}
	password, err := in.sh.password("Password of " + user + ": ")
	if err != nil {
		return err
	}
	if in.sh.streams.ReadPassword != nil {
		again, err := in.sh.streams.ReadPassword("Once more: ")
		if err != nil {
			return err
		}
		if again != password {
			return failf(ErrInput, "the passwords differ")
		}
	}
	sum := sha1.Sum([]byte(user + ":" + password))
	id := user + ":" + base64.StdEncoding.EncodeToString(sum[:])
	return in.say(map[string]string{"scheme": "digest", "id": id}, "%s", id)
}

func runAddACL(ctx context.Context, in *invocation) error {
	more := parseACL(in.arg(1), in.sh.note)
	if len(more) == 0 {
		return failf(ErrUsage, "%s", in.command.usage())
	}
	return in.changeACL(ctx, func(acls []proto.ACL) []proto.ACL {
		for _, acl := range more {
			at := slices.IndexFunc(acls, func(a proto.ACL) bool { return a.ID == acl.ID })
			if at < 0 {
				acls = append(acls, acl)
			} else {
				acls[at] = acl
			}
		}
		return acls
	})
}

func runRemoveACL(ctx context.Context, in *invocation) error {
	scheme, id, ok := strings.Cut(in.arg(1), ":")
	if !ok {
		return failf(ErrUsage, "%s", in.command.usage())
	}
	return in.changeACL(ctx, func(acls []proto.ACL) []proto.ACL {
		return slices.DeleteFunc(acls, func(a proto.ACL) bool { return a.ID == proto.ID{Scheme: scheme, ID: id} })
	})
}

// changeACL reads an access list, changes it and writes it back with the
// version that was read.
func (in *invocation) changeACL(ctx context.Context, change func([]proto.ACL) []proto.ACL) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	acls, stat, err := in.session.ACL(ctx, path)
	if err != nil {
		return err
	}
	changed := change(slices.Clone(acls))
	if slices.Equal(changed, acls) {
		return in.answerACL(&stat)
	}
	if len(changed) == 0 {
		return failf(ErrInput, "the last entry stays: a node without entries is closed to everybody")
	}
	if stat, err = in.session.SetACL(ctx, path, changed, stat.AVersion); err != nil {
		return err
	}
	return in.answerACL(&stat)
}
