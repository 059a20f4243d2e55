package gateway

import (
	"time"

	"sluice/gateway/edge"
	"sluice/gateway/limits"
	"sluice/gateway/outcome"
	"sluice/gateway/routes"
	"sluice/gateway/upstream"
)

// The life of an exchange, top to bottom. Each function runs when what the exchange
// waited for has happened, never blocks, and returns the one thing to wait for
// next. Engines wait; only Finish lets go of what x holds.

// Arrive begins an exchange whose request was read whole.
func (g *Gateway) Arrive(x *Exchange, now time.Time) Next {
	g.enter(x, now)
	if g.inFlight.Load() > x.snapshot.inFlight {
		return g.answer(x, outcome.GatewayBusy)
	}
	h := &x.Request.Header
	if x.fields > x.snapshot.fields {
		return g.answer(x, outcome.HeadTooLarge)
	}
	path, ok := edge.Target(h.RequestURI())
	if !ok || !edge.HostOK(h.Host()) {
		return g.answer(x, outcome.BadRequest)
	}
	route, found := x.snapshot.table.Match(h.Host(), h.Method(), path)
	switch found {
	case routes.NoPath:
		return g.answer(x, outcome.NoRoute)
	case routes.NoMethod:
		return g.answer(x, outcome.MethodNotAllowed)
	}
	x.route, x.Upstream = route, route.upstream
	x.deadline = route.deadline.Start(x.arrived)
	x.bytesIn = int64(len(x.Request.Body()))
	if x.bytesIn > route.maxBody {
		return g.answer(x, outcome.BodyTooLarge)
	}
	x.http10 = !h.IsHTTP11()
	g.forward(x)
	return g.Looked(x, now)
}

// Looked goes on once it is known that no stored answer serves the request.
func (g *Gateway) Looked(x *Exchange, now time.Time) Next {
	switch x.Upstream.limiter.Enter(&x.waiter) {
	case limits.Granted:
		x.permit = true
		return g.begin(x, now)
	case limits.Queued:
		x.waiting = true
		x.WakeAt = earlier(now.Add(x.Upstream.queueTime()), x.deadline.At())
		return x.wants(Queue)
	default:
		return g.answer(x, outcome.Shed)
	}
}

// Admitted goes on when a release has given x the permit it waited for.
func (g *Gateway) Admitted(x *Exchange, now time.Time) Next {
	x.waiting, x.permit = false, true
	if x.interrupts != 0 {
		return g.answer(x, x.interrupted())
	}
	return g.begin(x, now)
}

// Shed ends x's place in the queue: its time there is over.
func (g *Gateway) Shed(x *Exchange, now time.Time) Next {
	if !x.Upstream.limiter.Leave(&x.waiter) {
		// A grant came first and is on its way here. It is taken, late as it is:
		// begin looks at the deadline.
		return x.wants(Queue)
	}
	x.waiting = false
	if x.deadline.Passed(now) {
		return g.answer(x, outcome.DeadlineExceeded)
	}
	return g.answer(x, outcome.Shed)
}

// begin is where a permit is held and nothing has been sent.
func (g *Gateway) begin(x *Exchange, now time.Time) Next {
	x.admitted = now
	return g.Begun(x, now)
}

// Begun goes on once everything that must be durable before the first byte leaves
// is durable.
func (g *Gateway) Begun(x *Exchange, now time.Time) Next {
	return g.attempt(x, now)
}

// Woken ends a pause between two attempts.
func (g *Gateway) Woken(x *Exchange, now time.Time) Next {
	return g.attempt(x, now)
}

// attempt begins one, if there is still time and somewhere to send it.
func (g *Gateway) attempt(x *Exchange, now time.Time) Next {
	if x.deadline.Passed(now) {
		return g.answer(x, outcome.DeadlineExceeded)
	}
	e := x.Upstream.Pick(g.random())
	if e == nil {
		return g.answer(x, outcome.NoEndpoint)
	}
	e.Begin()
	x.Endpoint, x.trying = e, true
	x.attempts++
	x.begun = now
	x.Facts, x.Connect = upstream.Facts{}, 0
	x.SendBy = x.route.deadline.Attempt(x.deadline, now, false)
	if x.attempts == 1 {
		x.Upstream.metrics.FirstTry()
	}
	return x.wants(Send)
}

// Headed decides what becomes of a response whose head has been read into
// x.Response. A body of known moderate size is collected, so that one that is cut
// short becomes a whole 502; anything else is passed on as it comes.
func (g *Gateway) Headed(x *Exchange, now time.Time) Next {
	x.headed = now
	x.Upstream.metrics.Head(now.Sub(x.begun))
	h := &x.Response.Header
	if h.StatusCode() < 200 {
		// The only one that gets here is 101, which nobody asked for: Upgrade ends
		// at this hop.
		x.Facts.Cause = upstream.Malformed
		return g.Attempted(x, now)
	}
	edge.StripResponse(h)
	length := h.ContentLength()
	x.BodyMost = collectAtMost
	if x.http10 && length < 0 {
		// Only a length tells a caller of HTTP/1.0 that a body is whole, so it has to
		// be known first.
		x.BodyMost = collectForHTTP10
		return x.wants(Collect)
	}
	if x.Response.SkipBody || bodiless(h.StatusCode()) || 0 <= length && length <= collectAtMost {
		return x.wants(Collect)
	}
	g.mark(x)
	if x.route.stream {
		x.Stall = x.route.stall
		g.release(x) // the upstream's work is done; how long the caller reads is its own affair
	}
	return x.wants(Relay)
}

