package server_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/gateway/outcome"
	. "sluice/internal/gatewaytest"
)

// stubborn sends everything before it reads, as simple callers do, and takes no reset:
// on some systems one takes the answer away that came before it, and some callers,
// Go's among them, do not look for an answer when they cannot write.
func stubborn(t *testing.T, c net.Conn, request string) answer {
	t.Helper()
	defer func() { _ = c.Close() }()
	if n, err := io.WriteString(c, request); err != nil {
		t.Errorf("after %d bytes: %v", n, err)
	}
	r := bufio.NewReader(c)
	a := read(t, r, "POST")
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("after the answer: %v, want the end", err)
	}
	return a
}

// TestLinger_EarlyRefusalsArrive: whoever is refused in the middle of an upload gets
// to know why, and no reset.
func TestLinger_EarlyRefusalsArrive(t *testing.T) {
	const tries = 50
	upload := strings.Repeat("x", 8<<20)
	for name, c := range map[string]struct {
		request string
		code    outcome.Code
	}{
		"upload":          {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8388608\r\n\r\n" + upload, outcome.BodyTooLarge},
		"chunked upload":  {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n800000\r\n" + upload + "\r\n0\r\n\r\n", outcome.BodyTooLarge},
		"long head":       {"GET / HTTP/1.1\r\nHost: h\r\nX-A: " + strings.Repeat("a", 40<<10) + "\r\n\r\n", outcome.HeadTooLarge},
		"bad, then more":  {"GET / HTTP/1.1\r\nHost: h\r\nX A: 1\r\n\r\n" + upload, outcome.BadRequest},
		"unknown, a body": {"NONE / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx" + upload[:1<<20], outcome.MethodUnknown},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", TLS"}[secure], func(t *testing.T) {
				t.Parallel()
				u := NewUpstream(t, Say(OK))
				cfg := Config(u.URL)
				if secure {
					cfg.Server.TLS = newPair(t).files
				}
				g := Start(t, cfg)
				for range tries {
					conn := g.Dial(t)
					if secure {
						conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
					}
					stubborn(t, conn, c.request).want(t, c.code)
				}
				if n := len(u.Seen()); n != 0 {
					t.Errorf("the backend saw %d of these", n)
				}
			})
		}
	}
}

// TestLinger_GoCallersGetTheAnswer has the client that most Go programs use upload too
// much.
func TestLinger_GoCallersGetTheAnswer(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	g := Start(t, Config(u.URL))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	for range 50 {
		res, err := client.Post("http://"+g.Address+"/", "text/plain", strings.NewReader(strings.Repeat("x", 8<<20)))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 413 {
			t.Fatalf("got %d", res.StatusCode)
		}
	}
}

// TestLinger_ARefusedConnectionIsTold has callers without room send at once.
func TestLinger_ARefusedConnectionIsTold(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Server.Limits.Connections = 1
	g := Start(t, cfg)
	first := g.Dial(t)
	_, _ = io.WriteString(first, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	read(t, bufio.NewReader(first), "GET")
	body := strings.Repeat("x", 1<<20)
	for range 50 {
		a := stubborn(t, g.Dial(t), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n"+body)
		if a.status != 503 || !strings.Contains(a.body, `"code":"gateway_busy"`) {
			t.Fatalf("got %+v", a)
		}
	}
}

// TestLinger_PipelinedRequestsDoNotCostAnAnswer has a caller send more behind the
// request after which the connection closes.
func TestLinger_PipelinedRequestsDoNotCostAnAnswer(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	g := Start(t, Config(u.URL))
	more := strings.Repeat("GET /more HTTP/1.1\r\nHost: h\r\n\r\n", 10_000)
	for range 50 {
		a := stubborn(t, g.Dial(t), "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"+more)
		if a.status != 200 || a.body != "ok" {
			t.Fatalf("got %+v", a)
		}
	}
}

// TestLinger_IsBounded has callers never close, and never stop sending.
func TestLinger_IsBounded(t *testing.T) {
	for name, trickles := range map[string]bool{"silent": false, "trickle": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config(NewUpstream(t, Say(OK)).URL)
			cfg.Server.Limits.Connections = 1
			g := Start(t, cfg)
			c := g.Dial(t)
			_, _ = io.WriteString(c, "no HTTP\r\n\r\n")
			r := bufio.NewReader(c)
			read(t, r, "GET").want(t, outcome.BadRequest)
			if _, err := r.ReadByte(); err != io.EOF {
				t.Fatalf("after the answer: %v, want the end", err)
			}
			var sending sync.WaitGroup
			defer sending.Wait() // it ends with the reset
			if trickles {
				sending.Go(func() {
					for {
						if _, err := c.Write([]byte("x")); err != nil {
							return
						}
						<-time.After(20 * time.Millisecond)
					}
				})
			}
			eventually(t, "room for the next", func() bool {
				c := g.Dial(t)
				defer func() { _ = c.Close() }()
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				return read(t, bufio.NewReader(c), "GET").status == 200
			})
		})
	}
}

// TestLinger_ADrainWaitsForIt, and not long.
func TestLinger_ADrainWaitsForIt(t *testing.T) {
	act, open := gated()
	u := NewUpstream(t, act)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 10 * time.Second
	g := Start(t, cfg)
	c := g.Dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	u.Wait(t, 1)
	stopped := make(chan error, 1)
	go func() { stopped <- g.Stop() }()
	eventually(t, "it drains", func() bool { return g.Core.State().Draining })
	// Another request behind the one in flight, which the gateway will not read.
	_, _ = io.WriteString(c, strings.Repeat("GET /more HTTP/1.1\r\nHost: h\r\n\r\n", 5000))
	close(open)
	if err := <-stopped; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if a := read(t, bufio.NewReader(c), "GET"); a.status != 200 || !a.closes {
		t.Errorf("got %+v", a)
	}
}
