package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/gateway/upstream"
)

// headBytes bounds the head of a response, and is the size of the buffers that
// heads are read and written through.
const headBytes = 16 << 10

// pool is the connections to one endpoint. It lives as long as the endpoint; a reload
// that changes how connections are opened or kept gives it another stock.
type pool struct {
	host  *fasthttp.HostClient // whose buffers are used
	stock atomic.Pointer[stock]
}

// stock is connections that were opened in one way, as many as the upstream may have.
type stock struct {
	host    *fasthttp.HostClient
	retired atomic.Bool // no connection is kept any more
	conns
}

// conns hands out the connections that fasthttp.HostClient keeps.
type conns interface {
	// acquire gives an idle connection or opens one within timeout.
	acquire(timeout time.Duration) (*conn, error)
	// release keeps c for the next attempt.
	release(c *conn)
	// drop closes c.
	drop(c *conn)
}

// hostConns names the type of HostClient's connections, which fasthttp does not
// export, by inference.
type hostConns[L interface{ Conn() net.Conn }] struct {
	get  func(time.Duration, bool) (L, error)
	put  func(L)
	shut func(L)
}

func connsOf[L interface{ Conn() net.Conn }](get func(time.Duration, bool) (L, error), put, shut func(L)) conns {
	return &hostConns[L]{get, put, shut}
}

func (h *hostConns[L]) acquire(timeout time.Duration) (*conn, error) {
	l, err := h.get(timeout, false)
	if err != nil {
		return nil, err
	}
	c := l.Conn().(*conn)
	c.handle = l
	return c, nil
}

func (h *hostConns[L]) release(c *conn) { h.put(c.handle.(L)) }
func (h *hostConns[L]) drop(c *conn)    { h.shut(c.handle.(L)) }

// newPool makes the pool of an endpoint, whose connections d opens.
func newPool(address string, limits upstream.Connections, d *dialer) *pool {
	p := &pool{}
	s := newStock(address, limits, d)
	p.host = s.host
	p.stock.Store(s)
	return p
}

// renew opens connections as d does from now on. Attempts under way go on with what
// they have; for their time there can be more connections than limits says.
func (p *pool) renew(address string, limits upstream.Connections, d *dialer) {
	p.stock.Swap(newStock(address, limits, d)).retire()
}

// retire closes what is idle, and from now on whatever comes back.
func (p *pool) retire() { p.stock.Load().retire() }

// setMax bounds the connections; those above it are not closed, but not replaced.
func (p *pool) setMax(n int) { p.stock.Load().host.SetMaxConns(n) }

// release keeps c for the next attempt.
func (p *pool) release(c *conn) {
	s := c.stock
	if s.retired.Load() {
		s.drop(c)
		return
	}
	s.release(c)
	if s.retired.Load() { // meanwhile
		s.host.CloseIdleConnections()
	}
}

// drop closes c.
func (p *pool) drop(c *conn) { c.stock.drop(c) }

func (s *stock) retire() {
	s.retired.Store(true)
	s.host.CloseIdleConnections()
}

func newStock(address string, limits upstream.Connections, d *dialer) *stock {
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
	return &stock{host: host, conns: connsOf(host.AcquireConn, host.ReleaseConn, host.CloseConn)}
}

// take gives a connection that can carry an attempt: one that was used before only
// if its peer has neither closed it nor spoken since. Nothing was sent when it
// fails.
func (p *pool) take(timeout time.Duration) (c *conn, cause upstream.Cause, why string) {
	s := p.stock.Load()
	for {
		c, err := s.acquire(timeout)
		if err != nil {
			cause, why = causeOfDial(err)
			return nil, cause, why
		}
		if !c.used || !c.stale() {
			c.sent, c.stock = 0, s
			c.stream.Store(false)
			return c, upstream.Complete, ""
		}
		s.drop(c)
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

// causeOfDial says what kept a connection from being opened: the cause, and in a word
// of a closed list why.
func causeOfDial(err error) (cause upstream.Cause, why string) {
	if errors.Is(err, fasthttp.ErrNoFreeConns) {
		return upstream.NoConnection, ""
	}
	cause = upstream.DialFailed
	var d *dialError
	if errors.As(err, &d) {
		cause = d.cause
	}
	var timeout net.Error
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		why = "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		why = "unreachable"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		why = "closed"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		why = "no file descriptors here"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		why = "no ports here"
	case errors.As(err, &authority):
		why = "unknown authority"
	case errors.As(err, &name):
		why = "certificate for another name"
	case errors.As(err, &invalid):
		why = "invalid certificate"
	}
	return cause, why
}
