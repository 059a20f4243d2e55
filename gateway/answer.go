package gateway

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/gateway/edge"
	"sluice/gateway/outcome"
)

var (
	requestIDName = []byte("X-Request-Id")
	outcomeName   = []byte("Gateway-Outcome")
	noStore       = []byte("no-store")
	cacheControl  = []byte(fasthttp.HeaderCacheControl)
	retryAfter    = []byte(fasthttp.HeaderRetryAfter)
	problemType   = []byte("application/problem+json")
)

// retryWithin spreads the Retry-After of refusals over 1 to this many seconds, so
// that callers who were refused together do not come back together.
const retryWithin = 3

// answer writes an answer of ours into x.Response: an RFC 9457 problem document. It
// is the only writer of such answers.
func (g *Gateway) answer(x *Exchange, code outcome.Code) Next {
	info := code.Info()
	x.code, x.outcome = code, x.outcomeOf(code)
	status := info.Status
	if code == outcome.Shed {
		status = x.Upstream.shedStatus()
	}
	r := x.Response
	r.Reset() // it also lets the library write Date, which is ours to give here
	h := &r.Header
	r.SetStatusCode(status)
	h.SetContentTypeBytes(problemType)
	h.SetCanonical(cacheControl, noStore)
	if x.outcome != outcome.OutcomeNone {
		x.scratch = append(x.scratch[:0], x.outcome.String()...)
		h.SetCanonical(outcomeName, x.scratch)
	}
	switch {
	case code == outcome.MethodNotAllowed:
		path, _ := edge.Target(x.Request.Header.RequestURI())
		h.Set(fasthttp.HeaderAllow, x.snapshot.table.Allow(x.Request.Header.Host(), path))
	case status == 429 || status == 503:
		x.scratch = strconv.AppendUint(x.scratch[:0], 1+g.random()%retryWithin, 10)
		h.SetCanonical(retryAfter, x.scratch)
	}
	if x.closing || closes(code) {
		h.SetConnectionClose()
	}
	x.scratch = appendProblem(x.scratch[:0], info.Title, status, code, x.outcome, x.requestID)
	r.SetBody(x.scratch)
	g.mark(x)
	return g.toCaller(x)
}

// closes says after which codes a connection cannot be used again: where the
// request ends is then uncertain, or its rest was not read.
func closes(code outcome.Code) bool {
	switch code {
	case outcome.BadRequest, outcome.VersionUnsupported, outcome.MethodUnknown, outcome.RequestTimeout, outcome.HeadTooLarge, outcome.CallerGone:
		return true
	}
	return false
}

// appendProblem appends the document. Every value is from a closed list, a number,
// or an identifier of characters that need no escape.
func appendProblem(b []byte, title string, status int, code outcome.Code, o outcome.Outcome, requestID []byte) []byte {
	b = append(b, `{"type":"urn:sluice:`...)
	b = append(b, code.String()...)
	b = append(b, `","title":"`...)
	b = append(b, title...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, `,"code":"`...)
	b = append(b, code.String()...)
	if o != outcome.OutcomeNone {
		b = append(b, `","outcome":"`...)
		b = append(b, o.String()...)
	}
	b = append(b, `","request_id":"`...)
	b = append(b, requestID...)
	return append(b, "\"}\n"...)
}

// mark puts on an answer what all answers carry.
func (g *Gateway) mark(x *Exchange) {
	h := &x.Response.Header
	h.SetCanonical(requestIDName, x.requestID)
	if g.draining.Load() {
		h.SetConnectionClose()
	}
}

// identify gives x its request id: the one a trusted peer sent, or a new one.
func (g *Gateway) identify(x *Exchange, now time.Time) {
	if x.head.Seen&edge.FieldRequestID != 0 && x.snapshot.proxies.Trust(x.Caller.Address) {
		if id := x.Request.Header.PeekBytes(requestIDName); edge.RequestIDOK(id) {
			x.requestID = append(x.requestID, id...)
			return
		}
	}
	x.requestID = edge.AppendRequestID(x.requestID, now, g.random)
}

// forward turns the request into what is sent: what ends at this hop is gone, and
// the next one is told about the caller.
func (g *Gateway) forward(x *Exchange) {
	h := &x.Request.Header
	seen := x.head.Seen
	trusted := seen&edge.FieldForwarded != 0 && x.snapshot.proxies.Trust(x.Caller.Address)
	edge.KeepOrder(h, seen, func() {
		edge.StripRequest(h, seen)
		x.scratch = edge.Forward(h, x.Caller, seen, trusted, x.scratch)
		if seen&edge.FieldRequestID != 0 {
			h.DelBytes(requestIDName)
		}
	})
	h.SetCanonical(requestIDName, x.requestID)
	// The target goes out as it came. Assigning it also forgets what the library
	// parsed from it, which it would otherwise write in its own spelling.
	x.Request.SetRequestURIBytes(h.RequestURI())
}
