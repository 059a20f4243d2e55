package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// gateway is a running gateway.
type gateway struct {
	*program
	addr  string // where callers connect, host:port
	admin string // the admin listener, host:port
}

func (g *gateway) url(path string) string { return "http://" + g.addr + path }

// startGateway runs the gateway with the given `upstreams:` and `routes:` and
// waits until it is ready.
func startGateway(t *testing.T, config string) *gateway {
	t.Helper()
	g := beginGateway(t, config)
	g.waitAdmin(t, "/readyz", http.StatusOK)
	g.waitListening(t, g.addr)
	return g
}

// beginGateway is startGateway without the wait.
func beginGateway(t *testing.T, config string) *gateway {
	t.Helper()
	g := &gateway{addr: freeAddr(t), admin: freeAddr(t)}
	path := writeConfig(t, g, config)
	g.program = start(t, must(t, gatewayBinary), "run", "--config", path)
	t.Cleanup(func() {
		// Whatever happened to it, a gateway that is asked to end does so in good order.
		if code := g.stop(t); code != 0 {
			t.Errorf("gateway exited %d on SIGTERM, want 0", code)
		}
	})
	return g
}

// writeConfig completes a configuration by addresses and a state directory.
func writeConfig(t *testing.T, g *gateway, config string) string {
	t.Helper()
	dir := t.TempDir()
	head := fmt.Sprintf("server: {listen: %q}\nadmin: {listen: %q}\nstate_dir: %q\n",
		g.addr, g.admin, filepath.Join(dir, "state"))
	return writeFile(t, filepath.Join(dir, "gateway.yaml"), head+config)
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// oneUpstream is the usual configuration: everything goes to one backend.
func oneUpstream(backend string) string {
	return fmt.Sprintf(`
upstreams:
  - name: backend
    endpoints: [%q]
routes:
  - name: everything
    path: /{path:*}
    upstream: backend
    timeout: 10s
    max_body: 1MiB
`, backend)
}

// waitAdmin waits until the admin listener answers path with status.
func (g *gateway) waitAdmin(t *testing.T, path string, status int) {
	t.Helper()
	last := "no answer"
	defer func() {
		if t.Failed() {
			t.Logf("last answer of %s: %s", path, last)
		}
	}()
	waitFor(t, fmt.Sprintf("admin %s to answer %d", path, status), 15*time.Second, func() bool {
		if !g.running() {
			t.Fatal("the gateway ended")
		}
		resp, err := adminCaller.Get("http://" + g.admin + path)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		last = fmt.Sprintf("%d %s", resp.StatusCode, body)
		return resp.StatusCode == status
	})
}

// adminGet returns status and body of one admin answer.
func (g *gateway) adminGet(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := adminCaller.Get("http://" + g.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, readBody(t, resp)
}

// adminCaller keeps no connection: a drain is never held up by the tests' own polling.
var adminCaller = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// newCaller returns an HTTP caller that adds nothing of its own, follows no
// redirect, and keeps up to 64 connections until the test ends.
func newCaller(t *testing.T) *http.Client {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func readBody(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		t.Fatalf("read body after status %d: %v", resp.StatusCode, err)
	}
	return string(body)
}

// problem is the body of an answer that the gateway made itself.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
	Outcome   string `json:"outcome"`
}

// wantProblem checks an answer that the gateway made: RFC 9457, never stored,
// with the same request id in head and body.
func wantProblem(t *testing.T, status int, header http.Header, body string, wantStatus int) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("status %d: body is not a problem document: %v\n%s", status, err, body)
	}
	if status != wantStatus || p.Status != wantStatus {
		t.Errorf("status %d, in the problem %d, want %d; body %s", status, p.Status, wantStatus, body)
	}
	if got := header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q, want application/problem+json", got)
	}
	if got := header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q, want no-store", got)
	}
	if p.Code == "" || p.Title == "" {
		t.Errorf("problem without code or title: %s", body)
	}
	if id := header.Get("X-Request-Id"); id == "" || p.RequestID != id {
		t.Errorf("request id %q in the head, %q in the body", id, p.RequestID)
	}
	return p
}
