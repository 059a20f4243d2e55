package server

import (
	"bufio"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/gateway"
	"sluice/gateway/upstream"
)

// call is what this engine keeps per exchange. The goroutine of the caller's
// connection drives it.
type call struct {
	gateway.Exchange
	engine *Engine
	core   *gateway.Gateway
	ctx    *fasthttp.RequestCtx
	in     *inbound
	now    time.Time

	// The attempt in flight.
	pool    *pool
	conn    *conn
	reader  *bufio.Reader
	chunked bool // the request's body is
	last    bool // the upstream closes the connection after this response
	err     error
	relay   relay

	body     []byte // of the request, when it was read here
	reserved int64  // bytes of it that are counted as buffered

	granted  chan struct{} // holds one grant
	timer    *time.Timer
	promised bool // a grant is on its way: wait for it and nothing else
}

func newCall(e *Engine) *call {
	c := &call{engine: e, core: e.core, granted: make(chan struct{}, 1)}
	c.Owner = c
	return c
}

// Granted wakes the goroutine that waits for x's permit. The channel has room: an
// exchange is granted at most once for each time it waits, and takes each grant.
func (c *call) Granted(*gateway.Exchange) { c.granted <- struct{}{} }

// open takes a request over.
func (c *call) open(ctx *fasthttp.RequestCtx) {
	c.ctx, c.Request, c.Response = ctx, &ctx.Request, &ctx.Response
	c.Whole = !ctx.Request.IsBodyStream()
	c.last, c.promised, c.err = false, false, nil
	c.now = time.Now()
	in, ok := ctx.Conn().(*inbound)
	if !ok { // a connection that did not come from a listener of ours
		in = &inbound{began: c.now}
		in.caller.Set(netip.Addr{}, ctx.IsTLS())
	}
	c.in, c.Began, c.Caller = in, in.began, &in.caller
	c.chunked = c.count(&ctx.Request.Header)
	if c.Began.IsZero() {
		c.Began = c.now
	}
}

// run begins an exchange and drives it. A fault of the gateway ends here.
func (c *call) run(begin func() gateway.Next) {
	defer c.barrier()
	c.drive(begin())
}

// count takes the request's bytes off those that were read ahead. What is left when
// its body has been read belongs to the caller's next request. A chunked body's bytes
// are not known. What is counted is never too much, so at worst an answer is sent at
// once without need.
func (c *call) count(h *fasthttp.RequestHeader) (chunked bool) {
	const line = len("  HTTP/1.1\r\n")
	c.in.ahead -= int64(len(h.Method()) + len(h.RequestURI()) + line + len(h.RawHeaders()) + max(h.ContentLength(), 0))
	return h.ContentLength() == -1
}

// drive does what the core names until the exchange has ended, or until its answer
// is a relay, which ends it later.
func (c *call) drive(n gateway.Next) {
	for {
		switch n {
		case gateway.Receive:
			n = c.receive()
		case gateway.Send:
			n = c.send()
		case gateway.Collect:
			n = c.collect()
		case gateway.Relay:
			c.pass()
			return
		case gateway.Queue:
			n = c.park()
		case gateway.Answer:
			// A deadline of its own also makes the server send this answer now. It would
			// else hold it back while the caller's next request is there already, and
			// lose it if that one's answer cannot be written.
			if c.in.ahead > 0 || c.chunked {
				_ = c.ctx.SetWriteDeadline(c.now.Add(c.engine.live.Load().Timeouts.Write))
			}
			c.core.Finish(&c.Exchange, c.now)
			c.engine.put(c)
			return
		default:
			// The core names only what its engines can do.
			panic("gateway/server: the core named " + n.String())
		}
	}
}

// park waits for a permit.
func (c *call) park() gateway.Next {
	x := &c.Exchange
	if c.promised {
		<-c.granted
		return c.admitted()
	}
	c.arm(x.WakeAt.Sub(c.now))
	defer c.timer.Stop()
	var n gateway.Next
	select {
	case <-c.granted:
		return c.admitted()
	case <-c.timer.C:
		c.now = time.Now()
		n = c.core.Shed(x, c.now)
	case <-c.engine.draining:
		c.now = time.Now()
		n = c.core.Interrupted(x, gateway.Drain, c.now)
	}
	c.promised = n == gateway.Queue
	return n
}

func (c *call) admitted() gateway.Next {
	c.promised = false
	c.now = time.Now()
	return c.core.Admitted(&c.Exchange, c.now)
}

func (c *call) arm(d time.Duration) {
	if c.timer == nil {
		c.timer = time.NewTimer(d)
		return
	}
	c.timer.Reset(d)
}

// barrier is where a fault of the gateway ends: the caller gets a 500, the operator
// the stack, and the process lives. What the call holds is then in doubt, so the
// call is not used again.
func (c *call) barrier() {
	fault := recover()
	if fault == nil {
		return
	}
	defer c.lastBarrier()
	c.tell(fault)
	c.forgetBody()
	c.letGo(false)
	c.Facts.Cause = upstream.Lost
	c.core.Failed(&c.Exchange, time.Now())
	c.core.Finish(&c.Exchange, time.Now())
}

// lastBarrier is for a fault where no answer can be made any more: what the exchange
// holds is given back, if that much still works.
func (c *call) lastBarrier() {
	fault := recover()
	if fault == nil {
		return
	}
	defer func() { _ = recover() }()
	c.tell(fault)
	c.ctx.SetConnectionClose()
	c.core.Finish(&c.Exchange, time.Now())
}

func (c *call) tell(fault any) {
	c.engine.log.Error().Interface("fault", fault).Bytes("stack", debug.Stack()).
		Bytes("request_id", c.RequestID()).Msg("fault in the gateway")
}
