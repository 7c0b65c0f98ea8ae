package control

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/zooraft/zooraft/zktest"
)

// ErrListen is returned when the control port cannot be opened.
var ErrListen = errors.New("control: the control port cannot be opened")

// Header must be in each request, with any value.
const Header = "Zooraft-Control"

// headerTimeout bounds the time in which a request's header must come: 10 s. The
// answer may take as long as what is waited for.
const headerTimeout = 10 * time.Second

// Port is an open control port.
type Port struct {
	listener net.Listener
	http     *http.Server
	done     chan struct{} // closed when the accept loop has ended
}

// Open opens the control port of an ensemble on 127.0.0.1; 0 takes a free one.
func Open(number int, e *zktest.Ensemble) (*Port, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(number)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	p := &Port{listener: l, done: make(chan struct{})}
	p.http = &http.Server{Handler: guard(NewHandler(e)), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: 16 << 10}
	go func() {
		defer close(p.done)
		_ = p.http.Serve(l) // ends with Close
	}()
	return p, nil
}

// Number is the port's number.
func (p *Port) Number() int { return p.listener.Addr().(*net.TCPAddr).Port }

// URL is where the port is.
func (p *Port) URL() string { return "http://" + p.listener.Addr().String() }

// Close ends the port and cuts requests under way.
func (p *Port) Close() error {
	err := p.http.Close()
	<-p.done
	return err
}

// guard lets in programs of this machine and keeps out web pages that a browser
// on it shows:
//
//   - The port is open on loopback only.
//   - The request must name a loopback address or localhost as its host: a name of
//     somebody's own that he lets resolve to 127.0.0.1 (DNS rebinding) is not one.
//   - It must carry our header. A page can send that to a foreign origin only if
//     the server says that it may, and this one never does.
//   - It must not come from a page at all, which browsers tell.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case !loopback(r.Host):
			refuse(w, "the host "+strconv.Quote(r.Host)+" is no name of this machine's loopback")
		case r.Header.Get("Origin") != "" || site != "" && site != "none":
			refuse(w, "a web page may not ask")
		case r.Header.Get(Header) == "":
			refuse(w, "the header "+Header+" is missing; send it with any value")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, why string) {
	answer(w, http.StatusForbidden, failure{why})
}

// loopback tells whether a Host header names this machine by its loopback.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
