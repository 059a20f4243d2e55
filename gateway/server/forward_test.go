package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway/outcome"
	. "sluice/internal/gatewaytest"
)

// raw sends bytes as they are and reads one answer.
func raw(t *testing.T, g *Gateway, method, request string) answer {
	t.Helper()
	c := g.Dial(t)
	go func() { _, _ = io.WriteString(c, request) }() // an answer may come before all is sent
	return read(t, bufio.NewReader(c), method)
}

func TestForward_Requests(t *testing.T) {
	large := strings.Repeat("\x00\xff\r\n01", 50000)
	for name, c := range map[string]struct{ request, line, body string }{
		"length":        {"POST /v1/x?a=%2F&b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "POST /v1/x?a=%2F&b HTTP/1.1", "hello"},
		"chunked":       {"PUT /v1/x%20y/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "PUT /v1/x%20y/ HTTP/1.1", "hello"},
		"absolute form": {"GET http://H/v1/x?a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /v1/x?a HTTP/1.1", ""},
		"empty":         {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.1", ""},
		"HTTP/1.0":      {"POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", "POST / HTTP/1.1", "hi"},
		"with a GET":    {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", "GET / HTTP/1.1", "hi"},
		"DELETE":        {"DELETE /v1/x HTTP/1.1\r\nHost: h\r\n\r\n", "DELETE /v1/x HTTP/1.1", ""},
		"OPTIONS":       {"OPTIONS /v1/x HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS /v1/x HTTP/1.1", ""},
		"binary, large": {"PATCH / HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n" + large, "PATCH / HTTP/1.1", large},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := NewUpstream(t, Say(OK))
			g := Start(t, Config(u.URL))
			if a := raw(t, g, "POST", c.request); a.status != 200 || a.body != "ok" {
				t.Fatalf("answer %+v", a)
			}
			seen := u.Wait(t, 1)[0]
			if !strings.HasPrefix(seen.Head, c.line+"\r\n") || seen.Body != c.body {
				t.Errorf("the backend saw %q with %d bytes of body, want %q with %d", seen.Head, len(seen.Body), c.line, len(c.body))
			}
			if !strings.Contains(seen.Head, "\r\nHost: h\r\n") || strings.Contains(seen.Head, "Transfer-Encoding") {
				t.Errorf("the backend saw %q", seen.Head)
			}
		})
	}
}

func TestForward_Continue(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	g := Start(t, Config(u.URL))
	c := g.Dial(t)
	r := bufio.NewReader(c)
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
	if a := read(t, r, "POST"); a.status != 100 {
		t.Fatalf("got %d, want 100 before the body is sent", a.status)
	}
	_, _ = io.WriteString(c, "hi")
	if a := read(t, r, "POST"); a.status != 200 {
		t.Fatalf("got %d", a.status)
	}
	if seen := u.Wait(t, 1)[0]; seen.Body != "hi" || strings.Contains(seen.Head, "Expect") {
		t.Errorf("the backend saw %+v", seen)
	}
}

// TestForward_ContinueIsRefusedForALargeBody: the caller is not asked for what will be
// refused, and gets the reason.
func TestForward_ContinueIsRefusedForALargeBody(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	g := Start(t, Config(u.URL))
	raw(t, g, "POST", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n").want(t, outcome.BodyTooLarge)
}

func TestForward_Responses(t *testing.T) {
	for name, c := range map[string]struct {
		method, say string
		closes      bool
		status      int
		body        string
		field       [2]string
	}{
		"length":            {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, 200, "abc", [2]string{"Content-Length", "3"}},
		"chunked":           {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", false, 200, "abc", [2]string{}},
		"chunked, trailers": {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n", false, 200, "abc", [2]string{"X-Sum", ""}},
		"until close":       {"GET", "HTTP/1.1 200 OK\r\n\r\nabc", true, 200, "abc", [2]string{}},
		"204":               {"DELETE", "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n", false, 204, "", [2]string{"X-A", "1"}},
		"304":               {"GET", "HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\nContent-Length: 9\r\n\r\n", false, 304, "", [2]string{"Etag", `"x"`}},
		"HEAD":              {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n", false, 200, "", [2]string{"Content-Length", "12345"}},
		"103 before":        {"GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, 200, "ok", [2]string{"Link", ""}},
		"100 before":        {"POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", false, 201, "ok", [2]string{}},
		"an error of its":   {"POST", "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy", false, 503, "busy", [2]string{"Retry-After", "7"}},
		"402, own type":     {"POST", "HTTP/1.1 402 Payment Required\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n{}", false, 402, "{}", [2]string{"Gateway-Outcome", ""}},
		"no type invented":  {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, 200, "ok", [2]string{"Content-Type", ""}},
		"its own date":      {"GET", "HTTP/1.1 200 OK\r\nDate: Tue, 01 Jan 2019 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok", false, 200, "ok", [2]string{"Date", "Tue, 01 Jan 2019 00:00:00 GMT"}},
		"from HTTP/1.0":     {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", true, 200, "ok", [2]string{}},
		"no server":         {"GET", OK, false, 200, "ok", [2]string{"Server", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act := Say(c.say)
			if c.closes {
				act = Then(act, Close)
			}
			u := NewUpstream(t, act)
			g := Start(t, Config(u.URL))
			conn := g.Dial(t)
			r := bufio.NewReader(conn)
			for i := range 2 { // twice: the caller's connection has to stay in step
				_, _ = fmt.Fprintf(conn, "%s /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", c.method)
				a := read(t, r, c.method)
				if a.proto != "HTTP/1.1" || a.status != c.status || a.body != c.body || a.readErr != nil {
					t.Fatalf("answer %d: %+v, want %d %q", i, a, c.status, c.body)
				}
				if c.field[0] != "" && a.header.Get(c.field[0]) != c.field[1] {
					t.Errorf("%s: %q, want %q", c.field[0], a.header.Get(c.field[0]), c.field[1])
				}
				if a.header.Get("X-Request-Id") == "" {
					t.Error("no X-Request-Id")
				}
			}
		})
	}
}

func TestForward_HTTP10GetsALength(t *testing.T) {
	u := NewUpstream(t, Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"))
	g := Start(t, Config(u.URL))
	a := raw(t, g, "GET", "GET / HTTP/1.0\r\nHost: h\r\n\r\n")
	if a.body != "abc" || a.header.Get("Content-Length") != "3" {
		t.Errorf("got %+v", a)
	}
}

func TestRelay_LargeBodies(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 200_000) // 3.2 MB
	var chunked strings.Builder
	for rest := body; rest != ""; {
		n := min(len(rest), 70_001)
		fmt.Fprintf(&chunked, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	chunked.WriteString("0\r\n\r\n")
	for name, say := range map[string]string{
		"length":  fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked.String(),
	} {
		t.Run(name, func(t *testing.T) {
			u := NewUpstream(t, Say(say))
			g := Start(t, Config(u.URL))
			for i := range 3 {
				if a := ask(t, g, "GET", "/", ""); a.body != body || a.readErr != nil {
					t.Fatalf("answer %d: %d bytes, %v", i, len(a.body), a.readErr)
				}
			}
			for i, s := range u.Seen() {
				if s.Connection != 0 {
					t.Errorf("request %d came on connection %d: a body read to its end leaves the connection usable", i, s.Connection)
				}
			}
		})
	}
}

// TestRelay_CutShortNeverLooksWhole has bodies that are relayed end too early.
func TestRelay_CutShortNeverLooksWhole(t *testing.T) {
	half := strings.Repeat("x", 100_000)
	for name, act := range map[string]Act{
		"length, closes":  Then(Say("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"+half), Close),
		"length, resets":  Then(Say("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"+half), Reset),
		"chunked, closes": Then(Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n"+half+"\r\n"), Close),
		"chunked, broken": Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" + half + "\r\nzz\r\n"),
		"hangs":           Say("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + half),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := NewUpstream(t, act)
			cfg := Config(u.URL)
			cfg.Routes[0].Timeout = 300 * time.Millisecond
			g := Start(t, cfg)
			a := ask(t, g, "GET", "/", "")
			if a.readErr == nil {
				t.Errorf("%d of 200000 bytes came and the answer looks whole", len(a.body))
			}
			_ = g.Stop()
			if !strings.Contains(g.Log(), `"outcome":"unknown"`) {
				t.Errorf("the log does not say so: %s", g.Log())
			}
		})
	}
}

func streamed(cfg config.Config) config.Config {
	cfg.Routes[0].Response = config.ResponseStream
	cfg.Routes[0].Timeout = 100 * time.Millisecond
	cfg.Routes[0].Stall = 400 * time.Millisecond
	return cfg
}

// TestRelay_StreamOutlivesTheTimeout has events come one by one, each passed on
// before the next is sent, for longer than the route's timeout.
func TestRelay_StreamOutlivesTheTimeout(t *testing.T) {
	next := make(chan struct{})
	u := NewUpstream(t, func(c net.Conn, _ Seen) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range next {
			_, _ = io.WriteString(c, "9\r\ndata: 1\n\n\r\n")
		}
		_, _ = io.WriteString(c, "0\r\n\r\n")
	})
	g := Start(t, streamed(Config(u.URL)))
	c := g.Dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	r := bufio.NewReader(c)
	start := time.Now()
	for line := ""; line != "\r\n"; { // the head comes before any event
		var err error
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for time.Since(start) < 300*time.Millisecond {
		next <- struct{}{}
		want := "9\r\ndata: 1\n\n\r\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Fatalf("after %v: %q, %v", time.Since(start), got, err)
		}
	}
	if held := g.Core.State().Upstreams[0].InFlight; held != 0 {
		t.Errorf("%d permits held by a stream whose head has come", held)
	}
	close(next)
	if rest, _ := io.ReadAll(io.LimitReader(r, 5)); string(rest) != "0\r\n\r\n" {
		t.Errorf("the end is %q", rest)
	}
}

func TestRelay_StreamThatStallsIsCut(t *testing.T) {
	u := NewUpstream(t, Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"))
	g := Start(t, streamed(Config(u.URL)))
	if a := ask(t, g, "GET", "/", ""); a.body != "ab" || a.readErr == nil {
		t.Errorf("got %+v, want the two bytes and a broken end", a)
	}
}

// TestRelay_CallerLeaves has the caller go while a body comes.
func TestRelay_CallerLeaves(t *testing.T) {
	stop := make(chan struct{})
	gone := make(chan struct{})
	u := NewUpstream(t, func(c net.Conn, _ Seen) {
		defer close(gone)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 10000, strings.Repeat("x", 10000))
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := io.WriteString(c, chunk); err != nil {
				return // the gateway has closed its side
			}
		}
	})
	g := Start(t, streamed(Config(u.URL)))
	c := g.Dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	_, _ = io.ReadFull(c, make([]byte, 50000))
	_ = c.Close()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the backend still sends to a caller who is gone")
		close(stop)
	}
	_ = g.Stop()
	if !strings.Contains(g.Log(), outcome.CallerGone.String()) {
		t.Errorf("the log does not say so: %s", g.Log())
	}
}
