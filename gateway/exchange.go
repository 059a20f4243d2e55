package gateway

import (
	"time"

	"github.com/valyala/fasthttp"

	"sluice/gateway/deadline"
	"sluice/gateway/edge"
	"sluice/gateway/limits"
	"sluice/gateway/outcome"
	"sluice/gateway/upstream"
)

// Exchange is one request and its response in progress. An engine embeds it in what
// it keeps per request, fills the first group of fields, calls Arrive, and may use
// it again once Done was named. An Exchange must not be copied.
type Exchange struct {
	// Set by the engine before Arrive.
	Began    time.Time          // when the first byte of the request came
	Request  *fasthttp.Request  // its head, or all of it; the core changes it into what is sent
	Whole    bool               // the body has been read too: no Receive is needed
	Response *fasthttp.Response // empty; becomes what the caller gets
	Caller   *edge.Caller
	Owner    Owner

	// Named by the core, done by the engine.
	Upstream *Upstream
	Endpoint *upstream.Endpoint // of the present attempt
	SendBy   time.Time          // the attempt must have ended by then
	BodyMost int64              // in Receive and Collect: the largest body to read, in bytes
	Stall    time.Duration      // while relaying: the longest gap between bytes; 0: SendBy bounds it all
	WakeAt   time.Time          // in Queue and Pause: the end of waiting

	// Set by the engine before Headed, Attempted and Relayed.
	Facts   upstream.Facts
	Fields  edge.Fields   // groups of header fields that the response may have
	Connect time.Duration // time it took to open the connection, 0 for one from the pool
	Relayed int64         // bytes of the body that were passed on, before Relayed

	next       Next
	interrupts Interrupt
	snapshot   *snapshot
	route      *Route
	deadline   deadline.Deadline
	waiter     limits.Waiter
	http10     bool // the caller cannot read chunks
	head       edge.Head

	// What the exchange holds; finish gives all of it back.
	counted  bool // in the gateway's number of exchanges
	waiting  bool // in its upstream's queue
	permit   bool // of its upstream
	attempts int
	trying   bool // an attempt is in flight on Endpoint
	maySent  bool // some attempt may have handed a byte of the request to the kernel
	closing  bool // the caller's connection cannot be used again
	unread   bool // not even its head could be read

	code      outcome.Code
	class     outcome.Class
	outcome   outcome.Outcome
	asked     time.Time // for a permit
	admitted  time.Time
	begun     time.Time // start of the present attempt
	headed    time.Time
	bytesIn   int64
	requestID []byte
	scratch   []byte
}

// begin makes x a fresh exchange and keeps its buffers.
func (x *Exchange) begin() {
	*x = Exchange{
		Began: x.Began, Request: x.Request, Whole: x.Whole, Response: x.Response, Caller: x.Caller, Owner: x.Owner,
		requestID: x.requestID[:0], scratch: x.scratch[:0],
	}
	x.waiter.Owner = x
}

// wants records what x waits for, and returns it to the engine.
func (x *Exchange) wants(n Next) Next {
	x.next = n
	return n
}

// Holding is what an exchange holds and must give back.
type Holding struct {
	Counted bool // a place among the gateway's exchanges
	Waiting bool // a place in a queue, or a grant on its way
	Permit  bool // of its upstream
	Trying  bool // an attempt in flight on an endpoint
}

// Holding says what x holds now; the zero value once it has ended.
func (x *Exchange) Holding() Holding {
	return Holding{x.counted, x.waiting, x.permit, x.trying}
}

// RequestID is the identifier that the answer and the upstream's request carry.
func (x *Exchange) RequestID() []byte { return x.requestID }

// Code is why the exchange ended, once it has.
func (x *Exchange) Code() outcome.Code { return x.code }

// Outcome is what the caller may conclude, once the exchange has ended.
func (x *Exchange) Outcome() outcome.Outcome { return x.outcome }

// Attempts is how many were begun.
func (x *Exchange) Attempts() int { return x.attempts }
