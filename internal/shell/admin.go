package shell

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/client"
)

// adminFlag names the local channel of one of our servers, which tells
// everything without a whitelist.
var adminFlag = flag{
	name: "admin", arg: "socket", long: true,
	help: "ask zooraft's local admin channel (dataDir/zooraft/admin.sock), which tells more than the words allowed to clients",
}

// source is where figures about a server come from.
type source struct {
	name string // for messages
	word func(ctx context.Context, word string) (string, error)
	// watches tells the watches of every kind; nil where only wchc tells some.
	watches func(ctx context.Context) ([]watchLine, error)
	// paths counts requests by path for a while; nil where nobody counts.
	paths func(ctx context.Context, length time.Duration) ([]pathLoad, error)
}

// pathLoad is one entry of the admin channel's answer to /paths/busy.
type pathLoad struct {
	Path   string `json:"path"`
	Reads  int64  `json:"reads"`
	Writes int64  `json:"writes"`
}

// watchLine is a line of the admin channel's answer to /watches.
type watchLine struct {
	Session string `json:"session"`
	sessionWatch
}

// sessionWatch is a watch of a session.
type sessionWatch struct {
	Path string `json:"path"`
	// Kind is data, children, persistent or recursive; the word wchc has only
	// the first.
	Kind string `json:"kind"`
}

// sources returns the admin channel, or every server of the connect string.
func (in *invocation) sources() ([]source, error) {
	if in.has("admin") {
		return []source{socketSource(in.value("admin"))}, nil
	}
	servers, _, err := client.ParseConnectString(in.sh.connect)
	if err != nil {
		return nil, failf(ErrUsage, "%v", err)
	}
	var all []source
	for _, server := range servers {
		all = append(all, source{name: server, word: func(ctx context.Context, word string) (string, error) {
			return fourLetters(ctx, server, in.sh.config.TLS, word)
		}})
	}
	return all, nil
}

// socketSource asks the local admin channel over HTTP.
func socketSource(socket string) source {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		},
	}
	get := func(ctx context.Context, path string) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://zooraft/"+path, nil)
		if err != nil {
			return "", err
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return "", fmt.Errorf("admin channel: %w", err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = failf(ErrNotTold, "%s: %s %s", socket, path, strings.TrimSpace(string(text)))
		}
		return string(text), err
	}
	return source{
		name: socket,
		word: func(ctx context.Context, word string) (string, error) { return get(ctx, "words/"+word) },
		watches: func(ctx context.Context) ([]watchLine, error) {
			text, err := get(ctx, "watches")
			var all []watchLine
			for lines := json.NewDecoder(strings.NewReader(text)); err == nil && lines.More(); {
				var line watchLine
				if err = lines.Decode(&line); err == nil {
					all = append(all, line)
				}
			}
			return all, err
		},
		paths: func(ctx context.Context, length time.Duration) ([]pathLoad, error) {
			text, err := get(ctx, "paths/busy?for="+length.String())
			var all []pathLoad
			if err == nil {
				err = json.Unmarshal([]byte(text), &all)
			}
			return all, err
		},
	}
}

// fourLetters sends a four-letter word to a server's client port. A word that
// the server does not allow is ErrNotTold.
func fourLetters(ctx context.Context, server string, config *tls.Config, word string) (string, error) {
	var socket net.Conn
	var err error
	if config == nil {
		var dialer net.Dialer
		socket, err = dialer.DialContext(ctx, "tcp", server)
	} else {
		dialer := tls.Dialer{Config: config}
		socket, err = dialer.DialContext(ctx, "tcp", server)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", client.ErrNoServer, err)
	}
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop()
	if _, err := io.WriteString(socket, word); err != nil {
		return "", fmt.Errorf("%s to %s: %w", word, server, err)
	}
	text, err := io.ReadAll(socket)
	switch {
	case len(text) == 0 && err != nil:
		return "", fmt.Errorf("%s to %s: %w", word, server, err)
	case strings.Contains(string(text), "not in the whitelist"):
		return "", failf(ErrNotTold, "%s does not tell %s: it needs 4lw.commands.whitelist=%s there, or for a zooraft --admin", server, word, word)
	case strings.Contains(string(text), "is not currently serving requests"):
		return "", failf(ErrNotTold, "%s is not serving", server)
	}
	return string(text), nil
}

// connection is a line of the word cons.
type connection struct {
	Address  string `json:"address"`
	Server   string `json:"server"`
	Session  string `json:"session,omitempty"`
	Received int64  `json:"received"`
	Queued   int64  `json:"queued"`
	Timeout  int64  `json:"timeoutMs,omitempty"`
	AvgMs    int64  `json:"avgLatencyMs"`
	MaxMs    int64  `json:"maxLatencyMs"`
	LastOp   string `json:"lastOp,omitempty"`
}

// parseConnections reads the answer to cons.
func parseConnections(server, text string) []connection {
	var all []connection
	for _, line := range strings.Split(text, "\n") {
		address, rest, ok := strings.Cut(strings.TrimSpace(line), "[")
		_, fields, ok2 := strings.Cut(rest, "](")
		if !ok || !ok2 {
			continue
		}
		c := connection{Address: strings.TrimPrefix(address, "/"), Server: server}
		for _, field := range strings.Split(strings.TrimSuffix(fields, ")"), ",") {
			key, value, _ := strings.Cut(field, "=")
			number, _ := strconv.ParseInt(value, 10, 64) // 0 for what is no number
			switch key {
			case "recved":
				c.Received = number
			case "queued":
				c.Queued = number
			case "sid":
				c.Session = value
			case "to":
				c.Timeout = number
			case "avglat":
				c.AvgMs = number
			case "maxlat":
				c.MaxMs = number
			case "lop":
				c.LastOp = value
			}
		}
		all = append(all, c)
	}
	return all
}

// parseGroups reads lists as wchc, wchp and dump print them: a head at the start
// of a line, with its members below, each after a tab. Heads lose a colon.
func parseGroups(text string) map[string][]string {
	groups := map[string][]string{}
	head := ""
	for _, line := range strings.Split(text, "\n") {
		member, indented := strings.CutPrefix(line, "\t")
		switch {
		case indented && head != "":
			groups[head] = append(groups[head], member)
		case !indented:
			head = strings.TrimSuffix(line, ":")
		}
	}
	return groups
}

// parseEphemerals reads the part of dump about ephemerals, by session.
func parseEphemerals(text string) map[string][]string {
	_, text, _ = strings.Cut(text, "ephemeral nodes dump:")
	text, _, _ = strings.Cut(text, "Connections dump:")
	return parseGroups(text)
}

// parseMonitor reads the answer to mntr; values that are no number are left out.
func parseMonitor(text string) map[string]float64 {
	values := map[string]float64{}
	for _, line := range strings.Split(text, "\n") {
		key, value, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			values[strings.TrimPrefix(key, "zk_")] = n
		}
	}
	return values
}

// told passes an answer on, notes what a server does not tell, and fails for
// everything else.
func (in *invocation) told(text string, err error, silent *bool) (string, error) {
	if errors.Is(err, ErrNotTold) {
		in.sh.note("%s", Message(err))
		*silent = true
		return "", nil
	}
	return text, err
}
