package sim

import (
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/gateway"
	"sluice/gateway/edge"
	"sluice/gateway/outcome"
	"sluice/gateway/upstream"
)

// actor is one exchange: caller and backend of it, and the engine between.
type actor struct {
	gateway.Exchange
	world   *world
	caller  edge.Caller
	waits   gateway.Next // what the core named last
	turn    int          // counts what was named, so that an event for an earlier wait is void
	granted bool         // a grant is on its way
	over    bool         // interrupted while it waited: nothing may be begun for it any more
	plan    plan         // of the attempt in flight

	// The truth, from the backend's side.
	bounded  bool // the whole response is within the route's timeout
	timeout  time.Duration
	started  time.Time
	reading  time.Duration // that the body took to come
	sent     int64         // most bytes that any attempt handed to the kernel
	tries    int
	complete bool // a complete response was read
	ended    int
}

func newActor(w *world) *actor {
	a := &actor{world: w, started: w.now}
	a.Request, a.Response = &fasthttp.Request{}, &fasthttp.Response{}
	a.Caller, a.Owner = &a.caller, a
	a.Began, a.Whole = w.now, w.rand.IntN(2) == 0
	a.caller.Set(w.load.address(w.rand), false)
	a.bounded, a.timeout = w.load.request(w.rand, a.Request)
	w.actors[a] = struct{}{}
	return a
}

// start arrives, or is one that could not be read.
func (a *actor) start() {
	w := a.world
	if w.rand.IntN(50) == 0 {
		codes := []outcome.Code{outcome.BadRequest, outcome.RequestTimeout, outcome.BodyTooLarge, outcome.HeadTooLarge}
		a.step(w.core.Unreadable(&a.Exchange, codes[w.rand.IntN(len(codes))], w.now))
		return
	}
	a.step(w.core.Arrive(&a.Exchange, w.now))
	for range w.load.interrupts(w.rand) {
		w.after(w.load.moment(w.rand), a.interrupt)
	}
}

// step does what the core named.
func (a *actor) step(n gateway.Next) {
	w := a.world
	w.result.Steps++
	w.result.Nexts[n.String()]++
	a.waits = n
	a.turn++
	if n != gateway.Answer && n != gateway.Relay && n != gateway.Done && w.rand.Float64() < w.load.buggy {
		a.fail(n)
		return
	}
	switch n {
	case gateway.Receive:
		a.receive()
	case gateway.Queue:
		a.park()
	case gateway.Send:
		a.send()
	case gateway.Collect:
		a.body(false)
	case gateway.Relay:
		a.body(true)
	case gateway.Answer:
		a.judge()
		a.then(w.load.write(w.rand), func() {
			w.core.Finish(&a.Exchange, w.now)
			a.done()
		})
	case gateway.Done:
		a.done()
	default:
		w.failf("the core named %v, which this version never does", n)
	}
}

// fail is a fault of the gateway where it was about to do n. Nothing is known then of
// what was sent, and the answer must not claim otherwise.
func (a *actor) fail(n gateway.Next) {
	w := a.world
	if n == gateway.Send {
		a.tries++
		a.sent = 1
	}
	a.Facts.Cause = upstream.Lost
	w.result.Failed++
	a.granted = false
	a.step(w.core.Failed(&a.Exchange, w.now))
}

// then happens after d, unless something else moved the exchange on meanwhile.
func (a *actor) then(d time.Duration, do func()) {
	turn := a.turn
	a.world.after(d, func() {
		if a.turn == turn && a.ended == 0 {
			do()
		}
	})
}

// receive lets the body come, or not.
func (a *actor) receive() {
	w := a.world
	d := w.load.moment(w.rand)
	a.reading = d // the caller's own time: nothing ends it but the engine's limits
	a.then(d, func() {
		if w.rand.IntN(10) == 0 {
			codes := []outcome.Code{outcome.RequestTimeout, outcome.BodyTooLarge, outcome.CallerGone, outcome.GatewayBusy}
			a.step(w.core.Unreadable(&a.Exchange, codes[w.rand.IntN(len(codes))], w.now))
			return
		}
		a.step(w.core.Received(&a.Exchange, w.now))
	})
}

func (a *actor) park() {
	w := a.world
	if a.granted { // on its way: nothing else ends the wait
		w.result.Late++
		return
	}
	a.then(max(a.WakeAt.Sub(w.now), 0), func() { a.step(w.core.Shed(&a.Exchange, w.now)) })
}

// Granted implements gateway.Owner: the news takes a while.
func (a *actor) Granted(*gateway.Exchange) {
	w := a.world
	if a.granted || a.waits != gateway.Queue {
		w.failf("granted while waiting for %v, granted before: %v", a.waits, a.granted)
	}
	a.granted = true
	w.after(w.load.news(w.rand), func() {
		if !a.granted || a.ended > 0 {
			return // it failed meanwhile, and the permit is given back
		}
		a.granted = false
		a.step(w.core.Admitted(&a.Exchange, w.now))
	})
}

