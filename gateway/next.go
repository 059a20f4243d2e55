package gateway

// Next is the one thing an exchange waits for. Each function of the core ends by
// naming it; the engine that drives the exchange does it and calls back with what
// happened.
//
//	the core named   the engine                                           and calls
//	Receive          reads the request's body, bounded by BodyMost        Received, or Unreadable
//	Lookup           asks the store for the key                           Looked
//	Queue            waits for a permit, until WakeAt                     Admitted when granted, else Shed
//	Wait             waits for another exchange's pending key             Looked
//	Begin            makes the pending record durable                     Begun
//	Send             makes one attempt on Endpoint, up to the response's  Headed, or Attempted
//	                 head, until SendBy                                   when it failed
//	Collect          reads the response's body, bounded                   Attempted
//	Relay            passes the body to the caller as it comes            Relayed
//	Pause            waits until WakeAt                                   Woken
//	Settle           makes the result durable                             Settled
//	Answer           writes Response to the caller, or hands it over to   Finish
//	                 whoever does
//	Done             nothing: the exchange has ended, let go of it
//
// An engine makes one call at a time for an exchange and hands in the time. At any
// instant between two calls it may call Interrupted, which names what to wait for
// from then on; it never does so after Answer, Relay or Done were named. Failed is
// for a fault of the gateway itself, whenever it shows.
//
// This version names no Receive, Lookup, Wait, Begin, Pause or Settle: its engines
// read bodies before Arrive, it keeps no idempotency records and repeats no attempt.
// The functions that follow them are steps of every exchange already.
type Next uint8

// What an exchange can wait for.
const (
	Done Next = iota
	Receive
	Lookup
	Queue
	Wait
	Begin
	Send
	Collect
	Relay
	Pause
	Settle
	Answer
)

var nextNames = [...]string{"done", "receive", "lookup", "queue", "wait", "begin", "send", "collect", "relay", "pause", "settle", "answer"}

// String gives the word, for logs and tests.
func (n Next) String() string {
	if int(n) < len(nextNames) {
		return nextNames[n]
	}
	return "invalid"
}

// Interrupt is something that may happen to an exchange at any time. Where the
// exchange waits for its turn (Queue) it ends the waiting; elsewhere it is a flag
// that the next function reads.
type Interrupt uint8

// The interrupts, as flags.
const (
	CallerFinished Interrupt = 1 << iota // the caller sent FIN: nothing new is begun for it
	CallerReset                          // the caller sent RST: nobody will read the answer
	Drain                                // the gateway is stopping
)

// Owner is the engine that drives an exchange.
type Owner interface {
	// Granted says that x, which waits in a queue, now holds its permit. It is
	// called from another exchange's call of the core, so it must not block and must
	// not call the core: it makes the engine call Admitted.
	Granted(x *Exchange)
}
