package server

import (
	"syscall"
	"time"
)

/*
Where idle connections wait. A goroutine that waits in a read costs its stack, of
4 KB once a handshake has run on it, and half a kilobyte of its own, more than all
the rest of an idle session. So a connection that has been quiet is parked: its read loop
ends, and what is left of it is armed in a set of the operating system. When
something comes, or the other end has gone, the set disarms it and tells, and a
new goroutine goes on where the former one ended.

	read loop: buffer empty, quiet ─► parked = true ─► arm, and touch nothing more
	parking loop: told ─► parked: true → false ─► new read loop

The exchange of parked hands the fields of the read loop from one goroutine to the next.
A socket that is closed leaves the set by itself, and nobody is told: whoever
closed it has taken the connection out of all else (depart), and a read loop
would find nothing left to do.

Where there is no such set, or a connection is no socket of the system, its
goroutine waits in the read.
*/

// lull is the time between two requests from which a connection is parked after
// the second: 100 ms. One that is busy costs a system call less for each.
const lull = 100 * time.Millisecond

// park ends the read loop for as long as nothing comes. It returns false if the
// loop has to wait itself; after true the caller may not touch the connection.
func (c *conn) park() bool {
	socket, ok := c.net.(syscall.Conn)
	if !ok || c.server.parking == nil || c.unparkable || c.Gone() {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false // it is closed, as the next read will say
	}
	c.reader.release()
	c.scratch = nil
	c.queue.trim()
	again := c.known
	c.known = true
	c.parked.Store(true)
	if c.server.parking.arm(raw, c.id, again) == nil {
		return true
	}
	c.parked.Store(false)
	c.unparkable = true
	return false
}

// openParking makes the set. A server without it is a server all the same.
func (s *Server) openParking() {
	p, err := newParking()
	if err != nil {
		s.logger.Debug("idle connections keep their goroutines", "error", err)
		return
	}
	s.parking = p
	s.running.Add(1)
	go s.unpark()
}

// closeParking ends the parking loop. The connections have been closed.
func (s *Server) closeParking() {
	if s.parking != nil {
		_ = s.parking.close() // fails only if it was closed before
	}
}

// unpark is a goroutine: the parking loop.
func (s *Server) unpark() {
	defer s.running.Done()
	s.parking.wait(func(id uint64) {
		c := s.conns.get(id)
		if c == nil || !c.parked.CompareAndSwap(true, false) {
			return // closed meanwhile
		}
		s.running.Add(1) // this goroutine is counted, so nobody has stopped waiting yet
		go c.serve()
	})
}
