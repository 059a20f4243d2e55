package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/gateway/outcome"
	. "sluice/internal/gatewaytest"
)

// answer is what a caller gets.
type answer struct {
	proto   string
	status  int
	header  http.Header
	body    string
	closes  bool // says that its connection closes
	readErr error
}

// ask sends one request on a new connection and reads the answer.
func ask(t *testing.T, g *Gateway, method, target, body string, fields ...string) answer {
	t.Helper()
	c := g.Dial(t)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: pay.test\r\n", method, target)
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	if _, err := io.WriteString(c, b.String()); err != nil {
		t.Fatal(err)
	}
	return read(t, bufio.NewReader(c), method)
}

func read(t *testing.T, r *bufio.Reader, method string) answer {
	t.Helper()
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	text, err := io.ReadAll(res.Body)
	return answer{res.Proto, res.StatusCode, res.Header, string(text), res.Close, err}
}

// want checks that an answer of the gateway is the one that code stands for.
func (a answer) want(t *testing.T, code outcome.Code) {
	t.Helper()
	info := code.Info()
	var problem struct {
		Type, Title, Code, Outcome string
		Status                     int
		RequestID                  string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	told := info.Outcome.String()
	if a.status != info.Status || problem.Status != info.Status || problem.Code != info.Name || problem.Title != info.Title ||
		problem.Type != "urn:sluice:"+info.Name || a.header.Get("Gateway-Outcome") != told || problem.Outcome != told {
		t.Errorf("got %d, outcome %q, %s; want %d %s, outcome %q",
			a.status, a.header.Get("Gateway-Outcome"), a.body, info.Status, info.Name, info.Outcome)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	if id := a.header.Get("X-Request-Id"); id == "" || id != problem.RequestID {
		t.Errorf("the request id %q is not in %s", id, a.body)
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Date") == "" {
		t.Errorf("Cache-Control or Date is missing: %v", a.header)
	}
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// failures are the ways in which a backend can fail after it has read a request.
var failures = []struct {
	name string
	act  Act
	code outcome.Code
}{
	{"closes", Close, outcome.UpstreamReset},
	{"resets", Reset, outcome.UpstreamReset},
	{"hangs", Hang, outcome.UpstreamTimeout},
	{"half a status line, then closes", Then(Say("HTTP/1.1 20"), Close), outcome.UpstreamReset},
	{"half a head, then closes", Then(Say("HTTP/1.1 200 OK\r\nContent-Le"), Close), outcome.UpstreamReset},
	{"half a head, then hangs", Then(Say("HTTP/1.1 200 OK\r\nContent-Le"), Hang), outcome.UpstreamTimeout},
	{"no HTTP", Then(Say("SSH-2.0-OpenSSH_9.2\r\n\r\n"), Close), outcome.BadResponse},
	{"two lengths", Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk"), outcome.BadResponse},
	{"103 then closes", Then(Say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), Close), outcome.UpstreamReset},
	{"101 unasked", Say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), outcome.BadResponse},
	{"1xx without end", Say(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 20)), outcome.BadResponse},
}

// bodyFailures leave a body half sent; HEAD has none.
var bodyFailures = []struct {
	name string
	act  Act
	code outcome.Code
}{
	{"half a body, then closes", Then(Say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Close), outcome.UpstreamReset},
	{"half a body, then resets", Then(Say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Reset), outcome.UpstreamReset},
	{"half a body, then hangs", Then(Say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Hang), outcome.UpstreamTimeout},
}

// TestAttempt_OneWrite proves that whatever a backend does, each request is written
// once: for every method, on fresh and on reused connections.
func TestAttempt_OneWrite(t *testing.T) {
	all := append(append(failures[:0:0], failures...), bodyFailures...)
	for i, failure := range all {
		for _, method := range methods {
			if method == "HEAD" && i >= len(failures) {
				continue
			}
			for _, reused := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/reused=%v", failure.name, method, reused), func(t *testing.T) {
					t.Parallel()
					acts := []Act{failure.act, Say(OK)}
					if reused {
						acts = append([]Act{Say(OK)}, acts...)
					}
					u := NewUpstream(t, acts...)
					cfg := Config(u.URL)
					cfg.Routes[0].Timeout = 2 * time.Second
					if failure.code == outcome.UpstreamTimeout {
						cfg.Routes[0].Timeout = 150 * time.Millisecond
					}
					g := Start(t, cfg)
					warm := 0
					if reused {
						if a := ask(t, g, "GET", "/warm", ""); a.status != 200 {
							t.Fatalf("warm-up: %+v", a)
						}
						warm = 1
					}
					body := ""
					if method == "POST" || method == "PUT" || method == "PATCH" {
						body = `{"amount":1}`
					}
					a := ask(t, g, method, "/v1/charges", body)
					if method == "HEAD" {
						if a.status != failure.code.Info().Status {
							t.Errorf("status %d, want that of %v", a.status, failure.code)
						}
					} else {
						a.want(t, failure.code)
					}
					_ = g.Stop() // all that would still be sent has been sent
					seen := u.Seen()[warm:]
					if len(seen) != 1 {
						t.Fatalf("the backend saw the request %d times, want once", len(seen))
					}
					if want := method + " /v1/charges HTTP/1.1\r\n"; !strings.HasPrefix(seen[0].Head, want) || seen[0].Body != body {
						t.Errorf("the backend saw %+v", seen[0])
					}
					if wantConn := 0; seen[0].Connection != wantConn {
						t.Errorf("it came on connection %d, want %d", seen[0].Connection, wantConn)
					}
				})
			}
		}
	}
}

