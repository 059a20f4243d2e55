package telemetry

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"sluice/gateway/outcome"
)

// statuses are the values of the label status, by the first digit.
var statuses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// Route counts the exchanges of one route.
type Route struct {
	metrics         *Metrics
	route, upstream string

	// Made when first needed: most pairs never occur, and each would be a series.
	ended   [len(statuses)][outcome.Codes]atomic.Pointer[metrics.Counter]
	seconds *histogram
	in, out *metrics.Counter
}

// Route returns the handle of a route, the same one for the same names. The names
// become labels, "" as none.
func (m *Metrics) Route(route, upstream string) *Route {
	route, upstream = cmp.Or(route, "none"), cmp.Or(upstream, "none")
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{route, upstream}
	r := m.routes[key]
	if r == nil {
		r = &Route{
			metrics: m, route: route, upstream: upstream,
			seconds: m.histogram("sluice_request_seconds", "route", route),
			in:      m.set.GetOrCreateCounter(Name("sluice_request_bytes_total", "route", route, "direction", "in")),
			out:     m.set.GetOrCreateCounter(Name("sluice_request_bytes_total", "route", route, "direction", "out")),
		}
		m.routes[key] = r
	}
	return r
}

// Done counts one exchange: the status sent (0 where none was), why it ended, the
// time from the first byte of the request to the end, the bytes of both bodies. It
// takes no lock and does not allocate, except when a pair of status and code comes
// up for the first time.
func (r *Route) Done(status int, code outcome.Code, total time.Duration, bytesIn, bytesOut int64) {
	class := status / 100
	if class < 1 || class >= len(statuses) {
		class = 0
	}
	if int(code) >= outcome.Codes {
		code = outcome.Internal
	}
	c := r.ended[class][code].Load()
	if c == nil {
		c = r.first(class, code)
	}
	c.Inc()
	r.seconds.observe(total)
	r.in.AddInt64(max(bytesIn, 0))
	r.out.AddInt64(max(bytesOut, 0))
}

func (r *Route) first(class int, code outcome.Code) *metrics.Counter {
	c := r.metrics.set.GetOrCreateCounter(Name("sluice_requests_total",
		"route", r.route, "upstream", r.upstream, "status", statuses[class], "code", code.String()))
	r.ended[class][code].Store(c)
	return c
}

// Upstream counts the attempts on one upstream.
type Upstream struct {
	attempts               [outcome.Classes]*metrics.Counter
	firstTries             *metrics.Counter
	opened, reused, failed *metrics.Counter
	head                   *histogram
}

// Upstream returns the handle of an upstream, the same one for the same name.
func (m *Metrics) Upstream(name string) *Upstream {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.upstreams[name]
	if u != nil {
		return u
	}
	count := func(family string, more ...string) *metrics.Counter {
		return m.set.GetOrCreateCounter(Name(family, append([]string{"upstream", name}, more...)...))
	}
	u = &Upstream{
		firstTries: count("sluice_first_tries_total"),
		opened:     count("sluice_connections_opened_total"),
		reused:     count("sluice_connections_reused_total"),
		failed:     count("sluice_connections_failed_total"),
		head:       m.histogram("sluice_attempt_head_seconds", "upstream", name),
	}
	for c := range u.attempts {
		u.attempts[c] = count("sluice_attempts_total", "class", outcome.Class(c).String())
	}
	m.upstreams[name] = u
	return u
}

// Attempt counts an attempt that ended, first try or retry.
func (u *Upstream) Attempt(class outcome.Class) {
	if int(class) < outcome.Classes {
		u.attempts[class].Inc()
	}
}

// FirstTry counts a request that is sent for the first time.
func (u *Upstream) FirstTry() { u.firstTries.Inc() }

// Head counts the time from the start of an attempt to the head of its response.
func (u *Upstream) Head(d time.Duration) { u.head.observe(d) }

// Opened counts a connection that was opened.
func (u *Upstream) Opened() { u.opened.Inc() }

// Reused counts an attempt that goes out on a connection from the pool.
func (u *Upstream) Reused() { u.reused.Inc() }

// ConnectFailed counts a connection that could not be opened.
func (u *Upstream) ConnectFailed() { u.failed.Inc() }
