package server

import (
	"net"
	"syscall"
	"time"
)

// conn is a connection to an endpoint. It counts what the kernel took of the
// present attempt's request, and can tell whether it is still good before it
// carries another one.
type conn struct {
	net.Conn // TLS included: bytes are counted before they are encrypted

	sent   int64         // bytes accepted by Write since the attempt began
	used   bool          // it has carried an attempt
	opened time.Duration // time that dialling and handshake took
	handle any           // what the pool knows it by

	raw   syscall.RawConn // of the socket; nil when there is none to look at
	look  func(fd uintptr)
	state probe
	tls   bool
}

func newConn(socket, stream net.Conn, opened time.Duration) *conn {
	c := &conn{Conn: stream, opened: opened, tls: socket != stream}
	if s, ok := socket.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			c.raw = raw
			c.look = c.state.look // once: a closure per look would be an allocation per attempt
		}
	}
	return c
}

// Write counts what it hands over. For TLS a record counts when it was handed over
// whole, since a part of one cannot be read by the peer.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent += int64(n)
	return n, err
}

// stale reports whether an idle connection must not be used again: the peer has
// closed or reset it, or sent something that nobody asked for.
func (c *conn) stale() bool {
	if c.raw == nil {
		return false
	}
	if c.raw.Control(c.look) != nil {
		return true
	}
	// Under TLS unread data is normal: session tickets arrive after the handshake.
	return c.state.closed || c.state.readable && !c.tls
}
