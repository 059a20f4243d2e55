// Package telemetry is what an operator sees of the gateway: the log with one
// event per exchange, and the metrics. It decides nothing about traffic, and
// nothing here may hold traffic up: a log line that cannot be queued is dropped
// and counted, and recording a metric is a few atomic additions on handles that
// were resolved when a route was compiled.
//
// Metrics are Prometheus text (exposition format 0.0.4). Labels are names from the
// configuration and words from the closed lists of package outcome, never bytes
// of a request.
package telemetry

import (
	"errors"
	"fmt"
	"strings"
)

// Config sets the log. See DefaultConfig for the defaults.
type Config struct {
	Level  string  `koanf:"level"`  // least level written: debug, info, warn, error; off for nothing
	Format string  `koanf:"format"` // json, or console for people
	Access bool    `koanf:"access"` // one event per exchange
	Sample float64 `koanf:"sample"` // share of exchanges logged, 0 to 1; errors made here are always logged
}

// DefaultConfig logs every exchange as JSON.
func DefaultConfig() Config {
	return Config{Level: "info", Format: FormatJSON, Access: true, Sample: 1}
}

// The values of Config.Format.
const (
	FormatJSON    = "json"
	FormatConsole = "console"
)

// Fault is one wrong value in a Config.
type Fault struct {
	Field string // the key, as in a file
	Text  string // the value, what is wrong with it and what is allowed
}

// Error gives the field and what is wrong with it.
func (f *Fault) Error() string { return f.Field + ": " + f.Text }

// Validate reports every wrong value: errors.Join of one *Fault each.
func (c Config) Validate() error {
	var faults []error
	if _, ok := parseLevel(c.Level); !ok {
		faults = append(faults, &Fault{"level", fmt.Sprintf("%q is unknown, must be one of %s", c.Level, levelList)})
	}
	if c.Format != FormatJSON && c.Format != FormatConsole {
		faults = append(faults, &Fault{"format", fmt.Sprintf("%q is unknown, must be json or console", c.Format)})
	}
	if !(c.Sample >= 0 && c.Sample <= 1) { // also refuses NaN
		faults = append(faults, &Fault{"sample", fmt.Sprintf("%v must be between 0 and 1", c.Sample)})
	}
	return errors.Join(faults...)
}

var levelList = strings.Join(levelNames[:], ", ")