// interrupt happens at a random time, wherever the exchange then is.
func (a *actor) interrupt() {
	w := a.world
	switch a.waits {
	case gateway.Answer, gateway.Relay, gateway.Done:
		return
	}
	w.result.Interrupt++
	a.over = a.over || a.waits == gateway.Queue
	what := []gateway.Interrupt{gateway.CallerFinished, gateway.CallerReset, gateway.Drain}[w.rand.IntN(3)]
	n := w.core.Interrupted(&a.Exchange, what, w.now)
	switch {
	case n != a.waits:
		a.step(n)
	case n == gateway.Queue:
		if !a.granted {
			w.failf("%v: an interrupt left the exchange in the queue", what)
		}
		w.result.Late++
		a.turn++ // the end of waiting is void: the grant decides
	}
}

// send lets the backend's plan for this attempt happen.
func (a *actor) send() {
	w := a.world
	if a.Endpoint == nil || !a.SendBy.After(w.now) {
		w.failf("send with endpoint %v and %v left", a.Endpoint, a.SendBy.Sub(w.now))
		return
	}
	if w.gone(a.Upstream) {
		w.failf("%v: an attempt was begun at an upstream that is gone", a)
	}
	if a.over {
		w.failf("%v: an attempt was begun after an interrupt in the queue", a)
	}
	a.tries++
	a.plan = w.load.plan(w.rand)
	a.attempt(a.plan.head, func() {
		if a.plan.status == 0 {
			a.Facts.Cause, a.Facts.Unsent = a.plan.cause, a.plan.sent == 0
			a.step(w.core.Attempted(&a.Exchange, w.now))
			return
		}
		a.Facts.Status, a.Fields = a.plan.status, edge.FieldsAll
		a.Response.SkipBody = a.Request.Header.IsHead()
		a.Response.SetStatusCode(a.plan.status)
		a.Response.Header.SetContentLength(a.plan.length)
		a.step(w.core.Headed(&a.Exchange, w.now))
	})
	a.sent = max(a.sent, a.plan.sent)
}

// body lets the response's body come to its end, one way or the other.
func (a *actor) body(relayed bool) {
	w := a.world
	after := func() {
		a.Facts.Cause = a.plan.end
		a.complete = a.complete || a.plan.end == upstream.Complete
		if relayed {
			a.step(w.core.Relayed(&a.Exchange, w.now))
		} else {
			a.step(w.core.Attempted(&a.Exchange, w.now))
		}
	}
	if relayed && a.Stall > 0 {
		a.then(a.plan.body, after)
		return
	}
	a.attempt(a.plan.body, after)
}

// attempt lets do happen after d, or the attempt time out, as an engine would.
func (a *actor) attempt(d time.Duration, do func()) {
	w := a.world
	if w.now.Add(d).Before(a.SendBy) {
		a.then(d, do)
		return
	}
	relayed := a.waits == gateway.Relay
	a.then(a.SendBy.Sub(w.now), func() {
		a.Facts.Cause = upstream.TimedOut
		if a.waits == gateway.Send {
			a.Facts.Unsent = a.plan.sent == 0
		}
		if relayed {
			a.step(w.core.Relayed(&a.Exchange, w.now))
		} else {
			a.step(w.core.Attempted(&a.Exchange, w.now))
		}
	})
}

// judge holds the answer against the truth.
func (a *actor) judge() {
	w := a.world
	status, code := a.Response.StatusCode(), a.Code()
	if code == outcome.Passed {
		if !a.complete || status != a.plan.status {
			w.failf("status %d was passed on, the backend's is %d, complete: %v", status, a.plan.status, a.complete)
		}
	} else if info := code.Info(); status != info.Status && code != outcome.Shed {
		w.failf("%v was answered with status %d, want %d", code, status, info.Status)
	}
	if code == outcome.NoEndpoint && w.gone(a.Upstream) {
		w.result.Gone++
	}
	a.claim()
	if a.bounded && w.now.Sub(a.started) > a.timeout+a.reading+newsAtMost {
		w.failf("%v was answered %v after arrival, the route's timeout is %v", code, w.now.Sub(a.started), a.timeout)
	}
}

// claim checks what the caller is told about the effect of its request.
func (a *actor) claim() {
	w := a.world
	switch a.Outcome() {
	case outcome.OutcomeNotSent:
		if a.sent > 0 {
			w.failf("%v claims not-sent, but %d bytes were sent", a.Code(), a.sent)
		}
	case outcome.OutcomeDone:
		if !a.complete {
			w.failf("%v claims done without a complete response", a.Code())
		}
	case outcome.OutcomeNone:
		if a.tries > 0 {
			w.failf("%v claims nothing after an attempt", a.Code())
		}
	}
	if a.tries > 1 {
		w.failf("%d attempts, this version makes one", a.tries)
	}
}

// done ends the exchange: once, and with nothing held.
func (a *actor) done() {
	w := a.world
	a.ended++
	a.turn++
	a.waits = gateway.Done
	if a.ended != 1 {
		w.failf("ended %d times", a.ended)
	}
	if held := a.Holding(); held != (gateway.Holding{}) {
		w.failf("ended with %+v", held)
	}
	a.claim()
	w.result.Codes[a.Code().String()]++
	if a.tries > 0 {
		w.result.FirstTry++
	}
	delete(w.actors, a)
}

func (a *actor) String() string {
	return fmt.Sprintf("%s %s waiting for %v", a.Request.Header.Method(), a.Request.Header.RequestURI(), a.waits)
}
