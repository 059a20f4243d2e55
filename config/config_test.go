package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a file without a fault, to put others beside.
const small = `upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
routes:
  - name: all
    path: /{path:*}
    upstream: payments
`

// inFolder writes sluice.yaml into a folder of its own and goes there.
func inFolder(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("sluice.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// loadText loads text as the file sluice.yaml, with src beside it.
func loadText(t *testing.T, text string, src Source) (Config, []Remark, error) {
	t.Helper()
	inFolder(t, text)
	src.File = "sluice.yaml"
	return Load(src)
}

func mustLoad(t *testing.T, text string, src Source) (Config, []Remark) {
	t.Helper()
	c, remarks, err := loadText(t, text, src)
	if err != nil {
		t.Fatalf("got faults:\n%v\nwant none in:\n%s", err, text)
	}
	return c, remarks
}

// wantLines compares line by line, so that a failure shows which one differs. A
// wanted line that ends in "..." leaves the rest to the package whose text it is.
func wantLines(t *testing.T, what, got string, want ...string) {
	t.Helper()
	lines := strings.Split(got, "\n")
	if got == "" {
		lines = nil
	}
	for i := range max(len(lines), len(want)) {
		g, w := "(none)", "(none)"
		if i < len(lines) {
			g = lines[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if beginning, open := strings.CutSuffix(w, "..."); g != w && !(open && strings.HasPrefix(g, beginning)) {
			t.Errorf("%s: line %d\ngot  %s\nwant %s", what, i+1, g, w)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func remarkText(remarks []Remark) string {
	lines := make([]string, len(remarks))
	for i, r := range remarks {
		lines[i] = r.String()
	}
	return strings.Join(lines, "\n")
}

func TestDefault_NeedsUpstreamsAndRoutesAlone(t *testing.T) {
	wantLines(t, "Default", errorText(Default().Validate()),
		"upstreams: is required, at least one",
		"routes: is required, at least one")
}

func TestValidate_NamesEveryFault(t *testing.T) {
	c := Default()
	u := DefaultUpstream()
	u.Name, u.Limit.Max = "payments", 0
	r := DefaultRoute()
	r.Name, r.Path, r.Upstream, r.Timeout, r.Stall, r.Response = "all", "/{path:*}", "payment", 0, 0, 9
	c.Upstreams, c.Routes = []Upstream{u}, []Route{r}
	c.Server.Listen = []string{":8080", "9001"}
	c.StateDir = ""
	wantLines(t, "Validate", errorText(c.Validate()),
		`server.listen[1]: "9001" is not an address, write host:port, ":port" or "unix:/absolute/path"`,
		`state_dir: "" is not the name of a folder`,
		`upstreams[payments].endpoints: is required, for example ["http://127.0.0.1:9001"]`,
		`upstreams[payments].limit.max: 0 is too small, at least 1`,
		`routes[all].timeout: 0s is too short, at least 1ms`,
		`routes[all].stall: 0s is too small, at least 1ms`,
		`routes[all].response: response 9 is unknown, bounded or stream`,
		`routes[all].upstream: "payment" is not an upstream, did you mean "payments"?`)
}

func TestLoad_TakesWhatLaboratoriesWrite(t *testing.T) {
	files, err := filepath.Glob("testdata/labs/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	for _, file := range files {
		c, _, err := Load(Source{File: file})
		if err != nil {
			t.Errorf("got faults, want none:\n%v", err)
			continue
		}
		if c.Server.Listen[0] != "127.0.0.1:8080" || c.Upstreams[0].Endpoints[0] != "http://127.0.0.1:9001" {
			t.Errorf("%s: got %v and %v", file, c.Server.Listen, c.Upstreams[0].Endpoints)
		}
	}
}

func TestLoad_TellsWhatItDoesNotActOn(t *testing.T) {
	t.Chdir("testdata")
	c, remarks, err := Load(Source{File: "format.yaml"})
	if err != nil {
		t.Fatalf("got faults, want none:\n%v", err)
	}
	if len(c.Routes) != 2 || c.Routes[0].Name != "charges" || c.Routes[1].Name != "everything-else" {
		t.Errorf("got routes %+v", c.Routes)
	}
	const usual = ": accepted, not acted on by this version"
	const writes = ": accepted, not acted on: writes are not protected by idempotency in this version"
	wantLines(t, "remarks", remarkText(remarks),
		"format.yaml:6: server.http2: accepted, not acted on: this version serves HTTP/1.1",
		"format.yaml:16: server.limits.soft_share"+usual,
		"format.yaml:18: server.priority_header"+usual,
		"format.yaml:29: idempotency"+writes,
		"format.yaml:43: retry_budget"+usual,
		"format.yaml:51: upstreams[payments].retry: accepted, not acted on: nothing is sent again in this version",
		"format.yaml:60: upstreams[payments].limit.algorithm: accepted, not acted on: in this version the limit is max and does not adapt",
		"format.yaml:61: upstreams[payments].limit.initial"+usual,
		"format.yaml:62: upstreams[payments].limit.min"+usual,
		"format.yaml:64: upstreams[payments].limit.queue.standing"+usual,
		"format.yaml:65: upstreams[payments].limit.critical_share"+usual,
		"format.yaml:67: upstreams[payments].breaker"+usual,
		"format.yaml:76: upstreams[payments].health"+usual,
		"format.yaml:77: upstreams[payments].deadline"+usual,
		"format.yaml:85: routes[charges].priority"+usual,
		"format.yaml:92: routes[charges].deadline"+usual,
		"format.yaml:93: routes[charges].idempotency"+writes,
		"format.yaml:103: routes[charges].defer"+usual,
	)
}

func TestLoad_WhatIsOffGivesNoRemark(t *testing.T) {
	_, remarks := mustLoad(t, `server:
  tls: {}
  http2: false
  limits: {connections_per_address: 0}
tracing: {}
idempotency: {}
retry_budget: {mode: off, ratio: 0.2}
upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
    dedupes: false
    refused_statuses: []
    retry: {max_attempts: 1}
    breaker: {min_calls: 5, mode: off}
    health: {path: "", eject_after: 0}
    limit: {mode: off, queue: {}}
routes:
  - name: all
    path: /{path:*}
    upstream: payments
    priority: normal
    body: buffer
    deadline: {mode: off}
    idempotency: {mode: off, scope: {header: X-Merchant-Id}}
    rate_limit: {}
    when_open: reject
    defer:
`, Source{})
	wantLines(t, "remarks", remarkText(remarks))
}

func TestLoad_TellsOfEveryKeyNotActedOn(t *testing.T) {
	_, remarks := mustLoad(t, `server: {http2: true, limits: {connections_per_address: 5, soft_share: 0.5}}
tracing: {otlp: "http://127.0.0.1:4318"}
upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
    dedupes: true
    refused_statuses: [{status: 503, header: X-Not-Processed}]
    health: {path: /health}
    breaker: {mode: observe}
routes:
  - name: all
    path: /{path:*}
    upstream: payments
    attempt_timeout: auto
    rate_limit: {mode: enforce, rate: 100}
    defer: {allow_plaintext: false}
`, Source{Env: []string{"GATEWAY_UPSTREAMS__PAYMENTS__RETRY__MAX_ATTEMPTS=2", "GATEWAY_ROUTES__ALL__IDEMPOTENCY__MODE=off"},
		Flags: map[string]string{"routes.all.idempotency.required": "true"}})
	const usual = ": accepted, not acted on by this version"
	wantLines(t, "remarks", remarkText(remarks),
		"sluice.yaml:1: server.http2: accepted, not acted on: this version serves HTTP/1.1",
		"sluice.yaml:1: server.limits.soft_share"+usual,
		"sluice.yaml:2: tracing"+usual,
		"sluice.yaml:6: upstreams[payments].dedupes: accepted, not acted on: nothing is sent again in this version",
		"sluice.yaml:7: upstreams[payments].refused_statuses: accepted, not acted on: nothing is sent again in this version",
		"sluice.yaml:8: upstreams[payments].health"+usual,
		"sluice.yaml:9: upstreams[payments].breaker"+usual,
		"sluice.yaml:14: routes[all].attempt_timeout: accepted, not acted on: in this version auto is the default",
		"sluice.yaml:15: routes[all].rate_limit"+usual,
		"sluice.yaml:16: routes[all].defer"+usual,
		"GATEWAY_UPSTREAMS__PAYMENTS__RETRY__MAX_ATTEMPTS: upstreams[payments].retry.max_attempts: accepted, not acted on: nothing is sent again in this version",
		"--routes.all.idempotency.required: routes[all].idempotency.required: accepted, not acted on: writes are not protected by idempotency in this version",
	)
}

// Every row of the table has to lead somewhere: a row for a key that a Config holds
// by now, or below a value, would never be read.
func TestNotYet_RowsAreReachable(t *testing.T) {
	seen := map[string]bool{}
	for i := range notYet {
		row := &notYet[i]
		if seen[row.path] {
			t.Errorf("%s: stands in the table twice", row.path)
		}
		seen[row.path] = true
		k := schema()
		for part := range strings.SplitSeq(row.path, ".") {
			if k.entry != nil {
				k = k.entry
			}
			if k = k.keys[part]; k == nil {
				t.Fatalf("%s: is not part of the format", row.path)
			}
		}
		switch {
		case row.value != "":
			if k.values[row.value] != row || k.later != nil {
				t.Errorf("%s: the value %q is not found, or the key is not acted on anyway", row.path, row.value)
			}
		case k.later != row:
			t.Errorf("%s: is acted on, its row is not needed", row.path)
		}
	}
}
