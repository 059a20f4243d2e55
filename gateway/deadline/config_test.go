package deadline

import (
	"errors"
	"fmt"
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
		config Config
		want   string // "" when valid
	}{
		{"shortest", Config{Timeout: time.Millisecond, AttemptTimeout: time.Millisecond}, ""},
		{"longest", Config{Timeout: time.Hour, AttemptTimeout: time.Hour}, ""},
		{"attempt longer than all", Config{Timeout: time.Second, AttemptTimeout: time.Minute}, ""},
		{"zero", Config{}, "timeout: 0s is too short, at least 1ms\nattempt_timeout: 0s is too short, at least 1ms"},
		{"negative", Config{Timeout: -time.Second, AttemptTimeout: time.Second}, "timeout: -1s is too short, at least 1ms"},
		{"too long", Config{Timeout: time.Second, AttemptTimeout: time.Hour + 1}, "attempt_timeout: 1h0m0.000000001s is too long, at most 1h0m0s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.config.Validate()
			got := ""
			if err != nil {
				got = fmt.Sprint(err)
			}
			if got != test.want {
				t.Errorf("%+v: got %q, want %q", test.config, got, test.want)
			}
			var fault *Fault
			if err != nil && !errors.As(err, &fault) {
				t.Errorf("%+v: %T holds no *Fault", test.config, err)
			}
		})
	}
}
