package deadline

import (
	"testing"
	"time"
)

func TestAttempt_LastOneGetsAllThatIsLeft(t *testing.T) {
	c := Config{Timeout: 2500 * time.Millisecond, AttemptTimeout: time.Second}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := c.Start(start)
	for _, row := range []struct {
		after   time.Duration
		another bool
		want    time.Duration // after the start
	}{
		{0, false, 2500 * time.Millisecond},
		{0, true, time.Second},
		{time.Second, true, 2 * time.Second},
		{2 * time.Second, true, 2500 * time.Millisecond},
		{2 * time.Second, false, 2500 * time.Millisecond},
	} {
		if got := c.Attempt(d, start.Add(row.after), row.another).Sub(start); got != row.want {
			t.Errorf("an attempt begun after %v, another permitted: %v, ends at %v, want %v", row.after, row.another, got, row.want)
		}
	}
}

func TestPassed_AtTheInstantItself(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := Config{Timeout: time.Second}.Start(start)
	if d.Passed(start.Add(time.Second - 1)) {
		t.Error("passed a nanosecond early")
	}
	if !d.Passed(d.At()) {
		t.Error("nothing is left at the deadline itself")
	}
}
