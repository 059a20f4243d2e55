package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
)

// startCounting runs a backend that reads the body, answers two bytes, and counts.
func startCounting(t *testing.T) (url string, count *atomic.Int64) {
	t.Helper()
	count = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		count.Add(1)
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(srv.Close)
	return srv.URL, count
}

// number returns the integer that the pattern's only group matches in report.
func number(t *testing.T, report, pattern string) int64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(report)
	if m == nil {
		t.Fatalf("nothing in the report matches %s:\n%s", pattern, report)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func absent(t *testing.T, report, pattern string) {
	t.Helper()
	if m := regexp.MustCompile(pattern).FindString(report); m != "" {
		t.Errorf("the report says %q:\n%s", m, report)
	}
}

func TestWrk_NoErrors(t *testing.T) {
	const connections = 16
	backend, count := startCounting(t)
	g := startGateway(t, oneUpstream(backend))
	wrk := installed(t, "wrk", "apt-get install wrk")
	report := output(t, wrk, "-t1", fmt.Sprintf("-c%d", connections), "-d2s", g.url("/v1/charges"))

	done := number(t, report, `(\d+) requests in`)
	absent(t, report, `Socket errors.*`)
	absent(t, report, `Non-2xx.*`)
	// wrk leaves with up to one request per connection on its way.
	if got := count.Load(); done == 0 || got < done || got > done+connections {
		t.Errorf("wrk completed %d, the backend got %d: want as many, and at most %d more", done, got, connections)
	}
}

func TestHey_NoErrors(t *testing.T) {
	const requests = 4000
	for _, args := range [][]string{
		{"-m", "GET"},
		{"-m", "POST", "-T", "application/json", "-d", `{"amount":1250,"currency":"eur"}`},
		{"-m", "GET", "-disable-keepalive"},
	} {
		t.Run(fmt.Sprint(args[1:]), func(t *testing.T) {
			backend, count := startCounting(t)
			g := startGateway(t, oneUpstream(backend))
			all := append([]string{"-n", strconv.Itoa(requests), "-c", "16"}, args...)
			report := output(t, must(t, heyBinary), append(all, g.url("/v1/charges"))...)

			if ok := number(t, report, `\[200\]\s+(\d+) responses`); ok != requests {
				t.Errorf("%d answers of 200, want %d:\n%s", ok, requests, report)
			}
			absent(t, report, `Error distribution`)
			if got := count.Load(); got != requests {
				t.Errorf("the backend got %d requests, want %d", got, requests)
			}
		})
	}
}
