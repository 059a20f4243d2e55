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

// Arrive begins an exchange whose head has been read: is there room, is it readable
// without doubt, where does it go?
func (g *Gateway) Arrive(x *Exchange, now time.Time) Next {
	g.enter(x, now)
	if g.inFlight.Load() > x.snapshot.inFlight {
		return g.answer(x, outcome.GatewayBusy)
	}
	if why := g.readable(x); why != outcome.Passed {
		return g.answer(x, why)
	}
	if why := g.match(x); why != outcome.Passed {
		return g.answer(x, why)
	}
	x.deadline = x.route.deadline.Start(x.Began)
	x.http10 = !x.Request.Header.IsHTTP11()
	x.BodyMost = x.route.maxBody
	if int64(x.Request.Header.ContentLength()) > x.BodyMost {
		return g.answer(x, outcome.BodyTooLarge)
	}
	if !x.Whole {
		return x.wants(Receive)
	}
	return g.Received(x, now)
}

// Received goes on with a request that has been read whole: it becomes what is sent.
func (g *Gateway) Received(x *Exchange, now time.Time) Next {
	x.bytesIn = int64(len(x.Request.Body()))
	if x.bytesIn > x.route.maxBody {
		return g.answer(x, outcome.BodyTooLarge)
	}
	g.forward(x)
	return g.Looked(x, now)
}

// readable says whether every reader takes the request for the same thing.
func (g *Gateway) readable(x *Exchange) outcome.Code {
	h := &x.Request.Header
	switch {
	case x.head.Lines > x.snapshot.fields:
		return outcome.HeadTooLarge
	case x.head.Doubtful, !edge.HostOK(h.Host()):
		return outcome.BadRequest
	case !edge.VersionOK(h):
		return outcome.VersionUnsupported
	}
	if uri := h.RequestURI(); len(uri) > 0 && uri[0] != '/' {
		origin := edge.OriginForm(uri, h.Host())
		if origin == nil {
			return outcome.BadRequest
		}
		x.Request.SetRequestURIBytes(origin)
	}
	return outcome.Passed
}

// match finds the route. The path that it matches is the one that is sent, so it has
// to have one reading.
func (g *Gateway) match(x *Exchange) outcome.Code {
	h := &x.Request.Header
	path, ok := edge.Target(h.RequestURI())
	if !ok {
		return outcome.BadRequest
	}
	route, found := x.snapshot.table.Match(h.Host(), h.Method(), path)
	if found != routes.Matched {
		switch {
		case !edge.PathCanonical(path):
			return outcome.BadRequest
		case found == routes.NoMethod:
			return outcome.MethodNotAllowed
		}
		return outcome.NoRoute
	}
	if !edge.PathCanonical(path) && !(route.rawPaths && edge.PathSafe(path)) {
		return outcome.BadRequest
	}
	if route.anyMethod && !edge.MethodKnown(h.Method()) {
		return outcome.MethodUnknown
	}
	x.route, x.Upstream = route, route.upstream
	return outcome.Passed
}

// Looked goes on once it is known that no stored answer serves the request.
func (g *Gateway) Looked(x *Exchange, now time.Time) Next {
	x.asked = now
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
	if e == nil || x.Upstream.gone.Load() {
		return g.answer(x, outcome.NoEndpoint)
	}
	e.Begin()
	x.Endpoint, x.trying = e, true
	x.attempts++
	x.begun, x.headed = now, time.Time{}
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
	edge.StripResponse(h, x.Fields)
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
func (g *Gateway) Attempted(x *Exchange, _ time.Time) Next {
	g.ended(x)
	if !x.class.Complete() {
		return g.answer(x, x.Facts.Code())
	}
	x.code, x.outcome = outcome.Passed, outcome.OutcomeDone
	g.mark(x)
	return g.toCaller(x)
}

// toCaller is where every answer goes that is not relayed, the backend's and ours.
// The upstream has nothing more to do with it.
func (g *Gateway) toCaller(x *Exchange) Next {
	g.release(x)
	return x.wants(Answer)
}

// Settled goes on once the result is durable, where it must be.
func (g *Gateway) Settled(x *Exchange, _ time.Time) Next {
	return g.toCaller(x)
}

// Relayed ends an exchange whose body has been passed on, whole or in part. What
// the caller has of it cannot be taken back, so there is nothing left to answer.
func (g *Gateway) Relayed(x *Exchange, now time.Time) Next {
	g.ended(x)
	x.code = x.Facts.Code()
	x.outcome = x.outcomeOf(x.code)
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

// Unreadable answers a request that the engine could not read: its head, in place of
// Arrive, or its body, in place of Received.
func (g *Gateway) Unreadable(x *Exchange, why outcome.Code, now time.Time) Next {
	if x.next != Receive {
		g.enter(x, now)
		x.unread = len(x.Request.Header.RawHeaders()) == 0
	}
	x.closing = true
	return g.answer(x, why)
}

// Failed answers for an exchange in which a fault of the gateway showed, wherever
// it was.
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

// Finish is the only exit: it gives back whatever x still holds and records the
// exchange. It names Done.
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
	x.begin()
	x.snapshot = g.snapshot.Load()
	g.inFlight.Add(1)
	x.counted = true
	x.head = edge.ReadHead(x.Request.Header.RawHeaders())
	g.identify(x, now)
}

// ended closes the books on the attempt in flight.
func (g *Gateway) ended(x *Exchange) {
	x.trying = false
	x.class = x.Facts.Class()
	x.maySent = x.maySent || !x.Facts.Unsent && x.class != outcome.NotSent && x.class != outcome.Refused
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

// outcomeOf is what the caller may conclude from an exchange that ends with code. The
// table says it for the usual way there; what any attempt may have sent decides.
func (x *Exchange) outcomeOf(code outcome.Code) outcome.Outcome {
	switch o := code.Info().Outcome; {
	case o == outcome.OutcomeNotSent && x.maySent:
		return outcome.OutcomeUnknown
	case o == outcome.OutcomeUnknown && !x.maySent:
		return outcome.OutcomeNotSent
	default:
		return o
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
