package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway/outcome"
	. "sluice/internal/gatewaytest"
)

// An answer belongs to the request it was given to and to no other: whatever a
// backend does, the next caller must not read what was meant for somebody else.

// echoPath answers with the path that was asked for.
func echoPath(c net.Conn, r Seen) {
	path := strings.Fields(r.Head)[1]
	_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(path), path)
}

// TestPoison_ALateAnswerIsNobodys has an answer come after its request was given up.
func TestPoison_ALateAnswerIsNobodys(t *testing.T) {
	gaveUp := make(chan struct{})
	late := make(chan struct{})
	u := NewUpstream(t, func(c net.Conn, _ Seen) {
		<-gaveUp
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nalice!")
		close(late)
	}, echoPath)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 100 * time.Millisecond
	g := Start(t, cfg)
	ask(t, g, "POST", "/alice", "").want(t, outcome.UpstreamTimeout)
	close(gaveUp)
	<-late
	for range 3 {
		if a := ask(t, g, "POST", "/bob", ""); a.body != "/bob" {
			t.Fatalf("bob got %q", a.body)
		}
	}
}

// TestPoison_SurplusBytesAreNobodys has a backend say more than it was asked for: at
// once, and later.
func TestPoison_SurplusBytesAreNobodys(t *testing.T) {
	const surplus = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
	said := make(chan struct{}, 10)
	for name, act := range map[string]Act{
		"at once":        Then(Say(OK+surplus), func(net.Conn, Seen) { said <- struct{}{} }),
		"in two writes":  Then(Say(OK), Say(surplus), func(net.Conn, Seen) { said <- struct{}{} }),
		"body after 204": Then(Say("HTTP/1.1 204 No Content\r\n\r\n"), Say(surplus), func(net.Conn, Seen) { said <- struct{}{} }),
	} {
		t.Run(name, func(t *testing.T) {
			u := NewUpstream(t, act, echoPath)
			g := Start(t, Config(u.URL))
			if a := ask(t, g, "GET", "/alice", ""); a.status >= 300 {
				t.Fatalf("%+v", a)
			}
			<-said
			if a := ask(t, g, "POST", "/bob", ""); a.body != "/bob" {
				t.Errorf("bob got %q", a.body)
			}
			if seen := u.Seen(); seen[len(seen)-1].Connection == 0 {
				t.Error("a connection that spoke out of turn was used again")
			}
		})
	}
}

// TestPoison_SurplusBytesUnderTLS is the same where records hide what has come.
func TestPoison_SurplusBytesUnderTLS(t *testing.T) {
	s, ca := secure(t, nil)
	certificate := s.TLS.Certificates
	s.Close()
	const surplus = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
	for name, answers := range map[string][]string{
		"in one record":      {OK + surplus},
		"in its own record":  {OK, surplus},
		"a body behind HEAD": {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", "stolen"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ln.Close() }()
			said := make(chan struct{}, 10)
			go func() {
				for first := true; ; first = false {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go func() {
						r := bufio.NewReader(c)
						for {
							req, err := http.ReadRequest(r)
							if err != nil {
								return
							}
							if !first {
								_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
								continue
							}
							for _, a := range answers {
								_, _ = io.WriteString(c, a)
							}
							said <- struct{}{}
						}
					}()
				}
			}()
			cfg := Config("https://" + ln.Addr().String())
			cfg.Upstreams[0].TLS.CA = ca
			g := Start(t, cfg)
			method := "GET"
			if strings.Contains(name, "HEAD") {
				method = "HEAD"
			}
			if a := ask(t, g, method, "/alice", ""); a.status != 200 {
				t.Fatalf("%+v", a)
			}
			<-said
			for range 3 {
				if a := ask(t, g, "POST", "/bob", ""); a.body != "/bob" {
					t.Fatalf("bob got %q", a.body)
				}
			}
		})
	}
}

// TestPoison_ABrokenRelayEndsItsConnection has a relayed body break off in a way that
// leaves the connection open.
func TestPoison_ABrokenRelayEndsItsConnection(t *testing.T) {
	u := NewUpstream(t, Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n"), echoPath)
	g := Start(t, Config(u.URL))
	if a := ask(t, g, "GET", "/alice", ""); a.readErr == nil {
		t.Fatalf("%+v looks whole", a)
	}
	if a := ask(t, g, "POST", "/bob", ""); a.body != "/bob" {
		t.Errorf("bob got %q", a.body)
	}
	if seen := u.Seen(); seen[1].Connection == 0 {
		t.Error("the connection was used again")
	}
}

// TestAttempt_ABackendThatDoesNotReadIsGivenUp has one that takes no more of a body.
func TestAttempt_ABackendThatDoesNotReadIsGivenUp(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }() // accepted by the kernel, never read
	cfg := Config("http://" + ln.Addr().String())
	cfg.Routes[0].MaxBody = 64 * config.MiB
	cfg.Routes[0].Timeout = 2 * time.Second
	g := Start(t, cfg)
	ask(t, g, "POST", "/", strings.Repeat("x", 30<<20)).want(t, outcome.UpstreamTimeout)
}

// TestPipelining_AnAnswerIsNotHeldBack has the second of two pipelined requests hang,
// and break off. The first one's answer must be there all the same.
func TestPipelining_AnAnswerIsNotHeldBack(t *testing.T) {
	for name, second := range map[string]Act{
		"the next hangs":      Hang,
		"the next breaks off": Then(Say("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nhalf"), Close),
	} {
		t.Run(name, func(t *testing.T) {
			u := NewUpstream(t, Say(OK), second)
			cfg := Config(u.URL)
			cfg.Routes[0].Timeout = 10 * time.Second
			if name == "the next breaks off" {
				cfg.Routes[0].Timeout = time.Second
			}
			g := Start(t, cfg)
			g.Expect = nil
			c := g.Dial(t)
			_, _ = io.WriteString(c, "POST /charge HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n")
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if a := read(t, bufio.NewReader(c), "POST"); a.status != 200 || a.body != "ok" {
				t.Errorf("got %+v", a)
			}
			u.Close() // so that what hangs ends
		})
	}
}
