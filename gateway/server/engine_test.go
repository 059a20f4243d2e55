package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/gateway/outcome"
	"sluice/gateway/server"
	"sluice/gateway/upstream"
	. "sluice/internal/gatewaytest"
)

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("never came about: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// later asks in the background.
func later(t *testing.T, g *Gateway, method, target string) <-chan answer {
	got := make(chan answer, 1)
	go func() { got <- ask(t, g, method, target, "") }()
	return got
}

// gated is a backend that answers each request when told to.
func gated() (Act, chan struct{}) {
	open := make(chan struct{})
	return func(c net.Conn, r Seen) {
		<-open
		Say(OK)(c, r)
	}, open
}

func TestQueue_WaitsThenServesThenSheds(t *testing.T) {
	act, open := gated()
	u := NewUpstream(t, act)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 10 * time.Second
	cfg.Upstreams[0].Limit.Max = 1
	cfg.Upstreams[0].Limit.Queue.Length = 1
	cfg.Upstreams[0].Limit.Queue.Time = 10 * time.Second
	g := Start(t, cfg)
	state := func() (inFlight, queued int64) {
		s := g.Core.State().Upstreams[0]
		return s.InFlight, s.Queued
	}
	first := later(t, g, "GET", "/first")
	u.Wait(t, 1)
	second := later(t, g, "GET", "/second")
	eventually(t, "the second waits", func() bool { _, queued := state(); return queued == 1 })

	third := ask(t, g, "POST", "/third", "")
	third.want(t, outcome.Shed)
	if wait := third.header.Get("Retry-After"); wait != "1" && wait != "2" && wait != "3" {
		t.Errorf("Retry-After %q, want 1 to 3", wait)
	}
	open <- struct{}{}
	if a := <-first; a.status != 200 {
		t.Errorf("first: %+v", a)
	}
	open <- struct{}{}
	if a := <-second; a.status != 200 {
		t.Errorf("second: %+v", a)
	}
	eventually(t, "all permits are back", func() bool { inFlight, queued := state(); return inFlight == 0 && queued == 0 })
	if n := len(u.Seen()); n != 2 {
		t.Errorf("the backend saw %d requests, want the two that were admitted", n)
	}
}

func TestQueue_TimeRunsOut(t *testing.T) {
	act, open := gated()
	u := NewUpstream(t, act)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 10 * time.Second
	cfg.Upstreams[0].Limit.Max = 1
	cfg.Upstreams[0].Limit.Queue.Time = 20 * time.Millisecond
	cfg.Upstreams[0].Limit.ShedStatus = 503
	g := Start(t, cfg)
	first := later(t, g, "GET", "/first")
	u.Wait(t, 1)
	if a := ask(t, g, "GET", "/second", ""); a.status != 503 || !strings.Contains(a.body, `"shed"`) {
		t.Errorf("second: %+v", a)
	}
	close(open)
	if a := <-first; a.status != 200 {
		t.Errorf("first: %+v", a)
	}
}

// TestQueue_UnderLoad has many callers at a small limit: whoever is answered 200
// reached the backend, whoever is shed did not, and the limit holds.
func TestQueue_UnderLoad(t *testing.T) {
	// Each request stays until there are as many as the limit lets in, or none more
	// come: more than that must never be there.
	const limit = 3
	var inside, most atomic.Int64
	u := NewUpstream(t, func(c net.Conn, r Seen) {
		n := inside.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		for end := time.Now().Add(time.Millisecond); inside.Load() <= limit && time.Now().Before(end); {
			<-time.After(50 * time.Microsecond)
		}
		inside.Add(-1)
		Say(OK)(c, r)
	})
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 20 * time.Second // on a busy machine too
	cfg.Upstreams[0].Limit.Max = limit
	cfg.Upstreams[0].Limit.Queue.Length = 4
	cfg.Upstreams[0].Limit.Queue.Time = 2 * time.Millisecond
	g := Start(t, cfg)
	var ok, shed atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		c := g.Dial(t)
		all.Go(func() {
			r := bufio.NewReader(c)
			for range 200 {
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				switch a := read(t, r, "GET"); a.status {
				case 200:
					ok.Add(1)
				case 429:
					shed.Add(1)
				default:
					t.Errorf("got %+v", a)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		_ = g.Stop()
		for line := range strings.Lines(g.Log()) {
			if !strings.Contains(line, `"status":200`) && !strings.Contains(line, `"status":429`) {
				t.Log(line)
			}
		}
	}
	if n := int64(len(u.Seen())); n != ok.Load() {
		t.Errorf("%d answered 200, the backend saw %d", ok.Load(), n)
	}
	if most.Load() != limit {
		t.Errorf("%d at once at most, want the limit of %d reached and kept", most.Load(), limit)
	}
	if shed.Load() == 0 || ok.Load() == 0 {
		t.Errorf("%d answered, %d shed: want some of each", ok.Load(), shed.Load())
	}
	eventually(t, "all permits are back", func() bool { return g.Core.State().Upstreams[0].InFlight == 0 })
}

func TestDrain_FinishesWhatIsInFlight(t *testing.T) {
	act, open := gated()
	u := NewUpstream(t, act)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 10 * time.Second
	cfg.Upstreams[0].Limit.Max = 1
	cfg.Upstreams[0].Limit.Queue.Time = 10 * time.Second
	g := Start(t, cfg)
	first := later(t, g, "POST", "/first")
	u.Wait(t, 1)
	second := later(t, g, "GET", "/second")
	eventually(t, "the second waits", func() bool { return g.Core.State().Upstreams[0].Queued == 1 })

	stopped := make(chan error, 1)
	go func() { stopped <- g.Stop() }()
	(<-second).want(t, outcome.Draining) // it has not been sent, so it can go elsewhere
	if s := g.Core.State(); s.Ready || !s.Draining {
		t.Errorf("while draining the state says %+v", s)
	}
	close(open)
	a := <-first
	if a.status != 200 || a.body != "ok" || !a.closes {
		t.Errorf("first: %+v", a)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if _, err := net.Dial("tcp", g.Address); err == nil {
		t.Error("it still takes connections")
	}
}

func TestDrain_CutsAfterItsTime(t *testing.T) {
	u := NewUpstream(t, Hang)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = time.Second
	cfg.Server.Drain.Timeout = 50 * time.Millisecond
	g := Start(t, cfg)
	g.Expect = server.ErrCut
	got := later(t, g, "GET", "/hangs")
	u.Wait(t, 1)
	if err := g.Stop(); !errors.Is(err, server.ErrCut) {
		t.Errorf("stopped with %v, want %v", err, server.ErrCut)
	}
	if a := <-got; a.status != 503 || a.header.Get("Gateway-Outcome") != "unknown" {
		t.Errorf("got %+v", a)
	}
}

func TestEndpoints_TheLessBusyIsChosen(t *testing.T) {
	act, open := gated()
	hung, well := NewUpstream(t, act), NewUpstream(t, Say(OK))
	cfg := Config(hung.URL, well.URL)
	cfg.Routes[0].Timeout = 20 * time.Second
	g := Start(t, cfg)
	// Until chance brings one there, which then stays.
	var stays <-chan answer
	for n := 1; stays == nil; n++ {
		got := later(t, g, "GET", "/")
		eventually(t, "it arrived", func() bool { return len(well.Seen())+len(hung.Seen()) >= n })
		if len(hung.Seen()) == 1 {
			stays = got
		} else {
			<-got
		}
	}
	for range 50 {
		if a := ask(t, g, "GET", "/", ""); a.status != 200 {
			t.Fatalf("%+v", a)
		}
	}
	if n := len(hung.Seen()); n != 1 {
		t.Errorf("the busy endpoint got %d requests, want none after the first", n)
	}
	close(open)
	if a := <-stays; a.status != 200 {
		t.Errorf("the one that stayed: %+v", a)
	}
}

// names is a resolver that a test controls.
type names struct {
	mu   sync.Mutex
	list []netip.Addr
	err  error
	asks atomic.Int64
}

func (n *names) set(err error, list ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list, n.err = nil, err
	for _, a := range list {
		n.list = append(n.list, netip.MustParseAddr(a))
	}
}

func (n *names) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asks.Add(1)
	if host != "pay.internal" {
		return nil, fmt.Errorf("asked for %q", host)
	}
	return n.list, n.err
}

func TestResolve_NamesAreLookedUpAgain(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	_, port, _ := net.SplitHostPort(u.Address)
	var n names
	n.set(&net.DNSError{Err: "no such host", Name: "pay.internal", IsNotFound: true})
	cfg := Config("http://pay.internal:" + port)
	cfg.Upstreams[0].Resolve.Every = 20 * time.Millisecond
	g := StartWith(t, cfg, func(e *server.Engine) { e.Lookup = n.lookup })

	eventually(t, "the first look-up", func() bool { return n.asks.Load() > 0 })
	eventually(t, "an answer", func() bool { return ask(t, g, "POST", "/", "").status == 503 })
	ask(t, g, "POST", "/", "").want(t, outcome.NoEndpoint)
	if g.Core.State().Ready {
		t.Error("ready without any address")
	}

	n.set(nil, "127.0.0.1", "::1") // of a name with both kinds, one is used
	eventually(t, "an address", func() bool { return g.Core.State().Ready })
	if e := g.Core.State().Upstreams[0].Endpoints; len(e) != 1 || e[0].Address != u.Address {
		t.Errorf("endpoints %+v, want %s alone", e, u.Address)
	}
	if a := ask(t, g, "POST", "/", ""); a.status != 200 {
		t.Errorf("%+v", a)
	}

	n.set(errors.New("the resolver is down"))
	before := n.asks.Load()
	eventually(t, "failing look-ups", func() bool { return n.asks.Load() > before+1 })
	if a := ask(t, g, "POST", "/", ""); a.status != 200 {
		t.Errorf("with the resolver down, the addresses known are kept; got %+v", a)
	}

	n.set(nil, "127.0.0.2", "127.0.0.3")
	eventually(t, "the new addresses", func() bool { return len(g.Core.State().Upstreams[0].Endpoints) == 2 })
	_ = g.Stop()
	for _, want := range []string{"does not resolve", "no such host", "resolves again"} {
		if !strings.Contains(g.Log(), want) {
			t.Errorf("the log does not say %q: %s", want, g.Log())
		}
	}
}

func TestUnreadable(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Server.Limits.HeaderBytes = 4096
	cfg.Server.Limits.Headers = 20
	cfg.Server.Timeouts.Header = 200 * time.Millisecond
	cfg.Routes[0].MaxBody = 1000
	g := Start(t, cfg)
	for name, c := range map[string]struct {
		request string
		code    outcome.Code
	}{
		"no HTTP":            {"hello\r\n\r\n", outcome.BadRequest},
		"two lengths":        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", outcome.BadRequest},
		"absolute form":      {"GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n", outcome.BadRequest},
		"both lengths":       {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", outcome.BadRequest},
		"bare LF":            {"GET / HTTP/1.1\r\nHost: h\nX-A: 1\r\n\r\n", outcome.BadRequest},
		"folded":             {"GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n 2\r\n\r\n", outcome.BadRequest},
		"space in a name":    {"GET / HTTP/1.1\r\nHost: h\r\nX A: 1\r\n\r\n", outcome.BadRequest},
		"identity":           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na", outcome.BadRequest},
		"dot segments":       {"GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n", outcome.BadRequest},
		"escaped letter":     {"GET /%61 HTTP/1.1\r\nHost: h\r\n\r\n", outcome.BadRequest},
		"CONNECT":            {"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", outcome.BadRequest},
		"TRACE":              {"TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", outcome.MethodUnknown},
		"lower-case method":  {"get / HTTP/1.1\r\nHost: h\r\n\r\n", outcome.MethodUnknown},
		"HTTP/1.2":           {"GET / HTTP/1.2\r\nHost: h\r\n\r\n", outcome.VersionUnsupported},
		"credentials":        {"GET / HTTP/1.1\r\nHost: user:secret@h\r\n\r\n", outcome.BadRequest},
		"fragment":           {"GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", outcome.BadRequest},
		"long head":          {"GET / HTTP/1.1\r\nHost: h\r\nX-A: " + strings.Repeat("a", 5000) + "\r\n\r\n", outcome.HeadTooLarge},
		"many fields":        {"GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X-A: 1\r\n", 20) + "\r\n", outcome.HeadTooLarge},
		"large body":         {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n" + strings.Repeat("a", 1001), outcome.BodyTooLarge},
		"large body, chunks": {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("a", 1001) + "\r\n0\r\n\r\n", outcome.BodyTooLarge},
		"slow head":          {"GET / HTTP/1.1\r\nHos", outcome.RequestTimeout},
	} {
		t.Run(name, func(t *testing.T) { raw(t, g, "GET", c.request).want(t, c.code) })
	}
	if n := len(u.Seen()); n != 0 {
		t.Errorf("the backend saw %d of these", n)
	}
}

func TestRouting_NotFoundAndNotAllowed(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Routes[0].Path = "/v1/charges"
	cfg.Routes[0].Methods = []string{"POST", "GET"}
	g := Start(t, cfg)
	ask(t, g, "GET", "/v1/charges/", "").want(t, outcome.NoRoute)
	ask(t, g, "GET", "/V1/charges", "").want(t, outcome.NoRoute)
	a := ask(t, g, "DELETE", "/v1/charges?x", "")
	a.want(t, outcome.MethodNotAllowed)
	if allow := a.header.Get("Allow"); allow != "GET, POST" {
		t.Errorf("Allow: %q", allow)
	}
	ask(t, g, "OPTIONS", "/v1/charges", "").want(t, outcome.MethodNotAllowed)
}

func TestRequestID_OnlyFromTrustedPeers(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	for _, trusted := range []bool{false, true} {
		cfg := Config(u.URL)
		if trusted {
			cfg.Server.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		g := Start(t, cfg)
		a := ask(t, g, "GET", "/", "", "X-Request-Id: mine-1", "X-Forwarded-For: 1.2.3.4")
		id := a.header.Get("X-Request-Id")
		if (id == "mine-1") != trusted {
			t.Errorf("trusted %v: the answer's id is %q", trusted, id)
		}
		seen := u.Seen()
		head := seen[len(seen)-1].Head
		if strings.Count(head, "X-Request-Id: "+id+"\r\n") != 1 || strings.Count(head, "X-Request-Id") != 1 {
			t.Errorf("trusted %v: the backend saw %q, want the id %q once", trusted, head, id)
		}
		if strings.Contains(head, "1.2.3.4") != trusted {
			t.Errorf("trusted %v: the backend saw %q", trusted, head)
		}
	}
}

func TestPipelining_AnswersInOrder(t *testing.T) {
	u := NewUpstream(t, func(c net.Conn, r Seen) {
		path := strings.Fields(r.Head)[1]
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(path), path)
	})
	g := Start(t, Config(u.URL))
	c := g.Dial(t)
	var all strings.Builder
	for i := range 20 {
		fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i)
	}
	_, _ = io.WriteString(c, all.String())
	r := bufio.NewReader(c)
	for i := range 20 {
		if a := read(t, r, "GET"); a.body != fmt.Sprintf("/%d", i) {
			t.Fatalf("answer %d is %q", i, a.body)
		}
	}
}

func TestBarrier_AFaultIsAnAnswer(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	g := Start(t, Config(u.URL))
	if a := ask(t, g, "GET", "/", ""); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	payments := g.Core.Upstreams()[0]
	// An endpoint without connections is a fault that no configuration can make.
	payments.Replace([]upstream.Address{{HostPort: "127.0.0.1:9"}}, func(upstream.Address) any { return nil })
	ask(t, g, "POST", "/", "").want(t, outcome.Internal)
	ask(t, g, "GET", "/", "").want(t, outcome.Internal)
	if s := g.Core.State().Upstreams[0]; s.InFlight != 0 || s.Endpoints[0].InFlight != 0 {
		t.Errorf("after the faults %+v is held", s)
	}
	payments.Replace(nil, nil)
	_ = g.Stop()
	if !strings.Contains(g.Log(), "fault in the gateway") {
		t.Errorf("the log does not say so: %s", g.Log())
	}
}

func TestLog_OneEventPerExchange(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	g := Start(t, Config(u.URL))
	a := ask(t, g, "POST", "/v1/charges?card=4242", "body")
	_ = g.Stop()
	var found int
	for line := range strings.Lines(g.Log()) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if event["message"] != "exchange" {
			continue
		}
		found++
		for key, want := range map[string]any{
			"method": "POST", "path": "/v1/charges", "route": "all", "upstream": "payments", "endpoint": u.Address,
			"status": 200.0, "code": "answered", "outcome": "done", "attempts": 1.0, "bytes_in": 4.0, "bytes_out": 2.0,
			"caller": "127.0.0.1", "request_id": a.header.Get("X-Request-Id"),
		} {
			if event[key] != want {
				t.Errorf("%s is %v, want %v", key, event[key], want)
			}
		}
		for _, key := range []string{"connect_ms", "head_ms", "total_ms"} {
			if n, ok := event[key].(float64); !ok || n <= 0 {
				t.Errorf("%s is %v", key, event[key])
			}
		}
	}
	if found != 1 || strings.Contains(g.Log(), "4242") {
		t.Errorf("%d events, want one, and no query in it: %s", found, g.Log())
	}
}
