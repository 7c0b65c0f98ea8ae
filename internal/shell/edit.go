package shell

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

func editCommands() []*command {
	return []*command{
		{
			name: "edit", synopsis: "path", beyond: true, summary: "Edit the data of a node in $VISUAL or $EDITOR",
			detail: "It is written back only if it changed, and only with the version that was read: a change by others\n" +
				"meanwhile gives exit code 6, and the edited text stays in the file that is named. Data that did not end\n" +
				"with a newline do not get one from the editor.",
			min: 1, max: 1, run: runEdit,
			examples: []string{"edit /app/config"},
		},
	}
}

func runEdit(ctx context.Context, in *invocation) error {
	node, err := in.path(0)
	if err != nil {
		return err
	}
	data, stat, err := in.session.Get(ctx, node, false)
	if err != nil {
		return err
	}
	name, err := writeTemporary(path.Base(node), data)
	if err != nil {
		return err
	}
	edited, err := in.sh.edit(ctx, name)
	if err != nil {
		return failf(err, "%s; the text is in %s", Message(err), name)
	}
	if !bytes.HasSuffix(data, []byte{'\n'}) {
		edited = bytes.TrimSuffix(edited, []byte{'\n'}) // the editor's: most end the last line of every file
	}
	if bytes.Equal(edited, data) {
		os.Remove(name)
		return in.say(map[string]any{"path": node, "changed": false}, "unchanged")
	}
	if stat, err = in.session.Set(ctx, node, edited, stat.Version); err != nil {
		if sameCode(err, proto.ErrBadVersion) {
			return failf(err, "%s was changed by somebody else meanwhile; your text is in %s", node, name)
		}
		return failf(err, "%s; your text is in %s", Message(err), name)
	}
	os.Remove(name)
	return in.say(map[string]any{"path": node, "changed": true, "version": stat.Version}, "version %d", stat.Version)
}

// writeTemporary writes data into a file that only this user can read. Its name
// ends like the node's, so that an editor knows the kind of text.
func writeTemporary(base string, data []byte) (string, error) {
	if base == "/" {
		base = "root"
	}
	file, err := os.CreateTemp("", "zooraft-*-"+base)
	if err != nil {
		return "", fmt.Errorf("file for the editor: %w", err)
	}
	if _, err = file.Write(data); err == nil {
		err = file.Close()
	}
	if err != nil {
		return "", fmt.Errorf("file for the editor: %w", err)
	}
	return file.Name(), nil
}

// edit runs the editor on a file and returns what the file holds then. The
// editor may be a line with arguments, so a shell reads it.
func (sh *Shell) edit(ctx context.Context, name string) ([]byte, error) {
	editor := "vi"
	for _, variable := range []string{"VISUAL", "EDITOR"} {
		if text := strings.TrimSpace(sh.config.Env(variable)); text != "" {
			editor = text
			break
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", name)
	cmd.Stdout, cmd.Stderr = sh.streams.Out, sh.streams.Err
	if file, ok := sh.streams.In.(*os.File); ok { // else the lines to come are no editor's
		cmd.Stdin = file
	}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("editor %s: %w", editor, err)
	}
	edited, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the edited text: %w", err)
	}
	return edited, nil
}
