package limits

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Config sets how many exchanges may be with an upstream at once and how many wait.
// See DefaultConfig for the defaults.
type Config struct {
	Mode       Mode  `koanf:"mode"`
	Max        int   `koanf:"max"` // permits
	Queue      Queue `koanf:"queue"`
	ShedStatus int   `koanf:"shed_status"` // of the answer to what is shed: 429 or 503
}

// Queue bounds the queue of those who found no permit.
type Queue struct {
	Length int           `koanf:"length"` // exchanges; 0: nothing waits
	Time   time.Duration `koanf:"time"`   // the longest that one of them waits
}

// DefaultConfig is 1000 permits and a queue of 100 exchanges for at most 100 ms;
// what is shed is answered with 429.
func DefaultConfig() Config {
	return Config{
		Mode:       ModeEnforce,
		Max:        1000,
		Queue:      Queue{Length: 100, Time: 100 * time.Millisecond},
		ShedStatus: 429,
	}
}

// The bounds. A million exchanges is more than one host holds, and leaves room for
// sums in any integer.
const (
	mostPermits = 1_000_000
	mostWaiting = 1_000_000
	shortest    = time.Millisecond
	longest     = time.Minute
)

// Validate returns every fault of c, joined; each is a *Fault.
func (c Config) Validate() error {
	faults := []error{
		within("max", c.Max, 1, mostPermits),
		within("queue.length", c.Queue.Length, 0, mostWaiting),
		within("queue.time", c.Queue.Time, shortest, longest),
	}
	if int(c.Mode) >= len(modeNames) {
		faults = append(faults, &Fault{"mode", fmt.Sprintf("%v is unknown, enforce or off", c.Mode)})
	}
	if c.ShedStatus != 429 && c.ShedStatus != 503 {
		faults = append(faults, &Fault{"shed_status", fmt.Sprintf("%d is not possible, 429 or 503", c.ShedStatus)})
	}
	return errors.Join(faults...)
}

// Mode says whether a limiter refuses.
type Mode uint8

// The modes. The zero value protects.
const (
	ModeEnforce Mode = iota
	ModeOff          // everyone enters
)

var modeNames = [...]string{"enforce", "off"}

// String gives the word as it stands in a file.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "mode " + strconv.Itoa(int(m))
}

// MarshalText gives the word as it stands in a file.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads enforce or off.
func (m *Mode) UnmarshalText(text []byte) error {
	for i, name := range modeNames {
		if string(text) == name {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("%.40q is unknown, enforce or off", text)
}

// Fault is one thing wrong with a Config.
type Fault struct {
	Field string // path of the key, as in a file: queue.length
	Text  string // the value, what is wrong with it and what is allowed
}

// Error gives the field and what is wrong with it.
func (f *Fault) Error() string { return f.Field + ": " + f.Text }

func within[T int | time.Duration](field string, value, low, high T) error {
	switch {
	case value < low:
		return &Fault{field, fmt.Sprintf("%v is too small, at least %v", value, low)}
	case value > high:
		return &Fault{field, fmt.Sprintf("%v is too large, at most %v", value, high)}
	}
	return nil
}
