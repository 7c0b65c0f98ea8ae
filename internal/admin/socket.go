package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// socketName is the admin socket's file in the server's own directory, dataDir/zooraft.
const socketName = "admin.sock"

// SocketPath is where the server that owns the directory has its admin socket.
func SocketPath(ownDir string) string { return filepath.Join(ownDir, socketName) }

// maxSocketPath is the longest path in bytes that a socket address holds,
// without its final zero. Source: sun_path of Linux has 108 bytes, of the BSDs
// and macOS 104; the smaller one is taken.
const maxSocketPath = 103

// withShortPath calls do with a path to the socket that fits into a socket
// address. A path that is too long is replaced by one through an open
// descriptor of the socket's directory, where the system has /proc.
func withShortPath(path string, do func(short string) error) error {
	if len(path) <= maxSocketPath {
		return do(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(short)); err != nil {
		return fmt.Errorf("%w: %s is longer than %d bytes and this system has no /proc; use a shorter dataDir",
			ErrSocketPath, path, maxSocketPath)
	}
	return do(short)
}

// dialTimeout bounds the look whether somebody listens on a socket that is
// there already. Connecting to a local socket needs no answer of the process.
const dialTimeout = 5 * time.Second

// makeWay removes a socket that a process has left behind when it died. It
// leaves everything else alone.
func makeWay(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%w: %s is there already and is no socket; move it away", ErrSocketPath, path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	conn, err := dialSocket(ctx, path)
	if err == nil {
		_ = conn.Close() // nothing was said on it
		return fmt.Errorf("%w: another server listens on %s", ErrSocketPath, path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: %w", ErrSocketPath, err)
	}
	return os.Remove(path)
}

// listenSocket opens the socket with mode 0600.
func listenSocket(path string) (net.Listener, error) {
	if err := makeWay(path); err != nil {
		return nil, err
	}
	// The mode is set before the name exists where the system allows it
	// (Linux takes it over from the descriptor), and once more afterwards.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	var listener net.Listener
	err := withShortPath(path, func(short string) (err error) {
		listener, err = config.Listen(context.Background(), "unix", short)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Close would remove the name through the descriptor's path, which is gone
	// by then; the channel removes it by its real name.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close(), os.Remove(path))
	}
	return listener, nil
}

func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	var conn net.Conn
	err := withShortPath(path, func(short string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}
