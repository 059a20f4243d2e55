// Package gateway is the core: it decides what happens to each exchange, and when,
// and waits for nothing. Engines own sockets, timers and goroutines; they do what
// the core names (Next) and call it again with what happened. life.go is the order
// of things, top to bottom.
//
// The core never blocks, sleeps, starts a goroutine, reads the clock or holds a
// lock across I/O. So the same code runs on goroutines, on an event loop and in a
// simulator.
package gateway

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/config"
	"sluice/gateway/deadline"
	"sluice/gateway/edge"
	"sluice/gateway/limits"
	"sluice/gateway/routes"
	"sluice/gateway/telemetry"
	"sluice/gateway/upstream"
)

// collectAtMost is the largest body, in bytes, that is read whole before its first
// byte goes to the caller. It bounds what a slow caller can make the gateway hold.
const collectAtMost = 64 << 10

// collectForHTTP10 is the same for a body of unknown length and a caller of
// HTTP/1.0. A larger one is a bad_response.
const collectForHTTP10 = 1 << 20

// Gateway is the core. It is safe for concurrent use by any number of engines.
type Gateway struct {
	random  func() uint64
	log     *telemetry.Log
	metrics *telemetry.Metrics

	snapshot atomic.Pointer[snapshot]
	inFlight atomic.Int64
	draining atomic.Bool

	mu        sync.Mutex // one Swap at a time
	upstreams map[string]*Upstream
}

// Upstream is the live state of one upstream: it lives as long as its name is in
// the configuration, whatever else changes.
type Upstream struct {
	*upstream.Upstream
	limiter *limits.Limiter
	metrics *telemetry.Upstream
	config  atomic.Pointer[config.Upstream]
	gone    atomic.Bool // its name has left the configuration: no attempt is begun any more
}

// Config is the upstream's present configuration.
func (u *Upstream) Config() *config.Upstream { return u.config.Load() }

func (u *Upstream) queueTime() time.Duration { return u.config.Load().Limit.Queue.Time }
func (u *Upstream) shedStatus() int          { return u.config.Load().Limit.ShedStatus }

// Route is one compiled route: all that an exchange needs to know, found once.
type Route struct {
	name     string
	upstream *Upstream
	metrics  *telemetry.Route
	deadline deadline.Config
	maxBody  int64

	anyMethod bool // the route names none
	rawPaths  bool // paths are passed on in whatever spelling they have

	stream bool
	stall  time.Duration
}

// snapshot is what one exchange sees of the configuration. It is never changed.
type snapshot struct {
	table    *routes.Table[*Route]
	proxies  edge.Proxies
	inFlight int64
	fields   int // header lines of a request, at most

	bodyAtMost int64
	unrouted   *telemetry.Route
}

// New makes a gateway from a valid configuration. random gives uniformly
// distributed numbers; it must be safe for concurrent use.
func New(cfg config.Config, log *telemetry.Log, metrics *telemetry.Metrics, random func() uint64) (*Gateway, error) {
	g := &Gateway{random: random, log: log, metrics: metrics, upstreams: map[string]*Upstream{}}
	metrics.Gauge("sluice_exchanges_in_flight", func() float64 { return float64(g.inFlight.Load()) })
	return g, g.Swap(cfg)
}

// Swap puts a valid configuration in force. Exchanges under way keep the routes
// that they began with; live objects whose names stay are kept and reconfigured.
// An error means that nothing has changed.
func (g *Gateway) Swap(cfg config.Config) error {
	c, err := g.Prepare(cfg)
	if err == nil {
		c.Apply()
	}
	return err
}

// Change is a configuration that is ready to be put in force.
type Change struct {
	core  *Gateway
	cfg   config.Config
	live  map[string]*Upstream
	fresh []*Upstream
	table *routes.Table[*Route]
}

