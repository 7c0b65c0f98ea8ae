package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

/*
With reconfigEnabled the servers keep the membership in a file of its own, as
Apache's do, so that a server which starts knows the newest one it has seen:

	zoo.cfg                     server lines replaced by dynamicConfigFile=…
	zoo.cfg.dynamic.100000000   the server lines; the version is in the name
	zoo.cfg.bak                 zoo.cfg as it was before the first rewriting

Unlike Apache's the rewritten zoo.cfg keeps its comments and the order of its
lines.
*/

// WriteMembership writes the membership into a dynamic file beside a zoo.cfg,
// and has zoo.cfg name it. Each file appears whole or not at all. Own is the
// server that the zoo.cfg belongs to: if its line has a client port, that of
// zoo.cfg goes.
func WriteMembership(file string, m proto.Membership, own int64) error {
	text, err := readText(file)
	if err != nil {
		return err
	}
	dynamic := file + ".dynamic." + strconv.FormatInt(m.Version, 16)
	lines := make([]string, 0, len(m.Members))
	for _, one := range m.Members {
		lines = append(lines, one.Key()+"="+one.String())
	}
	slices.Sort(lines) // as text, as Apache's are
	if err := replaceFile(dynamic, strings.Join(lines, "\n")); err != nil {
		return err
	}
	canonical, err := filepath.Abs(dynamic)
	if err == nil {
		canonical, err = filepath.EvalSymlinks(canonical)
	}
	if err != nil {
		return fmt.Errorf("config: %s: %w", dynamic, err)
	}
	me, member := m.Get(own)
	static, named, err := withoutMembers(text, member && me.ClientPort >= 0)
	if err != nil {
		return err
	}
	if !named {
		if err := replaceFile(file+".bak", string(text)); err != nil {
			return err
		}
	}
	return replaceFile(file, static+"dynamicConfigFile="+canonical+"\n")
}

// withoutMembers is the text of a zoo.cfg without what the dynamic file says;
// named tells that it names one already.
func withoutMembers(text []byte, withoutClientPort bool) (static string, named bool, err error) {
	starts := []int{0}
	for i, c := range text {
		if c == '\n' || c == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			starts = append(starts, i+1)
		}
	}
	var kept strings.Builder
	from := 0 // what is kept next begins here
	s := &scanner{text: text, line: 1}
	for {
		logical, line, ok := s.next()
		if !ok {
			break
		}
		key, _, err := splitProperty(logical)
		if err != nil {
			return "", false, &Error{Kind: ErrInvalid, Line: line, Reason: err.Error()}
		}
		named = named || strings.HasPrefix(key, "dynamicConfigFile")
		if goesToDynamicFile(key) || withoutClientPort && strings.HasPrefix(key, "clientPort") {
			kept.Write(text[from:starts[line-1]])
			from = s.pos
		}
	}
	kept.Write(text[from:])
	static = kept.String()
	if static != "" && !strings.HasSuffix(static, "\n") {
		static += "\n"
	}
	return static, named, nil
}

func goesToDynamicFile(key string) bool {
	for _, prefix := range []string{"server.", "group", "weight", "dynamicConfigFile", "peerType"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// replaceFile writes a file under another name, syncs it, and gives it its own.
// It keeps the mode of the one that was there; a new one gets 0644.
func replaceFile(path, text string) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	temp := path + ".tmp"
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("config: %w", err), os.Remove(temp))
	}
	return nil
}
