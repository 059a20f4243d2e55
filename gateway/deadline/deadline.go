// Package deadline decides how long an exchange and each of its attempts may take.
// The clock starts when the request arrives; every later question is what is left.
package deadline

import "time"

// Deadline is the instant at which an exchange must have ended.
type Deadline struct{ at time.Time }

// Start sets the deadline of an exchange that arrived then.
func (c Config) Start(arrived time.Time) Deadline {
	return Deadline{at: arrived.Add(c.Timeout)}
}

// At is the instant itself.
func (d Deadline) At() time.Time { return d.at }

// Passed reports whether no time is left.
func (d Deadline) Passed(now time.Time) bool { return !now.Before(d.at) }

// Attempt is the instant at which an attempt begun now must have ended. One after
// which another is permitted gets at most the attempt timeout; the last one gets
// all that is left, since stopping it early would only turn a late answer into an
// unknown outcome.
func (c Config) Attempt(d Deadline, now time.Time, another bool) time.Time {
	if another {
		if at := now.Add(c.AttemptTimeout); at.Before(d.at) {
			return at
		}
	}
	return d.at
}