// TestAttempt_StaleConnectionIsNotUsed has backends close idle connections, with
// and without notice. The next request must go out on a new connection, once.
func TestAttempt_StaleConnectionIsNotUsed(t *testing.T) {
	for name, act := range map[string]Act{
		"closed behind the answer": Then(Say(OK), Close),
		"announced":                Then(Say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"), Close),
		"spoke out of turn":        Say(OK + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"),
		"HTTP/1.0":                 Then(Say("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"), Close),
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				done := make(chan struct{}, 1)
				u := NewUpstream(t, Then(act, func(net.Conn, Seen) { done <- struct{}{} }))
				g := Start(t, Config(u.URL))
				const requests = 10
				for i := range requests {
					if a := ask(t, g, method, "/x", "body"); a.status != 200 || a.body != "ok" {
						t.Fatalf("request %d: %+v", i, a)
					}
					<-done // on loopback a close is then at the gateway's socket
				}
				if n := len(u.Seen()); n != requests {
					t.Errorf("the backend saw %d requests of %d", n, requests)
				}
			})
		}
	}
}

// TestAttempt_ResetWhileIdle has the backend reset a connection that waits in the
// pool.
func TestAttempt_ResetWhileIdle(t *testing.T) {
	now, done := make(chan struct{}), make(chan struct{})
	u := NewUpstream(t, Then(Say(OK), func(c net.Conn, r Seen) {
		<-now
		Reset(c, r)
		done <- struct{}{}
	}))
	g := Start(t, Config(u.URL))
	for range 5 {
		if a := ask(t, g, "POST", "/x", "body"); a.status != 200 {
			t.Fatalf("%+v", a)
		}
		now <- struct{}{}
		<-done // on loopback the reset is then at the gateway's socket
	}
	if n := len(u.Seen()); n != 5 {
		t.Errorf("the backend saw %d requests of 5", n)
	}
}

func TestAttempt_NothingSent(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	u.Close() // its port refuses from now on
	g := Start(t, Config(u.URL))
	for _, method := range methods {
		a := ask(t, g, method, "/x", "")
		if method == "HEAD" {
			continue
		}
		a.want(t, outcome.ConnectFailed)
	}
}

func TestAttempt_ConnectionsAreBounded(t *testing.T) {
	u := NewUpstream(t, Hang, Say(OK))
	cfg := Config(u.URL)
	cfg.Upstreams[0].Connections.Max = 1
	cfg.Routes[0].Timeout = time.Second
	g := Start(t, cfg)
	first := make(chan answer, 1)
	go func() { first <- ask(t, g, "GET", "/hang", "") }()
	u.Wait(t, 1)
	ask(t, g, "GET", "/x", "").want(t, outcome.NoConnection)
	(<-first).want(t, outcome.UpstreamTimeout)
	if a := ask(t, g, "GET", "/x", ""); a.status != 200 {
		t.Errorf("after the first has ended: %+v", a)
	}
}
