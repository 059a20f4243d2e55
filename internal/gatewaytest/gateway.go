// Package gatewaytest runs the core with its server engine for tests: a gateway on
// a real socket before upstreams that a test scripts byte by byte.
package gatewaytest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/server"
	"sluice/gateway/telemetry"
)

// Gateway is a running gateway.
type Gateway struct {
	Address string
	Expect  error // what the gateway is to stop with
	Core    *gateway.Gateway
	Metrics *telemetry.Metrics

	log  lockedBuffer
	stop func() error
}

// Config is a configuration with one upstream "payments" at endpoints and one route
// "all" to it. Tests change it before Start.
func Config(endpoints ...string) config.Config {
	cfg := config.Default()
	cfg.Server.Listen = []string{"127.0.0.1:0"}
	cfg.Server.Drain.Timeout = 5 * time.Second
	u := config.DefaultUpstream()
	u.Name, u.Endpoints = "payments", endpoints
	cfg.Upstreams = append(cfg.Upstreams, u)
	r := config.DefaultRoute()
	r.Name, r.Path, r.Upstream = "all", "/{path:*}", "payments"
	cfg.Routes = append(cfg.Routes, r)
	return cfg
}

// Start runs a gateway until the test ends.
func Start(t testing.TB, cfg config.Config) *Gateway {
	t.Helper()
	return StartWith(t, cfg, nil)
}

// StartWith is Start with a last word on the engine before it runs.
func StartWith(t testing.TB, cfg config.Config, change func(*server.Engine)) *Gateway {
	t.Helper()
	g := &Gateway{Metrics: telemetry.NewMetrics()}
	log := telemetry.NewLog(cfg.Log, &g.log)
	core, err := gateway.New(cfg, log, g.Metrics, rand.Uint64)
	if err != nil {
		t.Fatalf("gateway.New: %v", err)
	}
	engine, err := server.New(core, cfg.Server, log.Logger())
	if err != nil {
		t.Fatalf("server.New: %v", err)
	}
	if change != nil {
		change(engine)
	}
	listeners, err := engine.Listen()
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	g.Core, g.Address = core, listeners[0].Addr().String()

	serving, stopServing := context.WithCancel(context.Background())
	logging, stopLogging := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var served error
	done := make(chan struct{})
	running.Go(func() { _ = log.Run(logging) })
	go func() {
		served = engine.Run(serving, listeners)
		close(done)
	}()
	g.stop = sync.OnceValue(func() error {
		stopServing()
		<-done
		stopLogging()
		running.Wait()
		return served
	})
	t.Cleanup(func() {
		if err := g.Stop(); !errors.Is(err, g.Expect) {
			t.Errorf("the gateway stopped with: %v, want %v", err, g.Expect)
		}
		if g.Expect != nil {
			return
		}
		if n := core.InFlight(); n != 0 {
			t.Errorf("%d exchanges in flight after the end", n)
		}
	})
	return g
}

// Stop drains the gateway and waits for its end. After it Log is whole.
func (g *Gateway) Stop() error { return g.stop() }

// Log is what has been logged so far.
func (g *Gateway) Log() string { return g.log.String() }

// Dial opens a connection to the gateway, closed when the test ends.
func (g *Gateway) Dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", g.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// lockedBuffer is a buffer that may be written and read at once.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is all that was written.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
