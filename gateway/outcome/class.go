package outcome

// Class is how one attempt ended, established from what happened on the socket.
// The zero value means "may have been sent", so an assignment that was forgotten
// errs on the cautious side.
type Class uint8

// The classes, in the order of caution.
const (
	Reset      Class = iota // bytes were sent, then no complete response came
	TimedOut                // bytes were sent, no complete response within the attempt's time
	Failed                  // a complete 5xx other than 503
	Overloaded              // a complete 429 or 503
	Refused                 // the backend says that it did nothing, by a status and marker agreed on
	NotSent                 // no byte of the request was accepted by this host's kernel
	Abandoned               // the caller left, or the deadline passed, before the attempt could end
	Answered                // any other complete response
)

// Classes is how many there are, for arrays indexed by Class.
const Classes = int(Answered) + 1

var classNames = [Classes]string{
	Reset: "reset", TimedOut: "timed-out", Failed: "failed", Overloaded: "overloaded",
	Refused: "refused", NotSent: "not-sent", Abandoned: "abandoned", Answered: "answered",
}

// String gives the word as it stands in configuration, logs and metrics.
func (c Class) String() string {
	if int(c) < Classes {
		return classNames[c]
	}
	return "invalid"
}

// Complete reports whether a response of the backend was read whole, so that it
// can be passed on as it is.
func (c Class) Complete() bool {
	return c == Answered || c == Failed || c == Overloaded || c == Refused
}
