package sim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/config"
	"sluice/gateway/limits"
	"sluice/gateway/upstream"
)

// load is the character of one run: how busy, how broken, how nervous. Each seed
// has its own, so that few runs cover much.
type load struct {
	meanGap   time.Duration // between callers
	slow      time.Duration // typical time of a backend
	faulty    float64       // share of attempts that fail
	nervous   float64       // share of exchanges that are interrupted
	buggy     float64       // share of steps at which the gateway itself fails
	churn     time.Duration // between changes of configuration or endpoints
	sendDelay time.Duration // for writing an answer
}

func newLoad(r *rand.Rand) load {
	ms := func(low, high int) time.Duration { return time.Duration(low+r.IntN(high-low)) * time.Millisecond }
	return load{
		meanGap:   time.Duration(200+r.IntN(20000)) * time.Microsecond,
		slow:      ms(1, 80),
		faulty:    r.Float64() * 0.7,
		nervous:   r.Float64() * 0.4,
		buggy:     max(0, r.Float64()-0.5) * 0.02,
		churn:     ms(50, 2000),
		sendDelay: ms(1, 20),
	}
}

func (l *load) gap(r *rand.Rand) time.Duration {
	if r.IntN(20) == 0 {
		return 0 // together with the next one
	}
	return time.Duration(r.ExpFloat64() * float64(l.meanGap))
}

func (l *load) moment(r *rand.Rand) time.Duration {
	return time.Duration(r.ExpFloat64() * float64(l.slow))
}

// newsAtMost is how long a grant may take to reach its engine: far longer than it
// does, so that much can happen meanwhile.
const newsAtMost = 6 * time.Millisecond

func (l *load) news(r *rand.Rand) time.Duration {
	return time.Duration(r.Int64N(int64(newsAtMost)))
}
func (l *load) write(r *rand.Rand) time.Duration {
	return time.Duration(r.Int64N(int64(l.sendDelay)))
}

func (l *load) interrupts(r *rand.Rand) int {
	if r.Float64() >= l.nervous {
		return 0
	}
	return 1 + r.IntN(2)
}

func (l *load) address(r *rand.Rand) netip.Addr {
	if r.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{10, 0, 0, byte(r.IntN(256))})
	}
	return netip.MustParseAddr("2001:db8::7")
}

// timeout is every route's.
const timeout = 300 * time.Millisecond

// request fills in what a caller asks for. It returns whether the whole response is
// within the route's timeout, and that timeout.
func (l *load) request(r *rand.Rand, req *fasthttp.Request) (bounded bool, limit time.Duration) {
	methods := []string{"GET", "POST", "PUT", "DELETE", "HEAD"}
	req.Header.SetMethod(methods[r.IntN(len(methods))])
	req.Header.SetHost("pay.test")
	bounded = true
	switch r.IntN(22) {
	case 20:
		req.SetRequestURI("/a/x")
		req.Header.SetMethod("BREW")
	case 21:
		req.SetRequestURI("/a/x")
		req.Header.SetProtocol("HTTP/1.2")
	case 0:
		req.SetRequestURI("/nowhere")
	case 1:
		req.SetRequestURI("http://pay.test/a/b") // absolute-form
	case 2:
		req.SetRequestURI("/events")
		bounded = false
	case 3:
		req.Header.SetMethod("PATCH")
		req.SetRequestURI("/one")
	case 4:
		req.SetRequestURI("/one")
		req.Header.SetMethod("POST")
		req.SetBody(make([]byte, 2000))
	default:
		req.SetRequestURI(fmt.Sprintf("/a/%d?q=1", r.IntN(100)))
	}
	if req.Header.IsPost() && len(req.Body()) == 0 {
		req.SetBody(make([]byte, r.IntN(1000)))
	}
	return bounded, timeout
}

// plan is what a backend does with one attempt. All of it is the truth that the
// gateway can only see in part.
type plan struct {
	head   time.Duration  // when the head has come, or the attempt has failed
	cause  upstream.Cause // of a failure before the head
	sent   int64          // bytes that were sent when it failed
	status int            // 0: there will be no head
	length int            // of the body; -1 when nobody knows
	body   time.Duration  // from the head to the end of the body
	end    upstream.Cause // how the body ends
}

func (l *load) plan(r *rand.Rand) plan {
	p := plan{head: l.moment(r), sent: int64(100 + r.IntN(1000)), end: upstream.Complete}
	if r.Float64() < l.faulty {
		switch r.IntN(9) {
		case 0:
			p.cause, p.sent = upstream.DialFailed, 0
			return p
		case 1:
			p.cause, p.sent = upstream.NoHandshake, 0
			return p
		case 2:
			p.cause, p.sent = upstream.NoConnection, 0
			return p
		case 3:
			p.cause, p.sent = upstream.Lost, 0
			return p
		case 4:
			p.cause = upstream.Lost
			return p
		case 5:
			p.cause = upstream.Malformed
			return p
		case 6:
			p.head = time.Hour // hangs
			p.cause = upstream.TimedOut
			return p
		case 7:
			p.status, p.length = 101, 0
			return p
		case 8:
			p.end = []upstream.Cause{upstream.CutShort, upstream.Malformed, upstream.Given}[r.IntN(3)]
		}
	}
	p.status = []int{200, 200, 200, 201, 204, 304, 302, 400, 402, 409, 429, 500, 503}[r.IntN(13)]
	p.length = []int{0, 200, 5000, 64 << 10, 64<<10 + 1, 1 << 20, -1, -2}[r.IntN(8)]
	p.body = l.moment(r)
	return p
}

// config makes a configuration whose limits are small enough to be met.
func (w *world) config() config.Config {
	r := w.rand
	cfg := config.Default()
	cfg.Server.Limits.InFlight = 3 + r.IntN(100)
	names := []string{"first", "second"}
	if i := r.IntN(4); i < len(names) {
		names = names[i : i+1] // the other one goes, and comes back some time as a new one
	}
	for _, name := range names {
		u := config.DefaultUpstream()
		u.Name = name
		u.Endpoints = []string{"http://127.0.0.1:1"}
		u.Limit.Max = 1 + r.IntN(12)
		u.Limit.Queue = limits.Queue{Length: r.IntN(10), Time: time.Duration(1+r.IntN(400)) * time.Millisecond}
		cfg.Upstreams = append(cfg.Upstreams, u)
	}
	route := func(name, path, upstream string, methods ...string) *config.Route {
		rt := config.DefaultRoute()
		rt.Name, rt.Path, rt.Upstream, rt.Methods = name, path, upstream, methods
		rt.Timeout, rt.AttemptTimeout = timeout, timeout/3
		rt.MaxBody = 1500
		cfg.Routes = append(cfg.Routes, rt)
		return &cfg.Routes[len(cfg.Routes)-1]
	}
	route("all", "/a/{rest:*}", names[0])
	last := names[len(names)-1]
	if len(names) == 1 && r.IntN(2) == 0 {
		return cfg // its routes have gone with the other
	}
	route("one", "/one", last, "GET", "POST")
	route("events", "/events", last).Response = config.ResponseStream
	return cfg
}

// replaceEndpoints gives each upstream zero to four endpoints.
func (w *world) replaceEndpoints() {
	for _, u := range w.core.Upstreams() {
		var list []upstream.Address
		for i := range w.rand.IntN(5) {
			list = append(list, upstream.Address{HostPort: fmt.Sprintf("10.0.1.%d:80", i)})
		}
		u.Replace(list, func(upstream.Address) any { return nil })
	}
}
