package config

import "strings"

// SplitDefines takes the -Dname=value arguments, which Java programs are
// started with, out of a command line, because a flag parser would read -D as a
// flag of one letter. What follows "--" is left alone.
func SplitDefines(args []string) (defines, rest []string) {
	for i, arg := range args {
		if arg == "--" {
			return defines, append(rest, args[i:]...)
		}
		if define, ok := strings.CutPrefix(arg, "-D"); ok && define != "" {
			defines = append(defines, define)
			continue
		}
		rest = append(rest, arg)
	}
	return defines, rest
}

// environmentDefines returns what Apache's start scripts turn into -D
// arguments, in their order: a later one of the same name wins. The scripts do
// not quote these variables, so the shell splits them at blanks.
func environmentDefines(environ []string) []setting {
	values := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	var defines []setting
	if values["ZOO_DATADIR_AUTOCREATE_DISABLE"] != "" {
		defines = append(defines, setting{
			name: "zookeeper.datadir.autocreate", value: "false", origin: "ZOO_DATADIR_AUTOCREATE_DISABLE",
		})
	}
	for _, variable := range []string{"SERVER_JVMFLAGS", "JVMFLAGS"} {
		for _, flag := range strings.Fields(values[variable]) {
			if define, ok := strings.CutPrefix(flag, "-D"); ok && define != "" {
				defines = append(defines, parseDefine(define, variable))
			}
		}
	}
	return defines
}

// parseDefine splits name=value; without an equals sign the value is empty, as
// in Java.
func parseDefine(define, origin string) setting {
	name, value, _ := strings.Cut(define, "=")
	if origin == "" {
		origin = "-D" + name
	}
	return setting{name: name, value: value, origin: origin}
}
