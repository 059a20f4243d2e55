package upstream

import "sluice/gateway/outcome"

// Cause is what ended an attempt, as the engine saw it on the socket. The zero
// value is the cautious one: the connection was lost at some point.
type Cause uint8

// The causes.
const (
	Lost         Cause = iota // closed or reset, by whomever, before a complete response
	Complete                  // a complete response was read
	NoConnection              // all connections that the endpoint may have are in use
	DialFailed                // no TCP connection came about in time
	NoHandshake               // no TLS session came about in time
	TimedOut                  // the attempt's time ran out
	Malformed                 // what came back is no valid response, or is over a limit
	CutShort                  // the response ended before its announced end
	Given                     // the gateway gave the attempt up: the caller left
	Stopped                   // the gateway gave the attempt up: it is stopping
)

var causeNames = [...]string{
	Lost: "connection lost", Complete: "complete", NoConnection: "no free connection", DialFailed: "dial failed",
	NoHandshake: "tls handshake failed", TimedOut: "timed out", Malformed: "malformed response",
	CutShort: "response cut short", Given: "given up", Stopped: "cut by the drain",
}

// String gives the cause in words, for logs.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "invalid"
}

// Facts is what an engine saw of one attempt. The zero value reads as "may have
// been sent".
type Facts struct {
	Cause  Cause
	Unsent bool // the kernel accepted no byte of the request (under TLS: no complete record)
	Status int  // of the response, when its head was read
	Reused bool // the connection had served an attempt before

	Why string // more about Cause, a word of a closed list, for logs; "" for nothing
}

// Class says how the attempt ended. It is the only place that decides it.
func (f Facts) Class() outcome.Class {
	switch f.Cause {
	case Complete:
		return classOfStatus(f.Status)
	case NoConnection, DialFailed, NoHandshake:
		return outcome.NotSent
	case Given, Stopped:
		return outcome.Abandoned
	}
	if f.Unsent && f.Status == 0 {
		return outcome.NotSent
	}
	if f.Cause == TimedOut {
		return outcome.TimedOut
	}
	return outcome.Reset
}

func classOfStatus(status int) outcome.Class {
	switch {
	case status == 429 || status == 503:
		return outcome.Overloaded
	case status >= 500:
		return outcome.Failed
	default:
		return outcome.Answered
	}
}

// Code says why an exchange ends whose last attempt ended with these facts.
func (f Facts) Code() outcome.Code {
	switch f.Class() {
	case outcome.NotSent:
		switch f.Cause {
		case NoConnection:
			return outcome.NoConnection
		case DialFailed, NoHandshake:
			return outcome.ConnectFailed
		case TimedOut:
			return outcome.DeadlineExceeded
		}
		return outcome.NothingSent
	case outcome.TimedOut:
		return outcome.UpstreamTimeout
	case outcome.Abandoned:
		if f.Cause == Stopped {
			return outcome.Draining
		}
		return outcome.CallerGone
	case outcome.Reset:
		if f.Cause == Malformed {
			return outcome.BadResponse
		}
		return outcome.UpstreamReset
	}
	return outcome.Passed
}
