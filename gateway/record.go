package gateway

import (
	"time"

	"sluice/gateway/edge"
	"sluice/gateway/telemetry"
	"sluice/gateway/upstream"
)

// record tells the operator of an exchange that has ended: one event in the log,
// and the route's counters.
func (g *Gateway) record(x *Exchange, now time.Time) {
	total := now.Sub(x.Began)
	status := x.Response.StatusCode()
	bytesOut := x.Relayed
	if bytesOut == 0 && !x.Response.IsBodyStream() && !x.Request.Header.IsHead() {
		bytesOut = int64(len(x.Response.Body()))
	}
	metrics := x.snapshot.unrouted
	if x.route != nil {
		metrics = x.route.metrics
	}
	metrics.Done(status, x.code, total, x.bytesIn, bytesOut)
	if !g.log.Wants(status, x.code) {
		return
	}
	e := telemetry.Exchange{
		At:        now,
		RequestID: x.requestID,
		Method:    x.Request.Header.Method(),
		Host:      x.Request.Header.Host(),
		Caller:    x.Caller.Text,
		Status:    status,
		Code:      x.code.String(),
		Outcome:   x.outcome.String(),
		Attempts:  x.attempts,
		Reused:    x.Facts.Reused,
		BytesIn:   x.bytesIn,
		BytesOut:  bytesOut,
		Connect:   x.Connect,
		Total:     total,
	}
	if x.unread {
		e.Method, e.Host = nil, nil // the library's defaults, not the caller's words
	} else {
		e.Path, _ = edge.Target(x.Request.Header.RequestURI())
	}
	if x.route != nil {
		e.Route, e.Upstream = x.route.name, x.Upstream.Name
	}
	switch {
	case x.asked.IsZero():
	case x.admitted.IsZero():
		e.Queue = now.Sub(x.asked) // in vain
	default:
		e.Queue = x.admitted.Sub(x.asked)
	}
	if x.attempts > 0 {
		e.Endpoint = x.Endpoint.Address
		if x.Facts.Cause != upstream.Complete {
			e.Detail, e.Why = x.Facts.Cause.String(), x.Facts.Why
		}
		if !x.headed.IsZero() {
			e.Head = x.headed.Sub(x.begun)
		}
	}
	g.log.Exchange(&e)
}
