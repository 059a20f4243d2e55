package limits

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestConfig_DefaultIsValid(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
}

func TestConfig_ReportsEveryFault(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"off", func(c *Config) { c.Mode = ModeOff }, nil},
		{"no queue", func(c *Config) { c.Queue.Length = 0 }, nil},
		{"503", func(c *Config) { c.ShedStatus = 503 }, nil},
		{"largest", func(c *Config) { c.Max, c.Queue = 1_000_000, Queue{1_000_000, time.Minute} }, nil},
		{"zero value", func(c *Config) { *c = Config{} }, []string{
			"max: 0 is too small, at least 1",
			"queue.time: 0s is too small, at least 1ms",
			"shed_status: 0 is not possible, 429 or 503",
		}},
		{"too large", func(c *Config) { c.Max, c.Queue = 1_000_001, Queue{1_000_001, time.Minute + 1} }, []string{
			"max: 1000001 is too large, at most 1000000",
			"queue.length: 1000001 is too large, at most 1000000",
			"queue.time: 1m0.000000001s is too large, at most 1m0s",
		}},
		{"negative", func(c *Config) { c.Queue.Length = -1 }, []string{"queue.length: -1 is too small, at least 0"}},
		{"mode", func(c *Config) { c.Mode = 7 }, []string{"mode: mode 7 is unknown, enforce or off"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := DefaultConfig()
			test.change(&config)
			err := config.Validate()
			got, want := "", strings.Join(test.want, "\n")
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%+v:\ngot  %q\nwant %q", config, got, want)
			}
			var fault *Fault
			if err != nil && !errors.As(err, &fault) {
				t.Errorf("%+v: %T holds no *Fault", config, err)
			}
		})
	}
}

func TestMode_ReadsWhatItWrites(t *testing.T) {
	for mode := range Mode(len(modeNames)) {
		text, err := mode.MarshalText()
		if err != nil {
			t.Fatalf("%v: %v", mode, err)
		}
		got := Mode(99)
		if err := got.UnmarshalText(text); err != nil || got != mode {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, mode)
		}
	}
	for _, text := range []string{"", "Off", "observe", strings.Repeat("x", 1000)} {
		mode := ModeEnforce
		if err := mode.UnmarshalText([]byte(text)); err == nil || len(err.Error()) > 200 {
			t.Errorf("%.20q: got %v, want a short fault", text, err)
		}
	}
}
