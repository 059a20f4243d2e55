// Package outcome is the vocabulary that the core, the stages and the engines
// share: how an attempt ended (Class), why an exchange ended (Code) and what the
// caller may conclude from it (Outcome). It holds closed lists and their tables
// and no behaviour; it imports nothing. A new way to end is a new row here, never
// a new string elsewhere.
package outcome

// Outcome is what the caller may conclude about the effect of a request. It goes
// out as Gateway-Outcome on every answer that the gateway makes itself, except on
// those that only reject what was asked (400, 404, 405).
type Outcome uint8

// The zero value claims nothing.
const (
	OutcomeNone     Outcome = iota // nothing is claimed: the request was not understood or matched no route
	OutcomeDone                    // the backend's complete answer is what the caller got
	OutcomeReplayed                // a stored answer to the same idempotency key
	OutcomeNotSent                 // no byte of the request reached a backend: safe to send again
	OutcomeUnknown                 // the request may have taken effect
	OutcomePending                 // the same key is being worked on
)

// Outcomes is how many there are, for arrays indexed by Outcome.
const Outcomes = int(OutcomePending) + 1

var outcomeNames = [Outcomes]string{"", "done", "replayed", "not-sent", "unknown", "pending"}

// String gives the word as it stands in headers, logs and metrics.
func (o Outcome) String() string {
	if int(o) < Outcomes {
		return outcomeNames[o]
	}
	return "invalid"
}
