package proto

import "strings"

// Paths that every server has.
const (
	PathRoot      = "/"
	PathZooKeeper = "/zookeeper"
	PathQuota     = "/zookeeper/quota"
	PathConfig    = "/zookeeper/config"
)

// ValidPath tells whether ZooKeeper's writes accept the path: it starts with a
// slash, has no empty, "." or ".." segment, no slash at the end unless it is
// the root, and no character that ZooKeeper bans (control characters,
// surrogates and hence everything beyond the basic plane, private use,
// specials).
func ValidPath(path string) bool {
	if path == PathRoot {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	start := 1
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if seg := path[start:i]; seg == "" || seg == "." || seg == ".." {
			return false
		}
		start = i + 1
	}
	for _, r := range path {
		if bannedRune(r) {
			return false
		}
	}
	return true
}

func bannedRune(r rune) bool {
	switch {
	case r >= 0x20 && r < 0x7f:
		return false
	case r <= 0x1f, r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return true
	}
	return false
}

// SplitPath returns the parent and the last segment; the parent of a
// top-level node is "/". The root and a path without a slash have no parent.
func SplitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || len(path) == 1 {
		return "", "", false
	}
	if i == 0 {
		return PathRoot, path[1:], true
	}
	return path[:i], path[i+1:], true
}
