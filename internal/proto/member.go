package proto

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrMember is returned when the text of a member does not have ZooKeeper's
	// form. A reconfig is then answered with ErrBadArguments.
	ErrMember = errors.New("proto: no member of an ensemble")
	// ErrMemberRange is returned when a number in the text of a member is
	// outside its range. ZooKeeper's server fails on it outside its own checks,
	// so that a reconfig is answered with ErrMarshalling.
	ErrMemberRange = errors.New("proto: a number of a member is out of range")
	// ErrMemberBeyond is returned for members that ZooKeeper's server would take
	// and this one does not. A reconfig is answered with ErrBadArguments, but
	// only when ZooKeeper's own checks have passed.
	ErrMemberBeyond = errors.New("proto: members that only ZooKeeper can have")
)

// Member is one server of an ensemble: a server.N line.
type Member struct {
	// ID is N.
	ID int64
	// Addresses are where the other servers reach it; at least one. They are a
	// set, in the order in which ZooKeeper prints them: that of their hosts.
	Addresses []PeerAddress
	// Observer is false for a participant.
	Observer bool
	// ClientHost and ClientPort are the part behind the semicolon; ClientPort is
	// -1 when there is none, and ClientHost is 0.0.0.0 when only a port is given.
	ClientHost string
	ClientPort int
}

// PeerAddress is one host with its quorum and election port.
type PeerAddress struct {
	Host                     string
	QuorumPort, ElectionPort int
}

// QuorumAddress is where the other servers connect: host:quorumPort of each of
// the addresses, with a bar between.
func (m Member) QuorumAddress() string {
	all := make([]string, 0, len(m.Addresses))
	for _, a := range m.Addresses {
		all = append(all, fmt.Sprintf("%s:%d", bracket(a.Host), a.QuorumPort))
	}
	return strings.Join(all, "|")
}

// Ports are one port of each of the addresses, each port once.
func (m Member) Ports(of func(PeerAddress) int) (ports []int) {
	for _, a := range m.Addresses {
		if !slices.Contains(ports, of(a)) {
			ports = append(ports, of(a))
		}
	}
	return ports
}

// Key is the name of the member's line.
func (m Member) Key() string { return "server." + strconv.FormatInt(m.ID, 10) }

// String is the text that ZooKeeper prints for the member in /zookeeper/config.
func (m Member) String() string {
	var b strings.Builder
	for i, a := range m.Addresses {
		if i > 0 {
			b.WriteByte('|')
		}
		fmt.Fprintf(&b, "%s:%d:%d", bracket(a.Host), a.QuorumPort, a.ElectionPort)
	}
	if m.Observer {
		b.WriteString(":observer")
	} else {
		b.WriteString(":participant")
	}
	if m.ClientPort >= 0 {
		fmt.Fprintf(&b, ";%s:%d", bracket(m.ClientHost), m.ClientPort)
	}
	return b.String()
}

func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// ParseMember reads the right side of a server.N line:
// host:quorumPort:electionPort[:role][|more addresses][;[clientHost:]clientPort].
// More addresses are allowed only with multiAddress. The error says what is
// wrong; it is ErrMember or ErrMemberRange.
func ParseMember(id int64, text string, multiAddress bool) (Member, error) {
	m := Member{ID: id, ClientPort: -1}
	parts := splitJava(text, ";")
	if len(parts) == 0 || len(parts) > 2 {
		return m, wrongMember(text)
	}
	if len(parts) == 2 {
		if err := m.parseClient(parts[1]); err != nil {
			return m, err
		}
	}
	addresses := splitJava(parts[0], "|")
	if len(addresses) > 1 && !multiAddress {
		return m, badMember("several addresses need multiAddress.enabled=true")
	}
	role := ""
	for _, address := range addresses {
		next, err := m.parseAddress(address)
		if err != nil {
			return m, err
		}
		if next != "" && role != "" && next != role {
			return m, badMember("its addresses have different roles, %s and %s", role, next)
		}
		if next != "" {
			role = next
		}
	}
	if len(m.Addresses) == 0 {
		return m, wrongMember(text)
	}
	slices.SortFunc(m.Addresses, func(a, b PeerAddress) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.QuorumPort, b.QuorumPort), cmp.Compare(a.ElectionPort, b.ElectionPort))
	})
	m.Addresses = slices.Compact(m.Addresses)
	m.Observer = role == "observer"
	return m, nil
}

func (m *Member) parseClient(text string) error {
	parts, err := hostAndPort(trimJava(text))
	if err != nil {
		return err
	}
	if len(parts) == 0 || len(parts) > 2 {
		return wrongMember(text)
	}
	m.ClientHost = "0.0.0.0"
	if len(parts) == 2 {
		m.ClientHost = parts[0]
	}
	if !plainHost(m.ClientHost) {
		return wrongMember(text)
	}
	m.ClientPort, err = parsePort(parts[len(parts)-1])
	return err
}

// parseAddress adds one address and returns its role in lower case, or "".
func (m *Member) parseAddress(text string) (role string, err error) {
	parts, err := hostAndPort(trimJava(text))
	if err != nil {
		return "", err
	}
	if len(parts) < 3 || len(parts) > 4 {
		return "", wrongMember(text)
	}
	address := PeerAddress{Host: parts[0]}
	if !plainHost(address.Host) {
		return "", wrongMember(text)
	}
	if address.QuorumPort, err = parsePort(parts[1]); err != nil {
		return "", err
	}
	if address.ElectionPort, err = parsePort(parts[2]); err != nil {
		return "", err
	}
	if address.QuorumPort == address.ElectionPort {
		return "", badMember("quorum and election port must differ, both are %d", address.QuorumPort)
	}
	m.Addresses = append(m.Addresses, address)
	if len(parts) < 4 {
		return "", nil
	}
	role = strings.ToLower(trimJava(parts[3]))
	if role != "observer" && role != "participant" {
		return "", badMember("%q is neither participant nor observer", parts[3])
	}
	return role, nil
}

// memberError is one of the errors above with a sentence.
type memberError struct {
	kind   error
	reason string
}

// Error is the sentence.
func (e *memberError) Error() string { return e.reason }

// Unwrap returns the sentinel.
func (e *memberError) Unwrap() error { return e.kind }

func badMember(format string, args ...any) error {
	return &memberError{ErrMember, fmt.Sprintf(format, args...)}
}

func wrongMember(text string) error {
	return badMember("%q does not have the form host:port:port[:role][;[host:]port]", text)
}

func parsePort(text string) (int, error) {
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, badMember("%q is not a port from 0 to 65535", text)
	}
	if port < 0 || port > 65535 {
		return 0, &memberError{ErrMemberRange, strconv.Quote(text) + " is not a port from 0 to 65535"}
	}
	return int(port), nil
}

// hostAndPort splits at colons; a host in brackets keeps its own.
func hostAndPort(text string) ([]string, error) {
	inner, bracketed := strings.CutPrefix(text, "[")
	if !bracketed {
		return splitJava(text, ":"), nil
	}
	host, rest, closed := strings.Cut(inner, "]")
	if !closed {
		return nil, badMember("%q starts with [ but has no matching ]", text)
	}
	if rest == "" {
		return []string{host}, nil
	}
	return append([]string{host}, splitJava(rest[1:], ":")...), nil
}

// plainHost tells whether a host name cannot be taken for anything else in the
// text of a membership.
func plainHost(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || strings.ContainsRune("[]=,;|", r) })
}

// splitJava is Java's String.split: empty parts at the end do not count.
func splitJava(text, separator string) []string {
	parts := strings.Split(text, separator)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// trimJava is Java's String.trim.
func trimJava(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
}
