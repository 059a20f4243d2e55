package server

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
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
	stream atomic.Bool   // what it carries has no end that is known
	opened time.Duration // time that dialling and handshake took
	handle any           // what its stock knows it by
	stock  *stock        // where it belongs

	raw   syscall.RawConn // of the socket; nil when there is none to look at
	look  func(fd uintptr)
	state probe
	tls   bool
	one   [1]byte
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
// closed or reset it, or sent something that nobody asked for. What it sent would
// else be read as the answer to the next request, which may be another caller's.
func (c *conn) stale() bool {
	if c.raw == nil {
		return false
	}
	if c.raw.Control(c.look) != nil || c.state.closed {
		return true
	}
	if !c.tls {
		return c.state.readable
	}
	return c.spoke()
}

// spokeTime is what reading records that have come may take.
const spokeTime = time.Millisecond

// spoke reports whether the peer of an idle TLS connection has sent data. The socket
// alone does not tell: data may be in records that were read with the last answer,
// and what can be read may be session tickets, which are no data.
func (c *conn) spoke() bool {
	until := time.Unix(1, 0) // past: only what is inside the connection already
	if c.state.readable {
		until = time.Now().Add(spokeTime)
	}
	if c.SetReadDeadline(until) != nil {
		return true
	}
	n, err := c.Read(c.one[:])
	return n > 0 || !errors.Is(err, os.ErrDeadlineExceeded)
}
