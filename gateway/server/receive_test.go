package server_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway/outcome"
	. "sluice/internal/gatewaytest"
)

// TestReceive_AnnouncedBodiesCostNothing has callers announce large bodies and send
// next to nothing. Nobody else may suffer for it.
func TestReceive_AnnouncedBodiesCostNothing(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Server.Limits.Buffered = 64 * config.KiB
	g := Start(t, cfg)
	for range 100 {
		c := g.Dial(t)
		_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nx")
	}
	for range 10 {
		if a := ask(t, g, "POST", "/", strings.Repeat("y", 20_000)); a.status != 200 {
			t.Fatalf("got %+v", a)
		}
	}
	for _, s := range u.Seen() {
		if len(s.Body) != 20_000 {
			t.Errorf("the backend saw a body of %d bytes", len(s.Body))
		}
	}
}

// TestReceive_BodiesAreBoundedInAll has more come than may be held.
func TestReceive_BodiesAreBoundedInAll(t *testing.T) {
	act, open := gated()
	u := NewUpstream(t, act)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 10 * time.Second
	cfg.Server.Limits.Buffered = 256 * config.KiB
	g := Start(t, cfg)
	first := make(chan answer, 1)
	body := strings.Repeat("x", 150_000)
	go func() { first <- ask(t, g, "POST", "/", body) }()
	u.Wait(t, 1)
	ask(t, g, "POST", "/", body).want(t, outcome.GatewayBusy)
	small := make(chan answer, 1)
	go func() { small <- ask(t, g, "POST", "/", "small") }()
	u.Wait(t, 2)
	open <- struct{}{}
	open <- struct{}{}
	for _, got := range []chan answer{first, small} {
		if a := <-got; a.status != 200 {
			t.Errorf("got %+v", a)
		}
	}
	go func() { open <- struct{}{} }()
	if a := ask(t, g, "POST", "/", body); a.status != 200 {
		t.Errorf("once there is room again: %+v", a)
	}
}

// TestReceive_RefusedFromTheHead has requests whose bodies need not be read.
func TestReceive_RefusedFromTheHead(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Routes[0].Path = "/v1/charges"
	cfg.Routes[0].MaxBody = 1000
	g := Start(t, cfg)
	for target, code := range map[string]outcome.Code{"/nowhere": outcome.NoRoute, "/v1/charges": outcome.BodyTooLarge} {
		c := g.Dial(t)
		_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n%s", target, strings.Repeat("x", 9000))
		read(t, bufio.NewReader(c), "POST").want(t, code) // the rest is never sent
	}
}

// TestReceive_TheConnectionStaysInStep has refused bodies be followed by requests.
func TestReceive_TheConnectionStaysInStep(t *testing.T) {
	u := NewUpstream(t, echoPath)
	cfg := Config(u.URL)
	cfg.Routes[0].Path = "/v1/{x}"
	g := Start(t, cfg)
	for _, framing := range []string{
		"Content-Length: 20000\r\n\r\n" + strings.Repeat("x", 20000),
		"Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("3e8\r\n"+strings.Repeat("y", 1000)+"\r\n", 20) + "0\r\n\r\n",
	} {
		c := g.Dial(t)
		r := bufio.NewReader(c)
		go func() {
			_, _ = io.WriteString(c, "POST /nowhere HTTP/1.1\r\nHost: h\r\n"+framing+"GET /v1/a HTTP/1.1\r\nHost: h\r\n\r\n")
		}()
		read(t, r, "POST").want(t, outcome.NoRoute)
		if a := read(t, r, "GET"); a.body != "/v1/a" {
			t.Errorf("the next request got %+v", a)
		}
	}
}

func TestReceive_ABodyThatBreaksOff(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Server.Timeouts.Body = 200 * time.Millisecond
	g := Start(t, cfg)
	raw(t, g, "POST", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n"+strings.Repeat("x", 10000)).want(t, outcome.RequestTimeout)
	raw(t, g, "POST", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n").want(t, outcome.BadRequest)
	gone := g.Dial(t)
	_, _ = io.WriteString(gone, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n"+strings.Repeat("x", 10000))
	_ = gone.Close()
	eventually(t, "nothing is under way", func() bool { return g.Core.InFlight() == 0 })
	if n := len(u.Seen()); n != 0 {
		t.Errorf("the backend saw %d of these", n)
	}
}
