package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// observed is a configuration with two routes of one upstream.
func observed(backend string) string {
	return fmt.Sprintf(`
upstreams:
  - name: backend
    endpoints: [%q]
routes:
  - {name: charges, path: /v1/charges, methods: [POST], upstream: backend, max_body: 1KiB}
  - {name: reads, path: "/v1/{path:*}", methods: [GET], upstream: backend}
`, backend)
}

// drive sends a known mix: 7 charges, 5 reads of which each is a backend's 404, one
// charge that is too large, three requests without a route.
func drive(t *testing.T, g *gateway) {
	t.Helper()
	caller := newCaller(t)
	want := func(status int, method, path string, body io.Reader) {
		t.Helper()
		req, err := http.NewRequest(method, g.url(path), body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := caller.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		readBody(t, resp)
		if resp.StatusCode != status {
			t.Fatalf("%s %s: %d, want %d", method, path, resp.StatusCode, status)
		}
	}
	for range 7 {
		want(200, "POST", "/v1/charges", strings.NewReader("amount=5"))
	}
	for range 5 {
		want(404, "GET", "/v1/missing?card=4242", nil)
	}
	want(413, "POST", "/v1/charges", strings.NewReader(strings.Repeat("x", 2000)))
	for range 3 {
		want(404, "GET", "/elsewhere", nil)
	}
}

func driven(_ int, r wireRequest) string {
	if r.method() == "GET" {
		return jsonAnswer(404, "", `{"error":"missing"}`)
	}
	return jsonAnswer(200, "", `{"id":"ch_1"}`)
}

// scrape parses /metrics with Prometheus's own parser.
func scrape(t *testing.T, g *gateway) map[string]*dto.MetricFamily {
	t.Helper()
	status, text := g.adminGet(t, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d", status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("/metrics is not Prometheus text: %v\n%s", err, text)
	}
	return families
}

// sum adds up the counters of a family whose labels have these values.
func sum(families map[string]*dto.MetricFamily, family string, labels ...string) float64 {
	total := 0.0
	for _, m := range families[family].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return total
}

func TestMetrics_CountWhatWasSent(t *testing.T) {
	s := startStub(t, driven)
	g := startGateway(t, observed(s.url()))
	drive(t, g)

	// The last exchange is counted after its answer was written.
	waitFor(t, "16 exchanges to be counted", 5*time.Second, func() bool {
		return sum(scrape(t, g), "sluice_requests_total") >= 16
	})
	families := scrape(t, g)
	for _, tc := range []struct {
		want   float64
		family string
		labels []string
	}{
		{16, "sluice_requests_total", nil},
		{7, "sluice_requests_total", []string{"route", "charges", "status", "2xx", "code", "answered"}},
		{1, "sluice_requests_total", []string{"route", "charges", "status", "4xx", "code", "body_too_large"}},
		{5, "sluice_requests_total", []string{"route", "reads", "status", "4xx", "code", "answered"}},
		{3, "sluice_requests_total", []string{"status", "4xx", "code", "no_route"}},
		{12, "sluice_first_tries_total", []string{"upstream", "backend"}},
		{12, "sluice_attempts_total", []string{"upstream", "backend", "class", "answered"}},
		{12, "sluice_attempts_total", nil},
		{8, "sluice_request_seconds", []string{"route", "charges"}},
		{0, "sluice_exchanges_in_flight", nil},
		{0, "sluice_log_dropped_total", nil},
	} {
		if families[tc.family] == nil {
			t.Errorf("no family %s", tc.family)
		}
		if got := sum(families, tc.family, tc.labels...); got != tc.want {
			t.Errorf("%s%v is %v, want %v", tc.family, tc.labels, got, tc.want)
		}
	}
	opened := sum(families, "sluice_connections_opened_total")
	if reused := sum(families, "sluice_connections_reused_total"); opened < 1 || opened+reused != 12 {
		t.Errorf("%v connections opened and %v reused, want 12 attempts in all", opened, reused)
	}
}

// accessEvent is a line of the log about one exchange.
type accessEvent struct {
	Message   string  `json:"message"`
	Time      string  `json:"time"`
	RequestID string  `json:"request_id"`
	Caller    string  `json:"caller"`
	Method    string  `json:"method"`
	Path      string  `json:"path"`
	Route     string  `json:"route"`
	Upstream  string  `json:"upstream"`
	Endpoint  string  `json:"endpoint"`
	Status    int     `json:"status"`
	Code      string  `json:"code"`
	BytesIn   int64   `json:"bytes_in"`
	BytesOut  int64   `json:"bytes_out"`
	Total     float64 `json:"total_ms"`
}

func accessEvents(t *testing.T, g *gateway) []accessEvent {
	t.Helper()
	var events []accessEvent
	for _, line := range g.stdout.all() {
		var e accessEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("a log line that is no JSON: %v\n%s", err, line)
		}
		if e.Message == "exchange" {
			events = append(events, e)
		}
	}
	return events
}

