package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/gateway/upstream"
)

// headBytes bounds the head of a response, and is the size of the buffers that
// heads are read and written through.
const headBytes = 16 << 10

// pool is the connections to one endpoint, open ones at most as many as the
// upstream may have.
type pool struct {
	host *fasthttp.HostClient
	leases
}

// leases hands out the connections that fasthttp.HostClient keeps.
type leases interface {
	// acquire gives an idle connection or opens one within timeout.
	acquire(timeout time.Duration) (*conn, error)
	// release keeps c for the next attempt.
	release(c *conn)
	// drop closes c.
	drop(c *conn)
}

// hostLeases names the type of HostClient's connections, which fasthttp does not
// export, by inference.
type hostLeases[L interface{ Conn() net.Conn }] struct {
	get  func(time.Duration, bool) (L, error)
	put  func(L)
	shut func(L)
}

func leasesOf[L interface{ Conn() net.Conn }](get func(time.Duration, bool) (L, error), put, shut func(L)) leases {
	return &hostLeases[L]{get, put, shut}
}

func (h *hostLeases[L]) acquire(timeout time.Duration) (*conn, error) {
	l, err := h.get(timeout, false)
	if err != nil {
		return nil, err
	}
	c := l.Conn().(*conn)
	c.lease = l
	return c, nil
}

func (h *hostLeases[L]) release(c *conn) { h.put(c.lease.(L)) }
func (h *hostLeases[L]) drop(c *conn)    { h.shut(c.lease.(L)) }

// newPool makes the pool of an endpoint, whose connections d opens.
func newPool(address string, limits upstream.Connections, d *dialer) *pool {
	host := &fasthttp.HostClient{
		Addr:                address,
		DialTimeout:         d.dial,
		MaxConns:            limits.Max,
		MaxIdleConnDuration: limits.Idle,
		ConnPoolStrategy:    fasthttp.LIFO, // constant time, and surplus connections age out
		ReadBufferSize:      headBytes,
		WriteBufferSize:     headBytes,
		// Do is never called, so nothing here can repeat a request by itself. These
		// say the same to whoever changes that.
		MaxIdemponentCallAttempts: 1,
		RetryIfErr:                func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
	}
	return &pool{host: host, leases: leasesOf(host.AcquireConn, host.ReleaseConn, host.CloseConn)}
}

// take gives a connection that can carry an attempt: one that was used before only
// if its peer has neither closed it nor spoken since. Nothing was sent when it
// fails.
func (p *pool) take(timeout time.Duration) (*conn, upstream.Cause) {
	for {
		c, err := p.acquire(timeout)
		if err != nil {
			return nil, causeOfDial(err)
		}
		if !c.used || !c.stale() {
			c.sent = 0
			return c, upstream.Complete
		}
		p.drop(c)
	}
}

// dialer opens connections: TCP, and for a secure upstream the TLS handshake too,
// all within one timeout.
type dialer struct {
	open    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration
	secure  *tls.Config // nil for plain HTTP
}

func (d *dialer) dial(address string, timeout time.Duration) (net.Conn, error) {
	if timeout <= 0 || timeout > d.timeout {
		timeout = d.timeout
	}
	start := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), start.Add(timeout))
	defer cancel()
	socket, err := d.open(ctx, "tcp", address)
	if err != nil {
		return nil, &dialError{upstream.DialFailed, err}
	}
	if d.secure == nil {
		return newConn(socket, socket, time.Since(start)), nil
	}
	stream := tls.Client(socket, d.secure)
	if err := stream.HandshakeContext(ctx); err != nil {
		_ = socket.Close()
		return nil, &dialError{upstream.NoHandshake, err}
	}
	return newConn(socket, stream, time.Since(start)), nil
}

// dialError says how far opening a connection came. Nothing of a request was sent.
type dialError struct {
	cause upstream.Cause
	err   error
}

func (e *dialError) Error() string { return e.cause.String() + ": " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func causeOfDial(err error) upstream.Cause {
	var d *dialError
	switch {
	case errors.As(err, &d):
		return d.cause
	case errors.Is(err, fasthttp.ErrNoFreeConns):
		return upstream.NoConnection
	}
	return upstream.DialFailed
}
