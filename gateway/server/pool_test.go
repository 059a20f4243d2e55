package server_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"sluice/gateway/outcome"
	"sluice/gateway/server"
	. "sluice/internal/gatewaytest"
)

// TestDial_IsBoundedByTheAttempt has a network in which nothing answers.
func TestDial_IsBoundedByTheAttempt(t *testing.T) {
	for name, c := range map[string]struct{ timeout, dial, want time.Duration }{
		"by dial_timeout":      {10 * time.Second, 100 * time.Millisecond, 100 * time.Millisecond},
		"by the time left":     {100 * time.Millisecond, 10 * time.Second, 100 * time.Millisecond},
		"by both, near enough": {100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config("http://127.0.0.1:9")
			cfg.Routes[0].Timeout = c.timeout
			cfg.Upstreams[0].Connections.DialTimeout = c.dial
			bounds := make(chan time.Duration, 1)
			g := StartWith(t, cfg, func(e *server.Engine) {
				e.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					end, _ := ctx.Deadline()
					bounds <- time.Until(end)
					<-ctx.Done()
					return nil, ctx.Err()
				}
			})
			ask(t, g, "POST", "/", "x").want(t, outcome.ConnectFailed)
			if got := <-bounds; got > c.want {
				t.Errorf("dialling was given %v, want at most %v", got, c.want)
			}
		})
	}
}

// TestPool_IdleConnectionsAreClosed has the backend wait for the gateway to let go.
func TestPool_IdleConnectionsAreClosed(t *testing.T) {
	closed := make(chan error, 1)
	u := NewUpstream(t, func(c net.Conn, r Seen) {
		Say(OK)(c, r)
		_, err := c.Read(make([]byte, 1))
		closed <- err
	})
	cfg := Config(u.URL)
	cfg.Upstreams[0].Connections.Idle = 50 * time.Millisecond
	g := Start(t, cfg)
	if a := ask(t, g, "GET", "/", ""); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	select {
	case err := <-closed:
		if err != io.EOF {
			t.Errorf("the backend read %v, want the end of the connection", err)
		}
	case <-time.After(15 * time.Second):
		t.Error("an idle connection stays open")
	}
}
