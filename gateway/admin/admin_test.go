package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gateway is what the listener under test shows.
type gateway struct {
	ready Readiness
	state any
	level atomic.Value
	warns chan string
}

func newGateway() *gateway {
	g := &gateway{state: map[string]int{"in_flight": 3}, warns: make(chan string, 100)}
	g.level.Store("info")
	g.ready = Readiness{Ready: true, Upstreams: []UpstreamReady{{Name: "payments", Ready: true}}}
	return g
}

func (g *gateway) sources() Sources {
	return Sources{
		Ready:   func() Readiness { return g.ready },
		State:   func() any { return g.state },
		Metrics: func(w io.Writer) { _, _ = io.WriteString(w, "up 1\n") },
		Level:   func() string { return g.level.Load().(string) },
		SetLevel: func(level string) error {
			if level != "info" && level != "debug" {
				return fmt.Errorf("level %q is unknown", level)
			}
			g.level.Store(level)
			return nil
		},
		Warn: func(text string) { g.warns <- text },
	}
}

// serve serves g on a real socket until the test ends, and gives its address.
func serve(t *testing.T, cfg Config, g *gateway) net.Addr {
	t.Helper()
	s, err := New(cfg, g.sources())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-result; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr()
}

var onLoopback = Config{Listen: "127.0.0.1:0"}

// ask sends a request; the headers are pairs, Host among them.
func ask(t *testing.T, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestServer_AnswersEachEndpoint(t *testing.T) {
	url := "http://" + serve(t, onLoopback, newGateway()).String()
	for _, c := range []struct {
		method, path  string
		status        int
		kind, content string
	}{
		{"GET", "/healthz", 200, "text/plain; charset=utf-8", "ok\n"},
		{"GET", "/readyz", 200, "application/json", `"ready": true`},
		{"GET", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "up 1\n"},
		{"GET", "/state", 200, "application/json", `"in_flight": 3`},
		{"GET", "/log", 200, "application/json", `"level": "info"`},
		{"PUT", "/log?level=debug", 200, "application/json", `"level": "debug"`},
		{"GET", "/log", 200, "application/json", `"level": "debug"`},
		{"PUT", "/log?level=loud", 400, "application/json", `level \"loud\" is unknown`},
		{"PUT", "/log", 400, "application/json", `"error": "bad_level"`},
		{"GET", "/", 200, "text/plain; charset=utf-8", "/debug/pprof/"},
		{"GET", "/debug/pprof/", 200, "text/html; charset=utf-8", "goroutine"},
		{"GET", "/debug/pprof/goroutine?debug=1", 200, "text/plain; charset=utf-8", "goroutine profile"},
		{"GET", "/debug/pprof/cmdline", 200, "text/plain; charset=utf-8", "admin.test"},
		{"GET", "/debug/pprof/symbol", 200, "text/plain; charset=utf-8", "num_symbols"},
		{"GET", "/debug/pprof/trace?seconds=1", 200, "application/octet-stream", "go 1."},
		{"GET", "/debug/pprof/none", 404, "application/json", `"error": "not_found"`},
		{"GET", "/debug/pprof/profile?seconds=301", 400, "application/json", `"error": "bad_seconds"`},
		{"GET", "/debug/pprof/heap?seconds=-1", 400, "application/json", `"error": "bad_seconds"`},
		{"GET", "/debug/pprof/profile?seconds=0.5", 400, "application/json", `"error": "bad_seconds"`},
		{"GET", "/healthz/", 404, "application/json", `"error": "not_found"`},
		{"GET", "//healthz", 404, "application/json", `"error": "not_found"`},
		{"GET", "/debug/pprof", 404, "application/json", `"error": "not_found"`},
		{"GET", "/favicon.ico", 404, "application/json", `"status": 404`},
	} {
		response, body := ask(t, c.method, url+c.path)
		if response.StatusCode != c.status || response.Header.Get("Content-Type") != c.kind || !strings.Contains(body, c.content) {
			t.Errorf("%s %s: %d, %s, %.200q; want %d, %s, %q within", c.method, c.path,
				response.StatusCode, response.Header.Get("Content-Type"), body, c.status, c.kind, c.content)
		}
		if got := response.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s %s: Cache-Control %q, want no-store", c.method, c.path, got)
		}
	}
}