// Attempted judges an attempt that has ended: a complete response is passed on as
// it is, anything else becomes an answer of ours.
func (g *Gateway) Attempted(x *Exchange, now time.Time) Next {
	g.ended(x)
	if !x.class.Complete() {
		return g.answer(x, x.Facts.Code())
	}
	return g.Settled(x, now)
}

// Settled goes on once the result is durable, where it must be.
func (g *Gateway) Settled(x *Exchange, _ time.Time) Next {
	x.code, x.outcome = outcome.Passed, outcome.OutcomeDone
	g.mark(x)
	return x.wants(Answer)
}

// Relayed ends an exchange whose body has been passed on, whole or in part. What
// the caller has of it cannot be taken back, so there is nothing left to answer.
func (g *Gateway) Relayed(x *Exchange, now time.Time) Next {
	g.ended(x)
	x.code = x.Facts.Code()
	x.outcome = x.code.Info().Outcome
	g.Finish(x, now)
	return Done
}

// Interrupted tells x what happened while it waits. It returns what to wait for
// now.
func (g *Gateway) Interrupted(x *Exchange, what Interrupt, _ time.Time) Next {
	x.interrupts |= what
	if x.next != Queue {
		return x.next
	}
	if !x.Upstream.limiter.Leave(&x.waiter) {
		return Queue // a grant is on its way; Admitted reads the flag
	}
	x.waiting = false
	return g.answer(x, x.interrupted())
}

// Unreadable answers a request that the engine could not read. It takes the place
// of Arrive.
func (g *Gateway) Unreadable(x *Exchange, why outcome.Code, now time.Time) Next {
	g.enter(x, now)
	x.Response.Header.SetConnectionClose()
	return g.answer(x, why)
}

// Failed answers for an exchange in which a fault of the gateway showed, wherever
// it was. It may have been sent.
func (g *Gateway) Failed(x *Exchange, _ time.Time) Next {
	if x.waiting {
		x.waiting = false
		// If it cannot leave it has been granted, and gives that permit back.
		x.permit = !x.Upstream.limiter.Leave(&x.waiter)
	}
	if x.trying {
		g.ended(x)
	}
	return g.answer(x, outcome.Internal)
}

// Finish is the only exit: it gives back whatever x holds and records the exchange.
// It names Done.
func (g *Gateway) Finish(x *Exchange, now time.Time) {
	if x.trying {
		x.Facts.Cause = upstream.Given
		g.ended(x)
	}
	g.release(x)
	if x.counted {
		x.counted = false
		g.inFlight.Add(-1)
	}
	g.record(x, now)
	x.snapshot, x.route, x.Upstream, x.Endpoint = nil, nil, nil, nil
	x.next = Done
}

// enter counts x in and gives it a snapshot and a name.
func (g *Gateway) enter(x *Exchange, now time.Time) {
	x.begin(now)
	x.snapshot = g.snapshot.Load()
	g.inFlight.Add(1)
	x.counted = true
	x.seen, x.fields = edge.Find(x.Request.Header.RawHeaders())
	g.identify(x, now)
}

// ended closes the books on the attempt in flight.
func (g *Gateway) ended(x *Exchange) {
	x.trying = false
	x.class = x.Facts.Class()
	x.Endpoint.End()
	m := x.Upstream.metrics
	m.Attempt(x.class)
	switch {
	case x.Facts.Cause == upstream.DialFailed, x.Facts.Cause == upstream.NoHandshake:
		m.ConnectFailed()
	case x.Facts.Cause == upstream.NoConnection:
	case x.Facts.Reused:
		m.Reused()
	default:
		m.Opened()
	}
}

// release gives the permit back and tells those who get theirs by it.
func (g *Gateway) release(x *Exchange) {
	if !x.permit {
		return
	}
	x.permit = false
	g.grant(x.Upstream.limiter.Release())
}

// grant tells each of a list of waiters that it holds a permit.
func (g *Gateway) grant(w *limits.Waiter) {
	for w != nil {
		next := w.Next()
		x := w.Owner.(*Exchange)
		x.Owner.Granted(x)
		w = next
	}
}

// interrupted is the code of an exchange that ends because of its interrupts before
// anything was sent.
func (x *Exchange) interrupted() outcome.Code {
	if x.interrupts&Drain != 0 {
		return outcome.Draining
	}
	return outcome.CallerGone
}

func bodiless(status int) bool { return status == 204 || status == 304 }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
