package deadline

import (
	"errors"
	"fmt"
	"time"
)

// Config sets how long the exchanges of a route may take. See DefaultConfig for
// the defaults.
type Config struct {
	Timeout        time.Duration `koanf:"timeout"`         // hard, over attempts, queueing and pauses
	AttemptTimeout time.Duration `koanf:"attempt_timeout"` // of an attempt after which another is permitted; may be more than Timeout, which then decides
}

// DefaultConfig is 2.5 s for an exchange and 1 s for an attempt.
func DefaultConfig() Config {
	return Config{Timeout: 2500 * time.Millisecond, AttemptTimeout: time.Second}
}

// Below the shortest timeout nothing could ever end in time; above the longest one
// a stuck exchange would hold its connection for longer than anybody waits.
const (
	shortest = time.Millisecond
	longest  = time.Hour
)

// Validate returns every fault of c, joined; each is a *Fault.
func (c Config) Validate() error {
	return errors.Join(
		within("timeout", c.Timeout),
		within("attempt_timeout", c.AttemptTimeout),
	)
}

// Fault is one thing wrong with a Config.
type Fault struct {
	Field string // the key, as in a file
	Text  string // the value, what is wrong with it and what is allowed
}

// Error gives the field and what is wrong with it.
func (f *Fault) Error() string { return f.Field + ": " + f.Text }

func within(field string, value time.Duration) error {
	switch {
	case value < shortest:
		return &Fault{field, fmt.Sprintf("%v is too short, at least %v", value, shortest)}
	case value > longest:
		return &Fault{field, fmt.Sprintf("%v is too long, at most %v", value, longest)}
	}
	return nil
}
