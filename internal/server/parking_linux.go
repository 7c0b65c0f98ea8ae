package server

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// parking is a set of sockets of which each, once armed, is named once when there
// is something to read. It is an epoll set that the runtime's own poller waits
// for, so no thread does.
type parking struct {
	file *os.File
	raw  syscall.RawConn // of file
}

// parkedEvents are those that end a wait. Errors end it in any case.
const parkedEvents = syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT

func newParking() (*parking, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // makes the runtime wait for it
		return nil, errors.Join(err, syscall.Close(fd))
	}
	p := &parking{file: os.NewFile(uintptr(fd), "parking")}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// arm has the socket named by id when something comes, or at once if it has come.
// Again tells that it has been armed before.
func (p *parking) arm(socket syscall.RawConn, id uint64, again bool) error {
	op := syscall.EPOLL_CTL_ADD
	if again {
		op = syscall.EPOLL_CTL_MOD
	}
	var failed error
	err := p.raw.Control(func(set uintptr) {
		var refused error
		failed = socket.Control(func(fd uintptr) {
			e := syscall.EpollEvent{Events: parkedEvents, Fd: int32(id), Pad: int32(id >> 32)}
			refused = syscall.EpollCtl(int(set), op, int(fd), &e)
		})
		if failed == nil {
			failed = refused
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// wait names who has something to read, until the set is closed. Named may not
// block.
func (p *parking) wait(named func(id uint64)) {
	events := make([]syscall.EpollEvent, 128)
	for {
		n := 0
		err := p.raw.Read(func(set uintptr) bool {
			var err error
			n, err = syscall.EpollWait(int(set), events, 0)
			return n > 0 || err != nil && err != syscall.EINTR
		})
		if err != nil {
			return
		}
		for _, e := range events[:max(n, 0)] {
			named(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32)
		}
	}
}

func (p *parking) close() error { return p.file.Close() }
