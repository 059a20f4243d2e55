package server

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"sluice/gateway/edge"
)

// inbound is a caller's connection. It knows when its present request began, and who
// the caller is.
type inbound struct {
	net.Conn
	began  time.Time // when the first byte of the present request came
	caller edge.Caller
}

// began is called by the server for each change of a connection's state.
func began(c net.Conn, state fasthttp.ConnState) {
	if in, ok := c.(*inbound); ok && state == fasthttp.StateActive {
		in.began = time.Now()
	}
}

// listener hands out inbound connections. It can be closed twice: by us, so that it
// is closed even if Serve has not come to it yet, and by fasthttp, whose Shutdown
// would otherwise end at the error and not wait for connections.
type listener struct {
	net.Listener
	log  *zerolog.Logger
	once sync.Once
	err  error
}

// The pause after an Accept that failed for want of something that comes back, as
// descriptors do when connections end.
const (
	acceptPause     = 5 * time.Millisecond
	acceptPauseMost = time.Second
)

// Accept implements net.Listener. fasthttp takes any error for the end of the
// listener; here only the real end is one.
func (l *listener) Accept() (net.Conn, error) {
	pause := acceptPause
	for {
		c, err := l.Listener.Accept()
		if err == nil {
			in := &inbound{Conn: c}
			var address netip.Addr
			if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
				address = tcp.AddrPort().Addr()
			}
			in.caller.Set(address, false)
			return in, nil
		}
		if !passing(err) {
			return nil, err
		}
		if pause == acceptPause {
			l.log.Warn().Err(err).Str("listener", l.Addr().String()).Msg("cannot take a connection, trying on")
		}
		time.Sleep(pause)
		pause = min(2*pause, acceptPauseMost)
	}
}

// passing reports whether Accept may work again later.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR, syscall.EPROTO, syscall.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}
