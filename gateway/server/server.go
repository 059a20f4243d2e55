// Package server is the engine on fasthttp.Server: one goroutine drives each
// exchange, on the caller's connection, and blocks where the core says to wait. It
// owns the sockets on both sides, timers, name resolution and drain; it decides
// nothing that the core decides.
package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/outcome"
)

// Engine serves callers on listeners and sends to endpoints for one core.
type Engine struct {
	core     *gateway.Gateway
	cfg      config.Server
	log      *zerolog.Logger
	http     *fasthttp.Server
	live     atomic.Pointer[config.Server] // cfg, with what a reload changed
	calls    sync.Pool
	callers  *callers
	tls      *frontTLS     // nil: callers are served in the clear
	pair     *certificates // nil as well
	streams  streams
	buffered buffered
	cutting  atomic.Bool   // a drain ends what is in flight
	draining chan struct{} // closed when what waits must stop waiting

	reload     sync.Mutex // one Reconfigure at a time
	resolvers  map[string]*resolver
	background *background // nil unless Run runs

	// Lookup resolves a name, and Dial opens a connection to an address. New sets
	// them to those of the system; they may be changed before Run.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// ErrCut says that a drain ran out of time with exchanges in flight.
var ErrCut = errors.New("drain timed out, exchanges in flight were cut")

// New makes an engine. It opens nothing; an error is a TLS file that cannot be
// used.
func New(core *gateway.Gateway, cfg config.Server, log *zerolog.Logger) (*Engine, error) {
	e := &Engine{core: core, cfg: cfg, log: log, draining: make(chan struct{})}
	e.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	e.Dial = (&net.Dialer{}).DialContext
	e.callers = newCallers(cfg)
	if cfg.TLS.On() {
		pair, err := newCertificates(cfg.TLS, log)
		if err != nil {
			return nil, err
		}
		e.pair, e.tls = pair, newFrontTLS(pair, cfg.Timeouts.Header)
	}
	e.calls.New = func() any { return newCall(e) }
	e.live.Store(&cfg)
	e.resolvers = map[string]*resolver{}
	for _, u := range core.Upstreams() {
		r, err := newResolver(e, u, u.Config().Config, nil)
		if err != nil {
			return nil, fmt.Errorf("upstreams[%s]: %w", u.Name, err)
		}
		e.resolvers[u.Name] = r
	}
	e.http = e.newServer()
	return e, nil
}

// bodyKept is the largest body buffer, in bytes, that a connection keeps for its next
// request: two of them can be there for each idle caller.
const bodyKept = 16 << 10

func (e *Engine) newServer() *fasthttp.Server {
	fasthttp.SetBodySizePoolLimit(bodyKept, bodyKept)
	t, l := e.cfg.Timeouts, e.cfg.Limits
	return &fasthttp.Server{
		Handler:        e.serve,
		ErrorHandler:   e.unreadable,
		HeaderReceived: e.headReceived,
		ExpectHandler:  e.expected,

		ReadTimeout:        t.Header,
		WriteTimeout:       t.Write,
		IdleTimeout:        t.Idle,
		ReadBufferSize:     int(l.HeaderBytes),
		WriteBufferSize:    headBytes,
		MaxRequestBodySize: int(e.core.BodyAtMost()),
		StreamRequestBody:  true,          // the core decides from the head whether a body is read
		Concurrency:        math.MaxInt32, // the listener bounds connections, with an answer of ours
		TCPKeepalive:       true,
		CloseOnShutdown:    true,
		ConnState:          began,
		LazyRequestTime:    true, // began is more exact

		// Nothing is invented on behalf of backend or caller, nothing is parsed that
		// is not needed, and no text of the library holds bytes of a request.
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		Logger:                       quiet{e.log},
	}
}

// Refused is how many connections of callers found no room.
func (e *Engine) Refused() uint64 { return e.callers.refused.Load() }

// Crowded is how many connections of callers were refused because their address had
// as many as one may have.
func (e *Engine) Crowded() uint64 { return e.callers.crowded.Load() }

// HandshakesFailed is how many TLS handshakes with callers failed or took too long.
func (e *Engine) HandshakesFailed() uint64 {
	if e.tls == nil {
		return 0
	}
	return e.tls.failed.Load()
}

// Listen opens the listeners that the configuration names.
func (e *Engine) Listen() ([]net.Listener, error) {
	var list []net.Listener
	for _, address := range e.cfg.Listen {
		network := "tcp"
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			network, address = "unix", path
			removeStale(path)
		}
		ln, err := e.listen(network, address)
		if err != nil {
			for _, open := range list {
				_ = open.Close()
			}
			return nil, fmt.Errorf("server.listen: %w", err)
		}
		list = append(list, &listener{Listener: ln, log: e.log, all: e.callers, tls: e.tls})
	}
	return list, nil
}

// listen opens one listener.
func (e *Engine) listen(network, address string) (net.Listener, error) {
	if network != "tcp" || !e.cfg.ReusePort {
		return net.Listen(network, address)
	}
	ln, steered, err := listenShared(network, address)
	if err == nil && !steered {
		e.log.Warn().Str("listener", address).Msg("the kernel does not hand new connections to the newer process alone, a hand-over may lose some")
	}
	return ln, err
}

// removeStale takes away the socket file of a process that is gone: one that
// nobody answers on.
func removeStale(path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
	if errors.Is(err, syscall.ECONNREFUSED) { // any other error may come from one that lives
		_ = os.Remove(path)
	}
}