func TestAccessLog_OneLinePerExchange(t *testing.T) {
	s := startStub(t, driven)
	g := startGateway(t, observed(s.url()))
	drive(t, g)
	waitFor(t, "16 lines in the log", 5*time.Second, func() bool { return len(accessEvents(t, g)) >= 16 })
	g.stop(t)

	count := map[string]int{}
	ids := map[string]bool{}
	for _, e := range accessEvents(t, g) {
		count[fmt.Sprint(e.Route, " ", e.Status, " ", e.Code)]++
		ids[e.RequestID] = true
		if e.RequestID == "" || e.Time == "" || !strings.HasPrefix(e.Caller, "127.0.0.1") || e.Total < 0 {
			t.Errorf("incomplete: %+v", e)
		}
		if strings.Contains(e.Path, "4242") {
			t.Errorf("a query is in the log: %+v", e)
		}
		if e.Code == "answered" && (e.Upstream != "backend" || !strings.Contains(e.Endpoint, s.addr) || e.Total == 0) {
			t.Errorf("not said where it went, or how long that took: %+v", e)
		}
		if e.Route == "charges" && e.Status == 200 && (e.BytesIn != 8 || e.BytesOut != 13) {
			t.Errorf("%d bytes in and %d out, want 8 and 13", e.BytesIn, e.BytesOut)
		}
	}
	want := map[string]int{"charges 200 answered": 7, "reads 404 answered": 5, "charges 413 body_too_large": 1, " 404 no_route": 3}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("logged %v, want %v", count, want)
	}
	if len(ids) != 16 {
		t.Errorf("%d request ids for 16 exchanges", len(ids))
	}
}

// The id that a caller reads is the one in the log and the one the backend got.
func TestAccessLog_RequestIDIsTheSameEverywhere(t *testing.T) {
	s := startStub(t, driven)
	g := startGateway(t, observed(s.url()))
	id := curl(t, "-d", "amount=5", g.url("/v1/charges")).header.Get("X-Request-Id")
	if got := s.requests()[0].value("X-Request-Id"); id == "" || got != id {
		t.Errorf("the caller got id %q, the backend %q", id, got)
	}
	waitFor(t, "the line in the log", 5*time.Second, func() bool { return len(accessEvents(t, g)) == 1 })
	if e := accessEvents(t, g)[0]; e.RequestID != id {
		t.Errorf("logged as %q, want %q", e.RequestID, id)
	}
}

// Nobody reads the log: its pipe is full after a few lines. Traffic goes on, what
// is lost is counted, and the gateway still ends when asked.
func TestLog_StuckOutputHoldsNothingUp(t *testing.T) {
	const requests = 20000
	backend, count := startCounting(t)
	g := &gateway{addr: freeAddr(t), admin: freeAddr(t)}
	g.program = newProgram(must(t, gatewayBinary), "run", "--config", writeConfig(t, g, oneUpstream(backend)))
	unread, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unread.Close() })
	g.cmd.Stdout, g.cmd.Stderr = out, out
	g.begin(t)
	out.Close() // the gateway holds the only writing end
	g.waitAdmin(t, "/readyz", http.StatusOK)

	report := output(t, must(t, heyBinary), "-n", fmt.Sprint(requests), "-c", "16", g.url("/v1/charges"))
	if ok := number(t, report, `\[200\]\s+(\d+) responses`); ok != requests || count.Load() != requests {
		t.Errorf("%d answers of 200, the backend got %d, want %d:\n%s", ok, count.Load(), requests, report)
	}
	if dropped := sum(scrape(t, g), "sluice_log_dropped_total"); dropped < 1 || dropped > requests {
		t.Errorf("%v log lines counted as dropped, want some and at most %d", dropped, requests)
	}
	g.signal(t, syscall.SIGTERM)
	if code := g.wait(t); code != 0 {
		t.Errorf("exit code %d with a stuck log, want 0", code)
	}
}
