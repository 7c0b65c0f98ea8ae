package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
)

// ZooKeeper 3.6 changed the build date in the reply to srvr from
// "08/04/2019 10:00 GMT" to "2019-08-04 10:00 UTC". The Go client parses only
// the old form, and its suite waits for a server by that parse, so on a real
// server of today every test fails before it begins. To have a suite at all,
// the server is put behind a proxy that turns the date of this one reply back;
// every other byte, and every close, passes as it is.
var newDate = regexp.MustCompile(`built on (\d{4})-(\d{2})-(\d{2}) (\d{2}:\d{2} \w+)`)

// serveBehindProxy runs the server on a free port and the proxy on the port
// that the configuration names, until the server ends or the suite ends this
// process. The return value is the exit code.
func serveBehindProxy(flags []string, config string) int {
	text, err := os.ReadFile(config)
	if err != nil {
		return complain(err)
	}
	hidden, err := freePort()
	if err != nil {
		return complain(err)
	}
	lines := strings.Split(string(text), "\n")
	shown := ""
	for i, line := range lines {
		if port, ok := strings.CutPrefix(line, "clientPort="); ok {
			shown = strings.TrimSpace(port)
			lines[i] = fmt.Sprintf("clientPort=%d", hidden)
		}
	}
	moved := config + ".behind-proxy"
	if err := os.WriteFile(moved, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		return complain(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+shown)
	if err != nil {
		return complain(err)
	}
	go accept(listener, fmt.Sprintf("127.0.0.1:%d", hidden))

	// The suite ends this process with SIGKILL; the kernel then ends the server.
	// It does so when the thread that started it ends, hence the lock.
	runtime.LockOSThread()
	program, args := command(flags, moved)
	server := osexec.Command(program, args...)
	server.Stdout, server.Stderr = os.Stdout, os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		return complain(err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for sig := range signals {
			server.Process.Signal(sig)
		}
	}()
	if err := server.Wait(); err != nil {
		return complain(err)
	}
	return 0
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "standin:", err)
	return 1
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func accept(listener net.Listener, server string) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go relay(client.(*net.TCPConn), server)
		}
	}
}

// relay carries one connection both ways.
func relay(client *net.TCPConn, address string) {
	defer client.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	first := make([]byte, 4)
	n, err := io.ReadFull(client, first)
	if n > 0 {
		server.Write(first[:n])
	}
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		io.Copy(server, client)
		// The client has finished or is gone; a server that still answers may.
		server.CloseWrite()
		close(done)
	}()
	if string(first) == "srvr" {
		reply, _ := io.ReadAll(server)
		client.Write(newDate.ReplaceAll(reply, []byte("built on $2/$3/$1 $4")))
		return
	}
	io.Copy(client, server)
	client.Close()
	<-done
}
