package admin

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// Channel is the local admin channel: HTTP on a Unix socket that only the
// server's user can open, and which therefore needs no whitelist.
//
//	GET /health        Health as JSON; 200 when ready, else 503
//	GET /health/live   the same; 200 when live, else 503
//	GET /words         the names of the words, as JSON
//	GET /words/NAME    the word's text (stmk takes ?mask=NUMBER)
//	GET /watches       the watches of every kind, a line of JSON each
//	GET /paths/busy?for=TIME   counts requests by path for so long (1s), and lists the 1000 busiest as JSON
//	GET /metrics.json  mntr's keys without zk_, as JSON
//	GET /ensemble      the members, as JSON
//	POST /ensemble/transfer?to=N   hand leadership over (to any without N)
//	POST /ensemble/remove?id=N     remove a dead member
type Channel struct {
	path     string
	listener net.Listener
	http     *http.Server
	done     chan struct{} // closed when the accept loop has ended
}

// channelTimeout bounds a request of the admin channel, in both directions.
// Source: our choice; a wchp of millions of watches takes seconds.
const channelTimeout = 60 * time.Second

// Open starts the admin channel in the server's own directory
// (dataDir/zooraft), which it makes if need be. It may be called before the
// data are loaded, so that the loading can be watched. A server whose channel
// cannot be opened should warn and run on.
func (a *Admin) Open(ownDir string) (*Channel, error) {
	path := SocketPath(ownDir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("admin: open channel: %w", err)
	}
	listener, err := listenSocket(path)
	if err != nil {
		return nil, fmt.Errorf("admin: open channel: %w", err)
	}
	c := &Channel{path: path, listener: listener, done: make(chan struct{})}
	c.http = &http.Server{
		Handler:        a.Handler(),
		ReadTimeout:    channelTimeout,
		WriteTimeout:   channelTimeout,
		MaxHeaderBytes: 16 << 10,
	}
	go func() {
		defer close(c.done)
		_ = c.http.Serve(listener)
	}()
	return c, nil
}

// Path is the socket's real path.
func (c *Channel) Path() string { return c.path }

// Close ends the channel, cuts requests under way, and removes the socket.
func (c *Channel) Close() error {
	err := c.http.Close()
	<-c.done
	if removed := os.Remove(c.path); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// Handler returns the channel's HTTP handler.
func (a *Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		h := a.server.Health()
		writeHealth(w, h, h.Ready)
	})
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) {
		h := a.server.Health()
		writeHealth(w, h, h.Live)
	})
	mux.HandleFunc("GET /words", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, wordNames()) })
	mux.HandleFunc("GET /words/{word}", a.serveWord)
	mux.HandleFunc("GET /metrics.json", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, a.monitorReport())
	})
	mux.HandleFunc("GET /watches", a.serveWatches)
	mux.HandleFunc("GET /paths/busy", a.serveBusyPaths)
	a.handleEnsemble(mux)
	return mux
}

// serveWatches lists the watches of every kind, which no word does, an object a
// line: there may be millions.
func (a *Admin) serveWatches(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	for _, watch := range a.server.Watches() {
		line := struct {
			Session string `json:"session"`
			Kind    string `json:"kind"`
			Path    string `json:"path"`
		}{watch.Session.String(), watch.Kind, watch.Path}
		if lines.Encode(line) != nil {
			return // who asked has gone
		}
	}
}

// Bounds of a count of requests by path.
const (
	busyPathsTimeMax = 30 * time.Second // half the channel's own timeout
	busyPathsMax     = 1000
)

// serveBusyPaths counts for a while. Nothing is counted while nobody asks.
func (a *Admin) serveBusyPaths(w http.ResponseWriter, r *http.Request) {
	length := time.Second
	if text := r.URL.Query().Get("for"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil || length <= 0 || length > busyPathsTimeMax {
			http.Error(w, fmt.Sprintf("?for= needs a time up to %v, as in 2s", busyPathsTimeMax), http.StatusBadRequest)
			return
		}
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	end := a.server.CountPaths()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	all := end()
	writeJSON(w, http.StatusOK, all[:min(busyPathsMax, len(all))])
}

func wordNames() []string {
	names := make([]string, 0, len(words))
	for name := range words {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (a *Admin) serveWord(w http.ResponseWriter, r *http.Request) {
	word, ok := words[r.PathValue("word")]
	if !ok {
		http.Error(w, "no such word; GET /words lists them", http.StatusNotFound)
		return
	}
	var arg []byte
	if word.argBytes > 0 {
		mask, err := strconv.ParseInt(r.URL.Query().Get("mask"), 0, 64)
		if err != nil {
			http.Error(w, "stmk needs ?mask=NUMBER", http.StatusBadRequest)
			return
		}
		arg = binary.BigEndian.AppendUint64(nil, uint64(mask))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_ = a.execute(word, arg, w)
}

func writeHealth(w http.ResponseWriter, h Health, good bool) {
	status := http.StatusOK
	if !good {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, h)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// MarshalJSON keeps mntr's order of keys.
func (r monitorReport) MarshalJSON() ([]byte, error) {
	out := bytes.NewBufferString("{")
	put := func(key string, value any) error {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		for i, part := range []any{key, value} {
			text, err := json.Marshal(part)
			if err != nil {
				return err
			}
			if i == 1 {
				out.WriteByte(':')
			}
			out.Write(text)
		}
		return nil
	}
	err := errors.Join(put("version", r.version), put("server_state", r.mode))
	if r.peerState != "" {
		err = errors.Join(err, put("peer_state", r.peerState))
	}
	for _, line := range r.lines {
		err = errors.Join(err, put(line.Key, line.Value))
	}
	out.WriteByte('}')
	return out.Bytes(), err
}

var _ json.Marshaler = metrics.Value{}

// FetchHealth asks the server that owns the directory how it is. The error is
// ErrUnreachable when nobody answers or the answer is not understood.
func FetchHealth(ctx context.Context, ownDir string) (Health, error) {
	response, err := ask(ctx, ownDir, http.MethodGet, "/health")
	if err != nil {
		return Health{}, err
	}
	defer response.Body.Close()
	var h Health
	if err := json.NewDecoder(response.Body).Decode(&h); err != nil {
		return Health{}, fmt.Errorf("%w %s: its answer is not understood: %w", ErrUnreachable, SocketPath(ownDir), err)
	}
	return h, nil
}

// ask sends one request to the server that owns the directory.
func ask(ctx context.Context, ownDir, method, target string) (*http.Response, error) {
	path := SocketPath(ownDir)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialSocket(ctx, path)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://zooraft"+target, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrUnreachable, path, err)
	}
	return response, nil
}
