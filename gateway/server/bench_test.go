package server

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/telemetry"
)

const (
	benchGet  = "GET /v1/charges HTTP/1.1\r\nHost: pay.test\r\nUser-Agent: wrk\r\nAccept: */*\r\n\r\n"
	benchPost = "POST /v1/charges HTTP/1.1\r\nHost: pay.test\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"amount\":1250}"
	benchOK   = "HTTP/1.1 200 OK\r\nServer: x\r\nDate: Mon, 30 Nov 2026 14:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"amount\":1250}"
)

// fake is a connection without system calls: it reads the same bytes again and
// again, on the upstream's side one answer for each write.
type fake struct {
	data   string
	left   int
	answer bool
	asked  bool
	at     net.Addr
}

func (f *fake) Read(b []byte) (int, error) {
	if f.left == 0 || f.answer && !f.asked {
		return 0, io.EOF
	}
	f.left--
	f.asked = false
	return copy(b, f.data), nil
}
func (f *fake) Write(b []byte) (int, error)      { f.asked = true; return len(b), nil }
func (f *fake) Close() error                     { return nil }
func (f *fake) LocalAddr() net.Addr              { return f.at }
func (f *fake) RemoteAddr() net.Addr             { return f.at }
func (f *fake) SetDeadline(time.Time) error      { return nil }
func (f *fake) SetReadDeadline(time.Time) error  { return nil }
func (f *fake) SetWriteDeadline(time.Time) error { return nil }

// benchEngine is an engine whose upstream answers from memory.
func benchEngine(tb testing.TB, answer string) *Engine {
	tb.Helper()
	cfg := config.Default()
	u := config.DefaultUpstream()
	u.Name, u.Endpoints = "payments", []string{"http://127.0.0.1:9"}
	cfg.Upstreams = append(cfg.Upstreams, u)
	r := config.DefaultRoute()
	r.Name, r.Path, r.Upstream = "all", "/{path:*}", "payments"
	cfg.Routes = append(cfg.Routes, r)
	cfg.Log.Access = false
	log := telemetry.NewLog(cfg.Log, io.Discard)
	core, err := gateway.New(cfg, log, telemetry.NewMetrics(), rand.Uint64)
	if err != nil {
		tb.Fatal(err)
	}
	e, err := New(core, cfg.Server, log.Logger())
	if err != nil {
		tb.Fatal(err)
	}
	e.Dial = func(context.Context, string, string) (net.Conn, error) {
		return &fake{data: answer, left: 1 << 60, answer: true, at: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}}, nil
	}
	for _, r := range e.resolvers {
		r.refresh(tb.Context())
	}
	return e
}

// serve runs n requests on one connection.
func (e *Engine) serveFake(request string, n int) *inbound {
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 4242)
	in := &inbound{Conn: &fake{data: request, left: n, at: net.TCPAddrFromAddrPort(at)}}
	in.caller.Set(at.Addr(), false)
	_ = e.http.ServeConn(in)
	return in
}

// BenchmarkExchange is a whole exchange without system calls: reading, deciding,
// forwarding, answering, metrics.
func BenchmarkExchange(b *testing.B) {
	for name, request := range map[string]string{"get": benchGet, "post": benchPost} {
		b.Run(name, func(b *testing.B) {
			e := benchEngine(b, benchOK)
			e.serveFake(request, 1000)
			b.ReportAllocs()
			b.ResetTimer()
			e.serveFake(request, b.N)
		})
	}
}

// TestCount_RequestsAreCountedExactly: what is read ahead tells whether a caller
// pipelines, so each request has to be taken off to the byte.
func TestCount_RequestsAreCountedExactly(t *testing.T) {
	for _, request := range []string{benchGet, benchPost, "GET /a?b HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"} {
		e := benchEngine(t, benchOK)
		if in := e.serveFake(request, 5); in.ahead != 0 {
			t.Errorf("after five of %q %d bytes are left over", request, in.ahead)
		}
	}
}

// BenchmarkRefusal is an answer made by the gateway.
func BenchmarkRefusal(b *testing.B) {
	e := benchEngine(b, benchOK)
	const request = "GET nowhere HTTP/1.1\r\nHost: pay.test\r\n\r\n"
	e.serveFake(request, 10)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() { // a bad request closes its connection
		e.serveFake(request, 1)
	}
}

func BenchmarkProbe(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	socket, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	c := newConn(socket, socket, 0)
	b.ReportAllocs()
	for b.Loop() {
		if c.stale() {
			b.Fatal("an open connection looks stale")
		}
	}
}
