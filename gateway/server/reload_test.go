package server_test

import (
	"bufio"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway/outcome"
	"sluice/gateway/server"
	. "sluice/internal/gatewaytest"
)

// reloadable starts a gateway and gives what puts another configuration in force.
func reloadable(t *testing.T, cfg config.Config) (*Gateway, func(config.Config)) {
	t.Helper()
	var engine *server.Engine
	g := StartWith(t, cfg, func(e *server.Engine) { engine = e })
	return g, func(cfg config.Config) {
		t.Helper()
		if err := engine.Reconfigure(t.Context(), cfg); err != nil {
			t.Errorf("Reconfigure: %v", err)
		}
	}
}

// TestReload_NothingIsLost reloads a thousand times under load: limits, the way
// connections are kept, bodies, routes, and other upstreams that come and go.
func TestReload_NothingIsLost(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	variant := func(i int) config.Config {
		cfg := Config(u.URL)
		cfg.Routes[0].Timeout = 20 * time.Second
		cfg.Routes[0].Name = []string{"all", "everything"}[i%2]
		cfg.Upstreams[0].Limit.Max = 100 + i%3
		cfg.Upstreams[0].Connections.Max = 1000 + i%5
		cfg.Upstreams[0].Connections.Idle = time.Duration(30+i/10%2) * time.Second
		cfg.Server.Timeouts.Write = time.Duration(20+i%2) * time.Second
		if i%2 == 1 {
			other := cfg.Upstreams[0]
			other.Name = "other"
			cfg.Upstreams = append(cfg.Upstreams, other)
		}
		return cfg
	}
	g, reload := reloadable(t, variant(0))
	stop := make(chan struct{})
	var answered atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		c := g.Dial(t)
		callers.Go(func() {
			r := bufio.NewReader(c)
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi")
				if a := read(t, r, "POST"); a.status != 200 {
					t.Errorf("%+v", a)
					return
				}
				answered.Add(1)
			}
		})
	}
	for i := range 1000 {
		reload(variant(i + 1))
		eventually(t, "traffic between reloads", func() bool { return t.Failed() || answered.Load() >= int64(5*i) })
	}
	close(stop)
	callers.Wait()
	if n := int64(len(u.Seen())); n != answered.Load() || n < 4000 {
		t.Errorf("%d answered, the backend saw %d", answered.Load(), n)
	}
	t.Logf("%d requests during 1000 reloads", answered.Load())
}

// TestReload_RemovedUpstream: what is there goes on, what waits is told.
func TestReload_RemovedUpstream(t *testing.T) {
	act, open := gated()
	old, young := NewUpstream(t, act), NewUpstream(t, Say(OK))
	cfg := Config(old.URL)
	cfg.Routes[0].Timeout = 20 * time.Second
	cfg.Upstreams[0].Limit.Max = 1
	cfg.Upstreams[0].Limit.Queue.Time = 20 * time.Second
	g, reload := reloadable(t, cfg)
	first := later(t, g, "POST", "/first")
	old.Wait(t, 1)
	second := later(t, g, "POST", "/second")
	eventually(t, "the second waits", func() bool { return g.Core.State().Upstreams[0].Queued == 1 })

	next := Config(young.URL)
	next.Upstreams[0].Name, next.Routes[0].Upstream = "young", "young"
	reload(next)
	(<-second).want(t, outcome.NoEndpoint)
	if a := ask(t, g, "POST", "/third", ""); a.status != 200 || len(young.Seen()) != 1 {
		t.Errorf("right after the reload: %+v", a)
	}
	close(open)
	if a := <-first; a.status != 200 {
		t.Errorf("the one under way: %+v", a)
	}
}

// TestReload_LargerLimitLetsWaitersIn keeps their place.
func TestReload_LargerLimitLetsWaitersIn(t *testing.T) {
	act, open := gated()
	u := NewUpstream(t, act)
	cfg := Config(u.URL)
	cfg.Routes[0].Timeout = 20 * time.Second
	cfg.Upstreams[0].Limit.Max = 1
	cfg.Upstreams[0].Limit.Queue.Time = 20 * time.Second
	g, reload := reloadable(t, cfg)
	first := later(t, g, "POST", "/first")
	u.Wait(t, 1)
	second := later(t, g, "POST", "/second")
	eventually(t, "the second waits", func() bool { return g.Core.State().Upstreams[0].Queued == 1 })
	more := Config(u.URL)
	more.Routes[0].Timeout = 20 * time.Second
	more.Upstreams[0].Limit.Max = 2
	reload(more)
	u.Wait(t, 2)
	close(open)
	if a, b := <-first, <-second; a.status != 200 || b.status != 200 {
		t.Errorf("%+v, %+v", a, b)
	}
}
