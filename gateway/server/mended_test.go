package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway/outcome"
	"sluice/gateway/server"
	. "sluice/internal/gatewaytest"
)

// deaf is a connection whose peer is gone: it takes no byte.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
}

// TestAttempt_NotSentIsProven has the kernel refuse the first byte: only then may the
// caller be told that nothing was sent.
func TestAttempt_NotSentIsProven(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	for _, method := range []string{"GET", "POST"} {
		g := StartWith(t, Config(u.URL), func(e *server.Engine) {
			e.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return deaf{c}, err
			}
		})
		ask(t, g, method, "/", "x").want(t, outcome.NothingSent)
	}
	if n := len(u.Seen()); n != 0 {
		t.Errorf("the backend saw %d requests", n)
	}
}

// stingy takes a few bytes and then none.
type stingy struct{ net.Conn }

func (s stingy) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b[:min(len(b), 10)])
	if err == nil {
		err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return n, err
}

func TestAttempt_PartlySentIsUnknown(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	g := StartWith(t, Config(u.URL), func(e *server.Engine) {
		e.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return stingy{c}, err
		}
	})
	ask(t, g, "POST", "/", "x").want(t, outcome.UpstreamReset)
}

// TestAttempt_EarlyAnswerReachesTheCaller has a backend refuse a large body from its
// head alone, and close while the body is still being sent.
func TestAttempt_EarlyAnswerReachesTheCaller(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge")
			_ = c.(*net.TCPConn).CloseWrite()
			go func() { // what is sent from now on meets a closed socket
				<-time.After(20 * time.Millisecond)
				_ = c.Close()
			}()
		}
	}()
	cfg := Config("http://" + ln.Addr().String())
	cfg.Routes[0].MaxBody = 64 * config.MiB
	g := Start(t, cfg)
	if a := ask(t, g, "POST", "/", strings.Repeat("x", 30<<20)); a.status != 413 || a.body != "large" {
		t.Errorf("got %d %q, want the backend's own 413", a.status, a.body)
	}
}

// TestRelay_ASlowReaderKeepsNoPermit has callers of a bounded route stop reading.
func TestRelay_ASlowReaderKeepsNoPermit(t *testing.T) {
	u := NewUpstream(t, Say("HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n"+strings.Repeat("x", 30_000_000)))
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 300 * time.Millisecond
	g := Start(t, cfg)
	c := g.Dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	u.Wait(t, 1)
	start := time.Now()
	eventually(t, "the permit is back", func() bool { return g.Core.State().Upstreams[0].InFlight == 0 && g.Core.InFlight() == 0 })
	if took := time.Since(start); took > cfg.Server.Timeouts.Write/2 {
		t.Errorf("it took %v, the route's timeout is 300ms", took)
	}
}