// Prepare is the first half of Swap, in which nothing changes yet: it gives an engine
// the time to find the addresses of new upstreams before anything is sent there.
// Whoever prepares a change applies it, or lets it go, before preparing the next.
func (g *Gateway) Prepare(cfg config.Config) (*Change, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &Change{core: g, cfg: cfg, live: make(map[string]*Upstream, len(cfg.Upstreams))}
	for i := range cfg.Upstreams {
		name := cfg.Upstreams[i].Name
		if c.live[name] = g.upstreams[name]; c.live[name] == nil {
			c.live[name] = g.newUpstream(&cfg.Upstreams[i])
			c.fresh = append(c.fresh, c.live[name])
		}
	}
	var err error
	if c.table, err = g.compile(cfg.Routes, c.live); err != nil {
		return nil, err
	}
	return c, nil
}

// Upstream is the one that will be known by name: the present one, or a new one.
// nil when there will be none.
func (c *Change) Upstream(name string) *Upstream { return c.live[name] }

// Apply is the second half of Swap. Upstreams whose names are gone begin no further
// attempt, and what waits for them is let go.
func (c *Change) Apply() {
	g, cfg := c.core, &c.cfg
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range cfg.Upstreams {
		u := c.live[cfg.Upstreams[i].Name]
		u.config.Store(&cfg.Upstreams[i])
		g.grant(u.limiter.Configure(cfg.Upstreams[i].Limit))
	}
	before := g.upstreams
	g.upstreams = c.live
	g.snapshot.Store(g.snapshotOf(cfg, c.table))
	for name, u := range before {
		if c.live[name] == nil {
			g.unwatch(u)
			g.forget(u)
		}
	}
	for _, u := range c.fresh {
		g.watch(u)
	}
}

// forget ends an upstream whose name is gone. Without a limit everyone who waits is
// let in, and finds that there is nothing to send to.
func (g *Gateway) forget(u *Upstream) {
	u.gone.Store(true)
	limit := u.config.Load().Limit
	limit.Mode = limits.ModeOff
	g.grant(u.limiter.Configure(limit))
}

func (g *Gateway) snapshotOf(cfg *config.Config, table *routes.Table[*Route]) *snapshot {
	var bodyAtMost int64
	for i := range cfg.Routes {
		bodyAtMost = max(bodyAtMost, int64(cfg.Routes[i].MaxBody))
	}
	return &snapshot{
		table:    table,
		proxies:  edge.Proxies(cfg.Server.TrustedProxies),
		inFlight: int64(cfg.Server.Limits.InFlight),
		fields:   cfg.Server.Limits.Headers,
		unrouted: g.metrics.Route("", ""),

		bodyAtMost: bodyAtMost,
	}
}

func (g *Gateway) newUpstream(cfg *config.Upstream) *Upstream {
	u := &Upstream{
		Upstream: upstream.New(cfg.Name),
		limiter:  limits.New(cfg.Limit),
		metrics:  g.metrics.Upstream(cfg.Name),
	}
	u.config.Store(cfg)
	return u
}

func (g *Gateway) compile(list []config.Route, live map[string]*Upstream) (*routes.Table[*Route], error) {
	entries := make([]routes.Entry[*Route], 0, len(list))
	for i := range list {
		r := &list[i]
		entries = append(entries, routes.Entry[*Route]{Config: r.Config, Value: &Route{
			name:     r.Name,
			upstream: live[r.Upstream],
			metrics:  g.metrics.Route(r.Name, r.Upstream),
			deadline: r.Deadline(),
			maxBody:  int64(r.MaxBody),

			anyMethod: len(r.Methods) == 0,
			rawPaths:  r.RawPaths,

			stream: r.Response == config.ResponseStream,
			stall:  r.Stall,
		}})
	}
	return routes.New(entries)
}

// Upstreams is the present list, by name.
func (g *Gateway) Upstreams() []*Upstream {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := slices.Sorted(maps.Keys(g.upstreams))
	list := make([]*Upstream, len(names))
	for i, name := range names {
		list[i] = g.upstreams[name]
	}
	return list
}

// Drain makes every answer from now on close its connection, and the gateway not
// ready. Engines stop taking connections and interrupt what waits.
func (g *Gateway) Drain() { g.draining.Store(true) }

// BodyAtMost is the largest body, in bytes, that any route takes.
func (g *Gateway) BodyAtMost() int64 { return g.snapshot.Load().bodyAtMost }

// InFlight is how many exchanges have begun and not ended.
func (g *Gateway) InFlight() int64 { return g.inFlight.Load() }
