package server

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"sluice/config"
)

// background is what runs beside the listeners.
type background struct {
	ctx  context.Context
	stop context.CancelFunc
	work *sync.WaitGroup
}

// Reconfigure puts a valid configuration in force while Run runs, in the core too.
// Exchanges under way go on; attempts under way keep their connections. New names are
// looked up before anything is sent to them, for at most resolve.timeout. Settings
// that Fixed names keep their values.
//
// An error means that nothing has changed: a TLS file that cannot be used, or the end
// of ctx.
func (e *Engine) Reconfigure(ctx context.Context, cfg config.Config) error {
	e.reload.Lock()
	defer e.reload.Unlock()
	change, err := e.core.Prepare(cfg)
	if err != nil {
		return err
	}
	next := make(map[string]*resolver, len(cfg.Upstreams))
	for i := range cfg.Upstreams {
		u := &cfg.Upstreams[i]
		r, err := newResolver(e, change.Upstream(u.Name), u.Config, e.resolvers[u.Name])
		if err != nil {
			return fmt.Errorf("upstreams[%s]: %w", u.Name, err)
		}
		next[u.Name] = r
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.pair != nil && cfg.Server.TLS.On() {
		if err := e.pair.use(cfg.Server.TLS); err != nil {
			return err
		}
	}
	found := e.follow(ctx, next)
	change.Apply()
	e.live.Store(&cfg.Server)
	e.callers.configure(cfg.Server)
	for name, r := range e.resolvers {
		if next[name] == nil {
			e.end(r)
			retire(r.upstream.Replace(nil, nil))
		}
	}
	e.resolvers = next
	for r, ok := range found {
		e.begin(r, ok)
	}
	return nil
}

// follow lets the resolvers that are new take over, and look their names up, side by
// side. It returns which of them found all.
func (e *Engine) follow(ctx context.Context, next map[string]*resolver) map[*resolver]bool {
	var mu sync.Mutex
	found := map[*resolver]bool{}
	var asking sync.WaitGroup
	for name, r := range next {
		before := e.resolvers[name]
		if r == before {
			continue
		}
		if before != nil {
			e.end(before)
			r.follow(before)
		}
		asking.Go(func() {
			ok := r.refresh(ctx)
			mu.Lock()
			defer mu.Unlock()
			found[r] = ok
		})
	}
	asking.Wait()
	return found
}

// startResolving looks all names up once, side by side, and keeps doing so in the
// background. It returns when each upstream has its first answer, or none in time.
func (e *Engine) startResolving(work *sync.WaitGroup) {
	e.reload.Lock()
	defer e.reload.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	e.background = &background{ctx, stop, work}
	all := e.resolvers
	e.resolvers = nil
	found := e.follow(ctx, all)
	e.resolvers = all
	for r, ok := range found {
		e.begin(r, ok)
	}
}

// stopResolving tells what runs in the background to end, and lets nothing new begin.
func (e *Engine) stopResolving() {
	e.reload.Lock()
	defer e.reload.Unlock()
	e.background.stop()
	e.background = nil
}

// begin lets r run in the background.
func (e *Engine) begin(r *resolver, ok bool) {
	if e.background == nil {
		return // Run begins it, or has ended
	}
	ctx, stop := context.WithCancel(e.background.ctx)
	r.stop, r.done = stop, make(chan struct{})
	e.background.work.Go(func() { r.run(ctx, ok) })
}

// end stops r and waits for it.
func (e *Engine) end(r *resolver) {
	if r.stop != nil {
		r.stop()
		<-r.done
	}
}

// fixed are the settings that are handed to the kernel or to fasthttp once, at the
// start.
var fixed = []struct {
	name string
	of   func(*config.Server) any
}{
	{"server.listen", func(s *config.Server) any { return s.Listen }},
	{"server.reuse_port", func(s *config.Server) any { return s.ReusePort }},
	{"server.tls", func(s *config.Server) any { return s.TLS.On() }},
	{"server.timeouts.header", func(s *config.Server) any { return s.Timeouts.Header }},
	{"server.timeouts.idle", func(s *config.Server) any { return s.Timeouts.Idle }},
	{"server.limits.header_bytes", func(s *config.Server) any { return s.Limits.HeaderBytes }},
}

// Fixed names the settings in which a and b differ and that only a restart changes.
func Fixed(a, b config.Server) (names []string) {
	for _, f := range fixed {
		if !reflect.DeepEqual(f.of(&a), f.of(&b)) {
			names = append(names, f.name)
		}
	}
	return names
}
