package proto

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Membership is who belongs to an ensemble, as /zookeeper/config tells it.
type Membership struct {
	Members []Member // in the order of ids
	Version int64
}

// String is the text of /zookeeper/config: a line for each member, then the
// version in hexadecimal without a newline.
func (m Membership) String() string {
	return m.lines() + "version=" + strconv.FormatInt(m.Version, 16)
}

func (m Membership) lines() string {
	var b strings.Builder
	for _, one := range m.Members {
		b.WriteString(one.Key() + "=" + one.String() + "\n")
	}
	return b.String()
}

// SameMembers tells whether two memberships differ in no more than the version.
func (m Membership) SameMembers(other Membership) bool { return m.lines() == other.lines() }

// Get returns a member.
func (m Membership) Get(id int64) (Member, bool) {
	for _, one := range m.Members {
		if one.ID == id {
			return one, true
		}
	}
	return Member{}, false
}

// Voters counts the participants.
func (m Membership) Voters() int {
	n := 0
	for _, one := range m.Members {
		if !one.Observer {
			n++
		}
	}
	return n
}

// Quorum is how many participants are a majority.
func (m Membership) Quorum() int { return m.Voters()/2 + 1 }

// put adds a member in its place, or replaces the one with its id.
func (m *Membership) put(one Member) {
	i, found := slices.BinarySearchFunc(m.Members, one.ID, func(a Member, id int64) int { return cmp.Compare(a.ID, id) })
	if found {
		m.Members[i] = one
		return
	}
	m.Members = slices.Insert(m.Members, i, one)
}

func (m *Membership) remove(id int64) {
	m.Members = slices.DeleteFunc(m.Members, func(one Member) bool { return one.ID == id })
}

// ParseMembership reads the text of /zookeeper/config.
func ParseMembership(text string) (Membership, error) {
	var m Membership
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		var err error
		if number, ok := strings.CutPrefix(key, "server."); ok {
			err = m.parseServer(number, value, true)
		} else if key == "version" {
			m.Version, err = strconv.ParseInt(value, 16, 64)
		}
		if err != nil {
			return m, fmt.Errorf("%w: %q", ErrMember, line)
		}
	}
	return m, m.bound()
}

// memberIDMax is the largest number of a server: it is the highest byte of the
// ids of its sessions.
const memberIDMax = 255

// bound is ErrMemberBeyond where a number is too large, or below 0.
func (m Membership) bound() error {
	for _, one := range m.Members {
		if one.ID < 0 || one.ID > memberIDMax {
			return &memberError{ErrMemberBeyond, fmt.Sprintf("server %d: a server's number is 0 to %d", one.ID, memberIDMax)}
		}
	}
	return nil
}

func (m *Membership) parseServer(number, value string, multiAddress bool) error {
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return &memberError{ErrMemberRange, strconv.Quote(number) + " is not the number of a server"}
	}
	one, err := ParseMember(id, value, multiAddress)
	if err != nil {
		return err
	}
	m.put(one)
	return nil
}

// Replace reads the newMembers of a reconfig, server lines that newlines or
// commas separate, and makes them the members. With multiAddress they may have
// several addresses. With ErrMemberBeyond the members are returned too.
func (m Membership) Replace(newMembers string, multiAddress bool) (Membership, error) {
	next := Membership{Version: m.Version}
	grouped := false
	for _, line := range strings.FieldsFunc(newMembers, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		line = trimJava(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue // as in a properties file
		}
		key, value := splitProperty(line)
		switch {
		case strings.HasPrefix(key, "server."):
			if err := next.parseServer(key[len("server."):], value, multiAddress); err != nil {
				return m, err
			}
		case strings.HasPrefix(key, "group"), strings.HasPrefix(key, "weight"):
			grouped = true
		case key == "version":
			if _, err := strconv.ParseInt(value, 16, 64); err != nil {
				return m, &memberError{ErrMemberRange, "the version is no hexadecimal number"}
			}
		default:
			return m, badMember("%q is no server line", key)
		}
	}
	if grouped {
		return next, &memberError{ErrMemberBeyond, "groups and weights are not supported"}
	}
	return next, next.bound()
}

// splitProperty takes a line apart at the first equals sign, colon or blank, as
// a Java properties file is read; blanks around the separator do not count.
func splitProperty(line string) (key, value string) {
	i := strings.IndexAny(line, "=: \t\f")
	if i < 0 {
		return line, ""
	}
	key, value = line[:i], strings.TrimLeft(line[i:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = value[1:]
	}
	return key, trimJava(value)
}

// Change reads the joining and leaving of a reconfig: server.N=… texts and
// numbers, each list separated by commas. Who joins and is there already gets
// a new text. With multiAddress they may have several addresses. With
// ErrMemberBeyond the members are returned too.
func (m Membership) Change(joining, leaving string, multiAddress bool) (Membership, error) {
	next := Membership{Version: m.Version, Members: slices.Clone(m.Members)}
	for _, text := range listed(leaving) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return m, &memberError{ErrMemberRange, strconv.Quote(text) + " is not the number of a server"}
		}
		next.remove(id)
	}
	for _, text := range listed(joining) {
		parts := listedBy(text, "=")
		if len(parts) != 2 {
			return m, badMember("%q is not server.N=…", text)
		}
		number := parts[0][strings.LastIndexByte(parts[0], '.')+1:]
		var one Membership
		if err := one.parseServer(number, parts[1], multiAddress); err != nil {
			return m, err
		}
		joiner := one.Members[0]
		if joiner.ClientPort < 0 {
			return m, badMember("server %d has no client port", joiner.ID)
		}
		for _, other := range next.Members {
			if other.ID != joiner.ID && joiner.conflicts(other) {
				return m, badMember("server %d has an address of server %d", joiner.ID, other.ID)
			}
		}
		next.put(joiner)
	}
	return next, next.bound()
}

func listed(text string) []string { return listedBy(text, ",") }

// listedBy splits, trims, and leaves out what is empty.
func listedBy(text, separator string) []string {
	if text == NullString {
		return nil
	}
	var out []string
	for _, part := range strings.Split(text, separator) {
		if part = trimJava(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// endpoints are the member's addresses that mean one place everywhere: not a
// wildcard and not loopback.
func (m Member) endpoints() []string {
	var out []string
	add := func(host string, port int) {
		ip, err := netip.ParseAddr(host)
		if err == nil && (ip.IsUnspecified() || ip.IsLoopback()) || strings.EqualFold(host, "localhost") {
			return
		}
		out = append(out, fmt.Sprintf("%s %d", strings.ToLower(host), port))
	}
	for _, a := range m.Addresses {
		add(a.Host, a.QuorumPort)
		add(a.Host, a.ElectionPort)
	}
	if m.ClientPort >= 0 {
		add(m.ClientHost, m.ClientPort)
	}
	return out
}

func (m Member) conflicts(other Member) bool {
	theirs := other.endpoints()
	return slices.ContainsFunc(m.endpoints(), func(e string) bool { return slices.Contains(theirs, e) })
}