// Run serves until ctx ends, then drains: not ready for drain.delay, then no new
// connections, then up to drain.timeout for what is in flight. It returns nil when
// everything ended, ErrCut when not.
func (e *Engine) Run(ctx context.Context, listeners []net.Listener) error {
	var work sync.WaitGroup
	defer work.Wait()
	defer e.stopResolving()
	e.startResolving(&work)
	looking, stopLooking := context.WithCancel(context.Background())
	defer stopLooking()
	if e.pair != nil {
		work.Go(func() { e.pair.run(looking) })
	}

	failed := make(chan error, len(listeners))
	for _, ln := range listeners {
		work.Go(func() { failed <- e.http.Serve(ln) })
	}
	select {
	case err := <-failed:
		// A listener has ended by itself. Without it this is not the gateway that was
		// asked for, so what is in flight ends and so does the process.
		return errors.Join(fmt.Errorf("server: a listener failed: %w", err), e.drain(listeners))
	case <-ctx.Done():
		return e.drain(listeners)
	}
}

// drain lets what is in flight end and takes nothing new.
func (e *Engine) drain(listeners []net.Listener) error {
	e.core.Drain()
	settings := e.live.Load().Drain
	if d := settings.Delay; d > 0 {
		time.Sleep(d)
	}
	close(e.draining)
	for _, ln := range listeners {
		_ = ln.Close()
	}
	e.log.Info().Int64("in_flight", e.core.InFlight()).Dur("timeout", settings.Timeout).Msg("draining")
	err := e.shutdown(settings.Timeout)
	if err != nil {
		err = e.cut()
	}
	e.callers.settle()
	for _, u := range e.core.Upstreams() {
		retire(u.Endpoints())
	}
	return err
}

// cut ends what a drain has not let end. Every exchange still ends as one, with its
// event in the log and what is known of its outcome. Streams without an end are
// meant to be cut some time, so they are no error.
func (e *Engine) cut() error {
	e.cutting.Store(true)
	attempts := e.callers.cutAttempts()
	streams := e.streams.cutAll()
	e.log.Warn().Int("attempts", attempts).Int("streams", streams).Msg("drain timed out, cutting what is in flight")
	left := e.ended(cutTime)
	if left > 0 || attempts > 0 {
		return fmt.Errorf("%w: %d", ErrCut, max(attempts, left))
	}
	return nil
}

// ended waits until no exchange is in flight, and returns how many are when d is over.
// Shutdown cannot be asked again: it knows no listener any more and returns at once.
func (e *Engine) ended(d time.Duration) int {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); e.core.InFlight() > 0 && time.Now().Before(end); {
		<-tick.C
	}
	return int(e.core.InFlight())
}

// cutTime is what exchanges that were cut get to end in.
const cutTime = time.Second

// shutdown waits for all connections to end, those that are idle at once.
func (e *Engine) shutdown(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return e.http.ShutdownWithContext(ctx)
}

// serve handles one request.
func (e *Engine) serve(ctx *fasthttp.RequestCtx) {
	c := e.calls.Get().(*call)
	c.open(ctx)
	c.run(func() gateway.Next { return e.core.Arrive(&c.Exchange, c.now) })
}

func (e *Engine) put(c *call) {
	c.forgetBody()
	c.ctx, c.Request, c.Response, c.pool = nil, nil, nil, nil
	e.calls.Put(c)
}

// headReceived gives a request with a body more time than its head had, and bounds
// the body. What it says holds in place of what the server was made with.
func (e *Engine) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	t := &e.live.Load().Timeouts
	if h.ContentLength() == 0 || h.ContentLength() == -2 {
		return fasthttp.RequestConfig{WriteTimeout: t.Write}
	}
	return fasthttp.RequestConfig{ReadTimeout: t.Body, WriteTimeout: t.Write, MaxRequestBodySize: int(e.core.BodyAtMost())}
}

// expected answers a caller who asks before it sends its body: to go on, unless the
// body is larger than any route takes.
func (e *Engine) expected(ctx *fasthttp.RequestCtx) int {
	if int64(ctx.Request.Header.ContentLength()) <= e.core.BodyAtMost() {
		return fasthttp.StatusContinue
	}
	e.unreadable(ctx, fasthttp.ErrBodyTooLarge)
	return ctx.Response.StatusCode()
}

// unreadable answers for a request that could not be read.
func (e *Engine) unreadable(ctx *fasthttp.RequestCtx, err error) {
	code := codeOfRead(err)
	if code == outcome.CallerGone || len(ctx.Request.Header.RawHeaders()) == 0 && nothingRead(err) {
		// Nobody reads an answer, or nobody asked: a connection that was opened and
		// never used is no exchange.
		ctx.Response.Reset()
		ctx.Response.SetStatusCode(outcome.RequestTimeout.Info().Status)
		return
	}
	c := e.calls.Get().(*call)
	c.open(ctx)
	c.run(func() gateway.Next { return e.core.Unreadable(&c.Exchange, code, c.now) })
}

// nothingRead reports whether err came while waiting for the first byte: later ones
// are wrapped by the library.
func nothingRead(err error) bool {
	_, bare := err.(*net.OpError)
	return bare || err == fasthttp.ErrTimeout
}

func codeOfRead(err error) outcome.Code {
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.As(err, &small):
		return outcome.HeadTooLarge
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return outcome.BodyTooLarge
	case errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &network) && network.Timeout():
		return outcome.RequestTimeout
	case errors.As(err, &network):
		return outcome.CallerGone
	}
	return outcome.BadRequest
}

// quiet takes fasthttp's own messages, which are about single connections.
type quiet struct{ log *zerolog.Logger }

// Printf logs at debug level.
func (q quiet) Printf(format string, args ...any) {
	q.log.Debug().Str("source", "fasthttp").Msgf(format, args...)
}
