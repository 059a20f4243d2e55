package outcome

// Code is why an exchange ended. It is a metric label, the `code` member of every
// problem document, and the tail of its `type`.
type Code uint8

// The codes. Passed is the zero value: the backend's own answer was passed on.
const (
	Passed             Code = iota // the backend's answer, whatever its status
	BadRequest                     // the request could not be read without doubt
	VersionUnsupported             // the request is of a version of HTTP that is not spoken here
	MethodUnknown                  // the method means nothing here
	NoRoute                        // no route has this host and path
	MethodNotAllowed               // routes have this path, but not for this method
	RequestTimeout                 // the caller did not finish sending in time
	BodyTooLarge                   // the body is over the route's max_body
	HeadTooLarge                   // the head is over the limits on bytes or fields
	Shed                           // refused at once, to keep the upstream healthy
	GatewayBusy                    // refused at once, to keep the gateway healthy
	Draining                       // the gateway is shutting down
	NoEndpoint                     // the upstream has no address now
	NoConnection                   // every connection the upstream may have is in use
	ConnectFailed                  // connecting, or the TLS handshake, failed or took too long
	NothingSent                    // the connection was lost before a byte of the request was accepted
	DeadlineExceeded               // time ran out before anything was sent
	UpstreamTimeout                // sent, and no complete response in time
	UpstreamReset                  // sent, and the connection was lost before a complete response
	BadResponse                    // sent, and what came back is no valid response
	CallerGone                     // the caller left; nobody reads this answer
	Internal                       // a fault of the gateway
)

// Codes is how many there are, for arrays indexed by Code.
const Codes = int(Internal) + 1

// CodeInfo is a row of the table: everything that follows from a code.
type CodeInfo struct {
	Name    string  // stable: callers, dashboards and alerts match on it
	Status  int     // HTTP status of the answer
	Outcome Outcome // what the caller may conclude
	Title   string  // one sentence for people, nothing internal
}

var codes = [Codes]CodeInfo{
	Passed:             {"answered", 0, OutcomeDone, ""},
	BadRequest:         {"bad_request", 400, OutcomeNone, "The request is malformed."},
	VersionUnsupported: {"version_unsupported", 505, OutcomeNotSent, "This version of HTTP is not spoken here."},
	MethodUnknown:      {"method_unknown", 501, OutcomeNotSent, "This method is not known here."},
	NoRoute:            {"no_route", 404, OutcomeNone, "Nothing is served at this host and path."},
	MethodNotAllowed:   {"method_not_allowed", 405, OutcomeNone, "This path does not take this method."},
	RequestTimeout:     {"request_timeout", 408, OutcomeNotSent, "The request was not received in time."},
	BodyTooLarge:       {"body_too_large", 413, OutcomeNotSent, "The request body is larger than this path accepts."},
	HeadTooLarge:       {"head_too_large", 431, OutcomeNotSent, "The request's header section is too large."},
	Shed:               {"shed", 429, OutcomeNotSent, "The service is at its limit. Try again later."},
	GatewayBusy:        {"gateway_busy", 503, OutcomeNotSent, "The gateway is at its limit. Try again later."},
	Draining:           {"draining", 503, OutcomeNotSent, "The gateway is shutting down. Try again on a new connection."},
	NoEndpoint:         {"no_endpoint", 503, OutcomeNotSent, "The service has no known address at the moment."},
	NoConnection:       {"no_connection", 503, OutcomeNotSent, "No connection to the service is free."},
	ConnectFailed:      {"connect_failed", 502, OutcomeNotSent, "The service could not be reached."},
	NothingSent:        {"nothing_sent", 502, OutcomeNotSent, "The connection to the service was lost before the request was sent."},
	DeadlineExceeded:   {"deadline_exceeded", 504, OutcomeNotSent, "Time ran out before the request was sent."},
	UpstreamTimeout:    {"upstream_timeout", 504, OutcomeUnknown, "The service did not answer in time. The request may have taken effect."},
	UpstreamReset:      {"upstream_reset", 502, OutcomeUnknown, "The connection to the service was lost. The request may have taken effect."},
	BadResponse:        {"bad_response", 502, OutcomeUnknown, "The service's answer is not valid. The request may have taken effect."},
	CallerGone:         {"caller_gone", 499, OutcomeUnknown, "The caller left before the answer."},
	Internal:           {"internal", 500, OutcomeUnknown, "The gateway failed. The request may have taken effect."},
}

// Info gives the code's row. The zero row, a 500, stands for a code out of range.
func (c Code) Info() CodeInfo {
	if int(c) < Codes {
		return codes[c]
	}
	return codes[Internal]
}

// String gives the code's stable name.
func (c Code) String() string { return c.Info().Name }
