// Package paybackend is a simulated payment backend: something for the
// gateway to stand in front of in the demo and in the load recipes. It takes
// charges and refunds over HTTP, remembers the last few, and has paths that
// are slow or fail on purpose.
//
// It decides what a plausible payment service would answer, and it validates
// what it is sent. It is naive where naive backends are: it does not look at
// idempotency keys, so a charge that arrives twice is made twice, and
// total_count of the list shows it.
//
//	POST /v1/charges             JSON or form: amount, currency, source, description
//	GET  /v1/charges/{id}        404 once it is forgotten
//	GET  /v1/charges?limit=N     newest first, at most 100
//	POST /v1/refunds             JSON or form: charge, amount (default: the rest)
//	GET  /healthz                200
//	any  /slow?ms=N              200 after N milliseconds, at most a minute
//	any  /status/{code}          that status, 200 to 599
package paybackend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// Config sets how the backend behaves. See DefaultConfig for the defaults.
type Config struct {
	// ServiceTime is how long each request to /v1 takes; zero and less answer
	// at once.
	ServiceTime time.Duration

	// Keep is how many of the last charges are remembered; less than 1 counts
	// as 1. One charge takes at most about a kilobyte.
	Keep int
}

// DefaultConfig answers at once and remembers a thousand charges.
func DefaultConfig() Config {
	return Config{Keep: 1000}
}

// What the backend bounds, so that no caller can make it grow: bytes of one
// body, connections served at a time, and the time for each of reading a
// request, writing an answer and waiting for the next request.
const (
	maxBody        = 64 << 10
	maxConnections = 16384
	readTimeout    = 30 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 75 * time.Second
)

// drainTime bounds how long Serve waits for answers in progress once it is
// told to stop.
const drainTime = 5 * time.Second

// Backend is one simulated payment backend. New makes it, Serve runs it.
type Backend struct {
	cfg    Config
	ledger *ledger
}

// New returns a backend without charges. It starts nothing.
func New(cfg Config) *Backend {
	return &Backend{cfg: cfg, ledger: newLedger(max(cfg.Keep, 1))}
}

// Serve answers requests on ln until ctx ends, and closes ln. It returns nil
// when ctx ended and every answer in progress was given, and otherwise what
// went wrong. Requests that are waiting out a service time when ctx ends are
// answered 503 at once and have charged nothing. Charges survive from one
// Serve to the next.
func (b *Backend) Serve(ctx context.Context, ln net.Listener) error {
	server := &fasthttp.Server{
		Handler:            b.handler(ctx),
		ErrorHandler:       answerUnreadable,
		Name:               "paybackend",
		Concurrency:        maxConnections,
		MaxRequestBodySize: maxBody,
		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		CloseOnShutdown:    true,
		// The pool's cleaner sleeps this long before it notices that the
		// server has stopped; short, so that Serve leaves nothing behind.
		MaxIdleWorkerDuration: 100 * time.Millisecond,
		Logger:                log.New(io.Discard, "", 0),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()

	select {
	case err := <-served:
		return fmt.Errorf("paybackend: serving on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	// Shutdown does nothing when Serve has not come to accepting yet; closing
	// the listener here stops it in that case too.
	closed := ln.Close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	stopped := server.ShutdownWithContext(drain)
	if errors.Is(stopped, net.ErrClosed) {
		stopped = nil // it closed the listener a second time
	}
	if err := errors.Join(closed, stopped, <-served); err != nil {
		return fmt.Errorf("paybackend: stopping on %s: %w", ln.Addr(), err)
	}
	return nil
}