func TestServer_WrongMethodIsToldTheRightOnes(t *testing.T) {
	url := "http://" + serve(t, onLoopback, newGateway()).String()
	for _, c := range []struct{ method, path, allow string }{
		{"POST", "/healthz", "GET, HEAD"},
		{"DELETE", "/log", "GET, HEAD, PUT"},
		{"POST", "/log", "GET, HEAD, PUT"},
		{"PUT", "/debug/pprof/heap", "GET, HEAD, POST"},
		{"POST", "/debug/pprof/heap", "GET, HEAD"},
		{"OPTIONS", "/", "GET, HEAD"},
	} {
		response, body := ask(t, c.method, url+c.path)
		if response.StatusCode != 405 || response.Header.Get("Allow") != c.allow || !json.Valid([]byte(body)) {
			t.Errorf("%s %s: %d with Allow %q and %q, want 405 with %q and JSON", c.method, c.path,
				response.StatusCode, response.Header.Get("Allow"), body, c.allow)
		}
	}
	if response, body := ask(t, "HEAD", url+"/state"); response.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %d with %q, want 200 with nothing", response.StatusCode, body)
	}
}

func TestReadyz_TellsWhyAndForWhichUpstream(t *testing.T) {
	g := newGateway()
	g.ready = Readiness{
		Reasons:   []string{"draining"},
		Upstreams: []UpstreamReady{{Name: "a", Ready: true}, {Name: "b c", Reason: "no address"}},
	}
	url := "http://" + serve(t, onLoopback, g).String()
	for _, c := range []struct {
		query  string
		status int
		want   string
	}{
		{"", 503, `{"ready":false,"reasons":["draining"],"upstreams":[{"name":"a","ready":true},{"name":"b c","ready":false,"reason":"no address"}]}`},
		{"?upstream=a", 200, `{"name":"a","ready":true}`},
		{"?upstream=b+c", 503, `{"name":"b c","ready":false,"reason":"no address"}`},
		{"?upstream=d", 404, `{"detail":"no upstream has this name","error":"unknown_upstream","status":404}`},
		{"?upstream=", 404, `{"detail":"no upstream has this name","error":"unknown_upstream","status":404}`},
	} {
		response, body := ask(t, "GET", url+"/readyz"+c.query)
		var compact strings.Builder
		for _, line := range strings.Split(body, "\n") {
			compact.WriteString(strings.Replace(strings.TrimSpace(line), `": `, `":`, 1))
		}
		if response.StatusCode != c.status || compact.String() != c.want {
			t.Errorf("/readyz%s: %d %s, want %d %s", c.query, response.StatusCode, compact.String(), c.status, c.want)
		}
	}
}

func TestReadyz_WithoutUpstreamsTheListIsEmpty(t *testing.T) {
	g := newGateway()
	g.ready = Readiness{Ready: true}
	url := "http://" + serve(t, onLoopback, g).String()
	if _, body := ask(t, "GET", url+"/readyz"); !strings.Contains(body, `"upstreams": []`) {
		t.Errorf("%s, want an empty list of upstreams", body)
	}
}

func TestServer_FaultInASourceIsA500(t *testing.T) {
	g := newGateway()
	url := "http://" + serve(t, onLoopback, g).String()
	g.state = make(chan int) // no JSON
	if response, body := ask(t, "GET", url+"/state"); response.StatusCode != 500 || !strings.Contains(body, `"error": "internal"`) {
		t.Errorf("state that is no JSON: %d %s, want 500 internal", response.StatusCode, body)
	}
	g.state = bomb{}
	if response, _ := ask(t, "GET", url+"/state"); response.StatusCode != 500 {
		t.Errorf("state that panics: %d, want 500", response.StatusCode)
	}
	if text := <-g.warns; !strings.Contains(text, "/state: boom") {
		t.Errorf("the fault was told as %q, want its place and text", text)
	}
	if response, _ := ask(t, "GET", url+"/healthz"); response.StatusCode != 200 {
		t.Errorf("after that: %d, want 200", response.StatusCode)
	}
}

type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("boom") }