// endless sends events for as long as somebody takes them.
func endless(c net.Conn, _ Seen) {
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	for {
		if _, err := io.WriteString(c, "9\r\ndata: 1\n\n\r\n"); err != nil {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}

// TestDrain_CutsStreamsWithoutError: a stream without an end is meant to be cut.
func TestDrain_CutsStreamsWithoutError(t *testing.T) {
	u := NewUpstream(t, endless)
	cfg := streamed(Config(u.URL))
	cfg.Server.Drain.Timeout = 100 * time.Millisecond
	g := Start(t, cfg)
	c := g.Dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	_, _ = io.ReadFull(c, make([]byte, 100))
	go func() { _, _ = io.Copy(io.Discard, c) }()
	if err := g.Stop(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if !strings.Contains(g.Log(), `"message":"exchange"`) {
		t.Errorf("the stream left no event: %s", g.Log())
	}
}

// TestDrain_WhatIsCutLeavesATrace: these are the exchanges that have to be looked
// into afterwards.
func TestDrain_WhatIsCutLeavesATrace(t *testing.T) {
	u := NewUpstream(t, Hang)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 20 * time.Second
	cfg.Server.Drain.Timeout = 50 * time.Millisecond
	g := Start(t, cfg)
	g.Expect = server.ErrCut
	got := later(t, g, "POST", "/v1/charges")
	u.Wait(t, 1)
	if err := g.Stop(); !errors.Is(err, server.ErrCut) {
		t.Errorf("stopped with %v, want %v", err, server.ErrCut)
	}
	a := <-got
	if a.status != 503 || a.header.Get("Gateway-Outcome") != "unknown" || !strings.Contains(a.body, `"code":"draining"`) {
		t.Errorf("got %+v, want it told that the gateway stops and the outcome is unknown", a)
	}
	if id := a.header.Get("X-Request-Id"); !strings.Contains(g.Log(), id) || !strings.Contains(g.Log(), `"outcome":"unknown"`) {
		t.Errorf("the log has no event of %s: %s", id, g.Log())
	}
}

func TestListener_ConnectionsAreBounded(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Server.Limits.Connections = 2
	g := Start(t, cfg)
	use := func(c net.Conn) answer {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		return read(t, bufio.NewReader(c), "GET")
	}
	first, second := g.Dial(t), g.Dial(t)
	use(first)
	use(second)
	third := g.Dial(t)
	a := read(t, bufio.NewReader(third), "GET") // it is answered without being asked
	if a.status != 503 || !strings.Contains(a.body, `"code":"gateway_busy"`) || a.header.Get("Gateway-Outcome") != "not-sent" {
		t.Errorf("got %+v", a)
	}
	_ = first.Close()
	eventually(t, "room for another", func() bool {
		c, err := net.Dial("tcp", g.Address)
		if err != nil {
			return false
		}
		defer func() { _ = c.Close() }()
		return use(c).status == 200
	})
}

// TestListener_UnusedConnectionsAreNoExchanges: health checks open connections and
// close them, in every way.
func TestListener_UnusedConnectionsAreNoExchanges(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Server.Timeouts.Header = 50 * time.Millisecond
	g := Start(t, cfg)
	reset := g.Dial(t)
	_ = reset.(*net.TCPConn).SetLinger(0)
	_ = reset.Close()
	_ = g.Dial(t).Close()
	silent := g.Dial(t)
	_, _ = io.Copy(io.Discard, silent) // until the gateway closes it
	_ = g.Stop()
	if strings.Contains(g.Log(), `"message":"exchange"`) {
		t.Errorf("nobody asked for anything: %s", g.Log())
	}
}

func TestLog_SaysWhyDiallingFailed(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	u.Close()
	g := Start(t, Config(u.URL))
	ask(t, g, "GET", "/", "").want(t, outcome.ConnectFailed)
	_ = g.Stop()
	if !strings.Contains(g.Log(), `"detail":"dial failed","why":"refused"`) {
		t.Errorf("%s", g.Log())
	}
}

// TestDeadline_StartsWithTheFirstByte has a caller take its time over the body.
func TestDeadline_StartsWithTheFirstByte(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 100 * time.Millisecond
	g := Start(t, cfg)
	c := g.Dial(t)
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n")
	<-time.After(150 * time.Millisecond)
	_, _ = io.WriteString(c, "x")
	read(t, bufio.NewReader(c), "POST").want(t, outcome.DeadlineExceeded)
	if n := len(u.Seen()); n != 0 {
		t.Errorf("the backend saw %d requests", n)
	}
}

// TestResolve_KeepsItsPace has a name fail for very long: the pause between look-ups
// has to reach its bound and stay there.
func TestResolve_KeepsItsPace(t *testing.T) {
	var asked atomic.Int64
	cfg := Config("http://pay.internal:1")
	cfg.Upstreams[0].Resolve.Every = time.Millisecond
	start := time.Now()
	StartWith(t, cfg, func(e *server.Engine) {
		e.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			asked.Add(1)
			return nil, fmt.Errorf("no")
		}
	})
	eventually(t, "200 look-ups", func() bool { return asked.Load() >= 200 })
	if took := time.Since(start); took < 150*time.Millisecond {
		t.Errorf("200 look-ups within %v, one a millisecond is wanted", took)
	}
}
