package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// refuses runs the gateway with arguments that cannot work. It returns what it
// said: on standard error, after which it has exited 1.
func refuses(t *testing.T, args ...string) []string {
	t.Helper()
	p := start(t, must(t, gatewayBinary), args...)
	if code := p.wait(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	return p.stderr.all()
}

// wantOneLine checks that there is nothing but one line, and what it mentions.
func wantOneLine(t *testing.T, lines []string, mentions ...string) {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for _, m := range mentions {
		if !strings.Contains(lines[0], m) {
			t.Errorf("%q does not mention %q", lines[0], m)
		}
	}
}

func TestCheck_EveryFaultWithFileAndLine(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "faulty.yaml"), `server:
  listen: "127.0.0.1:8080"
  timeuots: {header: 5s}
upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
    connections: {dial_timeout: 500}
routes:
  - name: charges
    path: /v1/charges
    upstream: paymets
    timeout: soon
  - name: nowhere
    upstream: payments
`)
	got := refuses(t, "check", "--config", path)
	for line, mention := range map[int]string{
		3:  `did you mean "timeouts"`,
		7:  "dial_timeout", // a bare number has no unit
		11: `did you mean "payments"`,
		12: "timeout",
		13: "path", // missing from the entry that begins there
	} {
		place := fmt.Sprintf("%s:%d: ", path, line)
		found := false
		for _, l := range got {
			found = found || strings.HasPrefix(l, place) && strings.Contains(l, mention)
		}
		if !found {
			t.Errorf("no line %q… that mentions %q", place, mention)
		}
	}
	form := regexp.MustCompile(`^` + regexp.QuoteMeta(path) + `:\d+: \S+: .+`)
	for _, l := range got {
		if !form.MatchString(l) {
			t.Errorf("not of the form file:line: path: text: %q", l)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d faults reported, want 5", len(got))
	}
	// run says the same.
	if again := refuses(t, "run", "--config", path); strings.Join(again, "\n") != strings.Join(got, "\n") {
		t.Errorf("run says\n%s\ncheck said\n%s", strings.Join(again, "\n"), strings.Join(got, "\n"))
	}
}

func TestCheck_GoodFile(t *testing.T) {
	g := &gateway{addr: freeAddr(t), admin: freeAddr(t)}
	path := writeConfig(t, g, oneUpstream("http://127.0.0.1:9001"))
	p := start(t, must(t, gatewayBinary), "check", "--config", path)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestRun_AddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()

	g := &gateway{addr: addr, admin: freeAddr(t)}
	wantOneLine(t, refuses(t, "run", "--config", writeConfig(t, g, oneUpstream("http://127.0.0.1:9001"))), addr, "in use")
	g = &gateway{addr: freeAddr(t), admin: addr}
	wantOneLine(t, refuses(t, "run", "--config", writeConfig(t, g, oneUpstream("http://127.0.0.1:9001"))), addr, "in use")
}

func TestRun_StateDirNotWritable(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(writeFile(t, filepath.Join(dir, "file"), "not a directory"), "state")
	path := writeFile(t, filepath.Join(dir, "gateway.yaml"), fmt.Sprintf(
		"server: {listen: %q}\nadmin: {listen: \"off\"}\nstate_dir: %q\n%s", freeAddr(t), below, oneUpstream("http://127.0.0.1:9001")))
	wantOneLine(t, refuses(t, "run", "--config", path), "state_dir", filepath.Join(dir, "file"))
}

func TestRun_NoFileNeeded(t *testing.T) {
	s := startStub(t, echo)
	addr := freeAddr(t)
	p := newProgram(must(t, gatewayBinary), "run", "--listen", addr, "--upstream", s.url(), "--admin.listen", freeAddr(t))
	p.cmd.Dir = t.TempDir() // where ./state comes to lie
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.begin(t)
	p.waitListening(t, addr)
	if got := curl(t, "-d", "amount=5", "http://"+addr+"/v1/charges"); got.status != 200 || !strings.HasSuffix(got.body, "amount=5") {
		t.Errorf("%d %q", got.status, got.body)
	}
	if said := p.stdout.String() + p.stderr.String(); !strings.Contains(said, addr) || !strings.Contains(said, s.addr) {
		t.Errorf("the start does not say what is served where:\n%s", said)
	}
}

// A name that does not resolve is no reason not to start: it may come, and until
// then its callers are told.
func TestRun_UpstreamNameThatDoesNotResolve(t *testing.T) {
	g := beginGateway(t, oneUpstream("http://nx.invalid:1"))
	g.waitListening(t, g.addr)
	g.waitAdmin(t, "/readyz", http.StatusServiceUnavailable)
	g.waitAdmin(t, "/healthz", http.StatusOK)
	wantReady(t, g, map[string]bool{"backend": false})

	got := curl(t, "-d", "amount=5", g.url("/v1/charges"))
	p := wantProblem(t, got.status, got.header, got.body, http.StatusServiceUnavailable)
	if p.Outcome != "not-sent" || got.header.Get("Retry-After") == "" {
		t.Errorf("outcome %q, Retry-After %q: want not-sent and one", p.Outcome, got.header.Get("Retry-After"))
	}
	if strings.Contains(got.body, "nx.invalid") {
		t.Errorf("the answer tells internals: %s", got.body)
	}
	if !strings.Contains(g.stdout.String(), "nx.invalid") {
		t.Errorf("the log does not name it:\n%s", g.stdout.tail())
	}
}

func TestRun_OneUpstreamThatDoesNotResolveLeavesTheOthers(t *testing.T) {
	s := startStub(t, echo)
	g := startGateway(t, fmt.Sprintf(`
upstreams:
  - name: lost
    endpoints: ["http://nx.invalid:1"]
  - name: found
    endpoints: [%q]
routes:
  - {name: lost, path: "/lost/{path:*}", upstream: lost}
  - {name: found, path: "/found/{path:*}", upstream: found}
`, s.url()))
	wantReady(t, g, map[string]bool{"lost": false, "found": true})
	if got := curl(t, g.url("/found/x")); got.status != 200 {
		t.Errorf("the upstream that resolves: status %d, want 200", got.status)
	}
	got := curl(t, g.url("/lost/x"))
	wantProblem(t, got.status, got.header, got.body, http.StatusServiceUnavailable)
}

// wantReady checks what /readyz says of each upstream.
func wantReady(t *testing.T, g *gateway, want map[string]bool) {
	t.Helper()
	_, body := g.adminGet(t, "/readyz")
	var said struct {
		Upstreams []struct {
			Name  string `json:"name"`
			Ready bool   `json:"ready"`
		} `json:"upstreams"`
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		t.Fatalf("/readyz: %v\n%s", err, body)
	}
	got := map[string]bool{}
	for _, u := range said.Upstreams {
		got[u.Name] = u.Ready
	}
	if !maps.Equal(got, want) {
		t.Errorf("/readyz says %v, want %v\n%s", got, want, body)
	}
}
