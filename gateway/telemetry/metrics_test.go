package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/gateway/outcome"
)

// read gives what m writes, by name with labels.
func read(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	var out bytes.Buffer
	m.Write(&out)
	values := map[string]string{}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := cutLast(strings.TrimSuffix(line, "\n"), " ")
		if _, twice := values[name]; twice {
			t.Errorf("%s is written twice", name)
		}
		values[name] = value
	}
	return values
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func expect(t *testing.T, got map[string]string, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

func TestRoute_CountsExchanges(t *testing.T) {
	m := NewMetrics()
	r := m.Route("charges", "payments")
	r.Done(200, outcome.Passed, 3*time.Millisecond, 10, 100)
	r.Done(204, outcome.Passed, 4*time.Millisecond, 1, 0)
	r.Done(503, outcome.Shed, 0, 0, 5)
	r.Done(0, outcome.CallerGone, time.Hour, -1, -1)
	m.Route("", "").Done(404, outcome.NoRoute, 0, 0, 0)
	expect(t, read(t, m), map[string]string{
		`sluice_requests_total{route="charges",upstream="payments",status="2xx",code="answered"}`:     "2",
		`sluice_requests_total{route="charges",upstream="payments",status="5xx",code="shed"}`:         "1",
		`sluice_requests_total{route="charges",upstream="payments",status="none",code="caller_gone"}`: "1",
		`sluice_requests_total{route="none",upstream="none",status="4xx",code="no_route"}`:            "1",
		`sluice_request_bytes_total{route="charges",direction="in"}`:                                  "11",
		`sluice_request_bytes_total{route="charges",direction="out"}`:                                 "105",
		`sluice_request_seconds_count{route="charges"}`:                                               "4",
		`sluice_request_seconds_bucket{route="charges",le="0.0025"}`:                                  "1",
		`sluice_request_seconds_bucket{route="charges",le="0.005"}`:                                   "3",
		`sluice_request_seconds_bucket{route="charges",le="60"}`:                                      "3",
		`sluice_request_seconds_bucket{route="charges",le="+Inf"}`:                                    "4",
		`sluice_request_seconds_sum{route="charges"}`:                                                 "3600.007",
	})
}

// A status or code outside of the lists becomes no label of its own.
func TestRoute_LabelsAreBounded(t *testing.T) {
	m := NewMetrics()
	r := m.Route("r", "u")
	for status := -1000; status < 2000; status++ {
		for code := range 256 {
			r.Done(status, outcome.Code(code), 0, 0, 0)
		}
	}
	series := 0
	for name := range read(t, m) {
		if strings.HasPrefix(name, "sluice_requests_total{") {
			series++
		}
	}
	if want := len(statuses) * outcome.Codes; series != want {
		t.Errorf("%d series, want one for each of the %d pairs of status and code", series, want)
	}
}

func TestUpstream_CountsAttempts(t *testing.T) {
	m := NewMetrics()
	u := m.Upstream("payments")
	u.FirstTry()
	u.FirstTry()
	u.Attempt(outcome.Answered)
	u.Attempt(outcome.Answered)
	u.Attempt(outcome.NotSent)
	u.Attempt(outcome.Class(200))
	u.Opened()
	u.Reused()
	u.Reused()
	u.ConnectFailed()
	u.Head(250 * time.Millisecond)
	expect(t, read(t, m), map[string]string{
		`sluice_first_tries_total{upstream="payments"}`:                     "2",
		`sluice_attempts_total{upstream="payments",class="answered"}`:       "2",
		`sluice_attempts_total{upstream="payments",class="not-sent"}`:       "1",
		`sluice_attempts_total{upstream="payments",class="reset"}`:          "0",
		`sluice_connections_opened_total{upstream="payments"}`:              "1",
		`sluice_connections_reused_total{upstream="payments"}`:              "2",
		`sluice_connections_failed_total{upstream="payments"}`:              "1",
		`sluice_attempt_head_seconds_bucket{upstream="payments",le="0.1"}`:  "0",
		`sluice_attempt_head_seconds_bucket{upstream="payments",le="0.25"}`: "1",
		`sluice_attempt_head_seconds_sum{upstream="payments"}`:              "0.25",
		`sluice_attempt_head_seconds_count{upstream="payments"}`:            "1",
	})
}

func TestMetrics_SameNamesGiveTheSameHandles(t *testing.T) {
	m := NewMetrics()
	before, after, upstream := m.Route("a", "u"), m.Route("a", "v"), m.Upstream("u")
	if m.Route("a", "u") != before || m.Upstream("u") != upstream {
		t.Error("the same names gave another handle")
	}
	if before == after {
		t.Error("a route that moved to another upstream kept its handle")
	}
	before.Done(200, outcome.Passed, 0, 1, 0)
	after.Done(200, outcome.Passed, 0, 1, 0)
	expect(t, read(t, m), map[string]string{
		`sluice_request_seconds_count{route="a"}`:              "2",
		`sluice_request_bytes_total{route="a",direction="in"}`: "2",
	})
}

func TestGauge_LatestFunctionCountsAndNilTakesItAway(t *testing.T) {
	m := NewMetrics()
	value := func(f float64) func() float64 { return func() float64 { return f } }
	m.UpstreamGauge("sluice_limit", "payments", value(1))
	m.UpstreamGauge("sluice_limit", "payments", value(2.5))
	m.UpstreamGauge("sluice_limit", "gone", value(3))
	m.UpstreamGauge("sluice_limit", "gone", nil)
	m.UpstreamGauge("sluice_limit", "never", nil)
	got := read(t, m)
	expect(t, got, map[string]string{`sluice_limit{upstream="payments"}`: "2.5"})
	for _, name := range []string{"gone", "never"} {
		if v, there := got[Name("sluice_limit", "upstream", name)]; there {
			t.Errorf("gauge %q is shown as %s, want it gone", name, v)
		}
	}
	m.UpstreamGauge("sluice_limit", "gone", value(4))
	expect(t, read(t, m), map[string]string{`sluice_limit{upstream="gone"}`: "4"})
}

func TestCounter_MirrorsACountKeptElsewhere(t *testing.T) {
	m := NewMetrics()
	l := NewLog(DefaultConfig(), io.Discard)
	m.WatchLog(l)
	expect(t, read(t, m), map[string]string{"sluice_log_dropped_total": "0"})
	l.Logger().Info().Str("v", strings.Repeat("x", lineBytes)).Msg("too long")
	expect(t, read(t, m), map[string]string{"sluice_log_dropped_total": "1"})
}

func TestHistogram_BoundsAreInclusive(t *testing.T) {
	for i, bound := range bounds {
		var h histogram
		h.observe(bound)
		h.observe(bound + 1)
		if h.buckets[i].Load() != 1 || h.buckets[i+1].Load() != 1 {
			t.Errorf("%v and a nanosecond more are not in the buckets to both sides of %v", bound, bound)
		}
	}
	var h histogram
	h.observe(-time.Second)
	if h.buckets[0].Load() != 1 || h.nanos.Load() != 0 {
		t.Error("a negative duration does not count as zero")
	}
}

func TestMetrics_CountEverythingFromManyGoroutines(t *testing.T) {
	m := NewMetrics()
	const goroutines, each = 8, 1000
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := range each {
				m.Route("r", "u").Done(200, outcome.Passed, time.Duration(i)*time.Microsecond, 1, 2)
				if i%100 == 0 {
					m.Write(io.Discard)
					m.Gauge("sluice_own", func() float64 { return 1 })
				}
			}
		})
	}
	all.Wait()
	expect(t, read(t, m), map[string]string{
		`sluice_requests_total{route="r",upstream="u",status="2xx",code="answered"}`: fmt.Sprint(goroutines * each),
		`sluice_request_seconds_count{route="r"}`:                                    fmt.Sprint(goroutines * each),
		`sluice_request_bytes_total{route="r",direction="out"}`:                      fmt.Sprint(2 * goroutines * each),
	})
}

func TestMetrics_AnExchangeAllocatesNothing(t *testing.T) {
	m := NewMetrics()
	r, u := m.Route("r", "u"), m.Upstream("u")
	record := func() {
		u.FirstTry()
		u.Head(time.Millisecond)
		u.Attempt(outcome.Answered)
		r.Done(200, outcome.Passed, time.Millisecond, 1, 1)
	}
	if allocs := testing.AllocsPerRun(1000, record); allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func BenchmarkDone(b *testing.B) {
	r := NewMetrics().Route("r", "u")
	b.ReportAllocs()
	for b.Loop() {
		r.Done(200, outcome.Passed, 30*time.Millisecond, 300, 1200)
	}
}

func BenchmarkWrite200Routes(b *testing.B) {
	m := NewMetrics()
	for i := range 200 {
		name := fmt.Sprint("route-", i)
		m.Route(name, name).Done(200, outcome.Passed, time.Millisecond, 1, 1)
		m.Upstream(name).Head(time.Millisecond)
	}
	for b.Loop() {
		m.Write(io.Discard)
	}
}
