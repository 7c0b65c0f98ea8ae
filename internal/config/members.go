package config

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// readMyID reads dataDir/myid, which only a server started from a file has.
func (l *loader) readMyID() {
	if l.config.File == "" || l.config.Storage.DataDir == "" {
		return
	}
	path := filepath.Join(l.config.Storage.DataDir, "myid")
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.problems = append(l.problems, &Error{Kind: ErrDataDir, File: path, Reason: reason(err)})
		return
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return // Apache looks at regular files only
	}
	line := bufio.NewScanner(file)
	line.Scan()
	id, err := parseLong(trim(line.Text()))
	if err != nil {
		l.problems = append(l.problems, &Error{
			Kind: ErrInvalid, File: path, Line: 1, Reason: "server id " + strconv.Quote(line.Text()) + " is not a number",
		})
		return
	}
	l.config.Ensemble.MyID = id
}

// readMembers takes the server, group and weight lines from the file, or from
// the dynamic file that it names.
func (l *loader) readMembers() {
	var lines []setting
	for _, s := range l.parsed {
		if memberLine(s.name) {
			lines = append(lines, s)
		}
	}
	sort.Slice(lines, func(i, j int) bool { return lines[i].line < lines[j].line })
	if path := l.config.Ensemble.DynamicFile; path != "" {
		if len(lines) > 0 {
			l.fail(lines[0], errors.New("must be in the dynamic configuration file, because dynamicConfigFile names one"))
			return
		}
		lines = l.readDynamicFile(path)
	}
	for _, s := range lines {
		if err := l.config.Ensemble.takeLine(s.name, s.value); err != nil {
			l.fail(s, err)
		}
	}
	l.warnOfSharedAddresses(lines)
	l.takeClientPort()
}

// warnOfSharedAddresses names server lines with one and the same address for the
// other servers. Apache starts with them, and so do we: only one of the two can
// listen there, and the other one is never reached.
func (l *loader) warnOfSharedAddresses(lines []setting) {
	first := map[string]setting{}
	for _, s := range lines {
		kind, number, _ := strings.Cut(s.name, ".")
		id, err := parseLong(number)
		if kind != "server" || err != nil {
			continue
		}
		m, err := parseMember(id, s.value, l.config.Ensemble.MultiAddress)
		if err != nil {
			continue // takeLine has said so
		}
		for address := range strings.SplitSeq(strings.ToLower(m.QuorumAddress()), "|") {
			other, taken := first[address]
			if !taken {
				first[address] = s
			} else if other.name != s.name {
				l.warn(s, "has the address %s of %s (%s); only one of the two servers can be there", address, other.name, other.source())
			}
		}
	}
}

func memberLine(name string) bool {
	return strings.HasPrefix(name, "server.") || strings.HasPrefix(name, "group.") || strings.HasPrefix(name, "weight.")
}

// readDynamicFile returns its lines. Apache allows member lines only; the
// version is the hexadecimal end of the file's name.
func (l *loader) readDynamicFile(path string) []setting {
	at := l.sources["dynamicConfigFile"]
	text, err := readText(path)
	if err != nil {
		l.fail(at, errors.New(path+" "+reason(err)))
		return nil
	}
	properties, _, err := parseProperties(path, text)
	if err != nil {
		l.problems = append(l.problems, err)
		return nil
	}
	var lines []setting
	for _, p := range properties {
		s := setting{name: p.key, value: p.value, file: path, line: p.line}
		if !memberLine(p.key) {
			l.fail(s, errors.New("is not allowed in a dynamic configuration file"))
			continue
		}
		l.sources[s.name] = s
		lines = append(lines, s)
	}
	version, err := strconv.ParseInt(strings.TrimPrefix(filepath.Ext(path), "."), 16, 64)
	if err == nil {
		l.config.Ensemble.Version = version
	}
	return lines
}

// takeLine reads one server, group or weight line.
func (e *Ensemble) takeLine(name, value string) error {
	kind, number, _ := strings.Cut(name, ".")
	id, err := parseLong(number)
	if err != nil {
		return err
	}
	switch kind {
	case "server":
		if id < 0 || id > 255 {
			return invalid("", "a server's number is 0 to 255")
		}
		m, err := parseMember(id, value, e.MultiAddress)
		if err != nil {
			return err
		}
		e.add(m)
	case "group":
		var members []int64
		for _, part := range split(value, ":") {
			member, err := parseLong(part)
			if err != nil {
				return err
			}
			members = append(members, member)
		}
		if e.Groups == nil {
			e.Groups = map[int64][]int64{}
		}
		e.Groups[id] = members
	case "weight":
		weight, err := parseLong(value)
		if err != nil {
			return err
		}
		if e.Weights == nil {
			e.Weights = map[int64]int64{}
		}
		e.Weights[id] = weight
	}
	return nil
}

// takeClientPort lets the client port of this server's line count. As in Apache
// it must agree with clientPort when both are given, and its address wins.
func (l *loader) takeClientPort() {
	c := l.config
	own, ok := c.Ensemble.own()
	if !ok || own.ClientPort < 0 || l.options.Listen != "" {
		return
	}
	if c.Listen.Enabled {
		if c.Ensemble.MyID < 0 {
			return // Apache does not know its own line without a myid
		}
		anyHost := c.Listen.Host == "" || isUnspecified(c.Listen.Host)
		if own.ClientPort != c.Listen.Port || !anyHost && !l.sameHost(own.ClientHost, c.Listen.Host) {
			l.fail(l.sources["clientPort"], invalid("", "differs from the client address in %s, %s:%d",
				own.Key(), own.ClientHost, own.ClientPort))
			return
		}
	}
	c.Listen.Enabled, c.Listen.Host, c.Listen.Port = true, own.ClientHost, own.ClientPort
	at := l.sources[own.Key()]
	l.sources["clientPort"], l.sources["clientPortAddress"] = at, at
}

func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

func (l *loader) sameHost(a, b string) bool {
	if a == b {
		return true
	}
	of, errA := l.options.LookupHost(a)
	other, errB := l.options.LookupHost(b)
	return errA == nil && errB == nil && slices.ContainsFunc(of, func(ip string) bool { return slices.Contains(other, ip) })
}
