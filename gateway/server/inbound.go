package server

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"sluice/gateway/edge"
	"sluice/gateway/outcome"
)

// inbound is a caller's connection. It knows when its present request began, who the
// caller is, and on which connection the request is at an endpoint now.
type inbound struct {
	net.Conn
	began  time.Time // when the first byte of the present request came
	caller edge.Caller
	trying atomic.Pointer[conn]
	all    *callers
}

// Close implements net.Conn.
func (in *inbound) Close() error {
	in.all.remove(in)
	return in.Conn.Close()
}

// callers are the open connections of callers, as many as are allowed.
type callers struct {
	most    int
	refused atomic.Uint64

	mu   sync.Mutex
	open map[*inbound]struct{}
}

// add takes a connection in, if there is room.
func (s *callers) add(in *inbound) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= s.most {
		return false
	}
	s.open[in] = struct{}{}
	in.all = s
	return true
}

func (s *callers) remove(in *inbound) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, in)
}

// cutAttempts ends every attempt in flight, so that its exchange ends with what is
// known of it. It returns how many there were.
func (s *callers) cutAttempts() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for in := range s.open {
		if c := in.trying.Load(); c != nil {
			_ = c.SetDeadline(time.Unix(1, 0))
			n++
		}
	}
	return n
}

// full is the answer on a connection for which there is no room. It is written once,
// without waiting; whoever does not read it at once does not get it.
var full = func() string {
	body := `{"type":"urn:sluice:gateway_busy","title":"` + outcome.GatewayBusy.Info().Title +
		`","status":503,"code":"gateway_busy","outcome":"not-sent"}` + "\n"
	return "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\n" +
		"Gateway-Outcome: not-sent\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}()

func refuse(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
	_, _ = io.WriteString(c, full)
	_ = c.Close()
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
	all  *callers
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
			if !l.all.add(in) {
				l.all.refused.Add(1)
				refuse(c)
				continue
			}
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
