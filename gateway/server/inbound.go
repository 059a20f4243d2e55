package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
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
	net.Conn           // what is read and written: the socket, or TLS over it
	socket   net.Conn  // below TLS, if there is any
	front    *frontTLS // nil: no TLS
	shaken   bool      // the handshake is over
	began    time.Time // when the first byte of the present request came
	want     time.Time // read deadline, as the server sets it; zero: none
	armed    time.Time // read deadline of the socket: never later than want
	ahead    int64     // bytes that were read and do not belong to the present request or one before it
	caller   edge.Caller
	trying   atomic.Pointer[conn]
	all      *callers
	latest   atomic.Uint32 // the latest thing done on it: didNothing and so on
	closed   atomic.Bool
}

const (
	didNothing uint32 = iota
	isReading         // somebody waits in Read
	didRead
	didWrite
)

// newInbound takes a connection over. Without front it is plain.
func newInbound(c net.Conn, front *frontTLS, all *callers) *inbound {
	in := &inbound{Conn: c, socket: c, all: all}
	var address netip.Addr
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		address = tcp.AddrPort().Addr()
		if front != nil {
			in.secure(front)
		}
	}
	in.caller.Set(address, in.front != nil)
	return in
}

// Read implements net.Conn. The first one makes the TLS handshake: it runs on the
// connection's own goroutine, so it holds no other caller up.
func (in *inbound) Read(p []byte) (int, error) {
	if in.front != nil && !in.shaken && !in.shake() {
		return 0, io.EOF // nobody asked for anything yet
	}
	in.latest.Store(isReading)
	n, err := in.Conn.Read(p)
	for n == 0 && err != nil && errors.Is(err, os.ErrDeadlineExceeded) && in.extend() {
		n, err = in.Conn.Read(p)
	}
	in.latest.Store(didRead)
	in.ahead += int64(n)
	return n, err
}

// Write implements net.Conn.
func (in *inbound) Write(p []byte) (int, error) {
	n, err := in.Conn.Write(p)
	switch {
	case err != nil:
		in.latest.Store(didNothing)
	case in.latest.Load() != isReading:
		in.latest.Store(didWrite)
	}
	return n, err
}

// Close implements net.Conn. It does not wait for the caller. Where an answer was the
// last thing on the connection, it sees to it that the caller can read it.
func (in *inbound) Close() error {
	if in.closed.Swap(true) {
		return nil
	}
	if in.latest.Load() == didWrite && in.all.linger(in, lingerers) {
		return nil
	}
	return in.shut()
}

// shut closes at once.
func (in *inbound) shut() error {
	if hasty, ok := in.socket.(*hasty); ok {
		hasty.closing.Store(true)
	}
	err := in.Conn.Close()
	in.all.remove(in)
	return err
}

// hangUp ends what is sent. It fails where a connection has no halves.
func (in *inbound) hangUp() error {
	if hasty, ok := in.socket.(*hasty); ok {
		hasty.closing.Store(true)
	}
	if t, ok := in.Conn.(*tls.Conn); ok {
		_ = t.CloseWrite()
	}
	if half, ok := in.socket.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Answers of ours where there is no exchange. Each is written once, without waiting.
var (
	// full is for a connection for which there is no room.
	full = canned(outcome.GatewayBusy, outcome.GatewayBusy.Info().Title, "Gateway-Outcome: not-sent\r\nRetry-After: 1\r\n", `,"outcome":"not-sent"`)
	// unencrypted is for a request where a TLS handshake was expected.
	unencrypted = canned(outcome.BadRequest, "This port speaks TLS: use https.", "", "")
)

func canned(code outcome.Code, title, fields, members string) string {
	status := strconv.Itoa(code.Info().Status)
	body := `{"type":"urn:sluice:` + code.String() + `","title":"` + title + `","status":` + status + `,"code":"` + code.String() + `"` + members + "}\n"
	return "HTTP/1.1 " + status + " " + fasthttp.StatusMessage(code.Info().Status) + "\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\n" +
		fields + "Connection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// refuse answers and closes. Under TLS there can be no answer without a handshake,
// which is more than a refusal may cost.
func (in *inbound) refuse() {
	in.closed.Store(true)
	if in.front == nil && say(in.socket, full) && in.all.linger(in, lingerersRefused) {
		return
	}
	_ = in.shut()
}

// say writes without waiting.
func say(c net.Conn, text string) bool {
	_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
	_, err := io.WriteString(c, text)
	return err == nil
}

// SetReadDeadline implements net.Conn. The server sets one for each part of each
// request, mostly to put it off. That costs a timer's change each time, so a socket
// that has an earlier deadline keeps it: if it comes, Read looks whether it counts.
// Only the goroutine that serves the connection calls it.
func (in *inbound) SetReadDeadline(t time.Time) error {
	in.want = t
	if !in.armed.IsZero() && (t.IsZero() || !t.Before(in.armed)) {
		return nil
	}
	in.armed = t
	return in.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (in *inbound) SetDeadline(t time.Time) error {
	in.want, in.armed = t, t
	return in.Conn.SetDeadline(t)
}

// extend puts the socket's deadline off to the one that is wanted, if that has not
// come yet.
func (in *inbound) extend() bool {
	if !in.want.IsZero() && !time.Now().Before(in.want) {
		return false
	}
	in.armed = in.want
	return in.Conn.SetReadDeadline(in.want) == nil
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
	tls  *frontTLS // nil: plain
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
			in := newInbound(c, l.tls, l.all)
			if !l.all.add(in) {
				in.refuse()
				continue
			}
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
