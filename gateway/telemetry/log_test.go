package telemetry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sluice/gateway/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs l until the returned function is called, which gives Run's result.
func run(l *Log) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- l.Run(ctx) }()
	return func() error {
		cancel()
		return <-result
	}
}

// written gives what a log with cfg wrote while do had it.
func written(t *testing.T, cfg Config, do func(*Log)) string {
	t.Helper()
	var out bytes.Buffer
	l := NewLog(cfg, &out)
	stop := run(l)
	do(l)
	if err := stop(); err != nil {
		t.Fatalf("Run: %v", err)
	}
	return out.String()
}

func events(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("line %q is no whole JSON line: %v", line, err)
		}
		all = append(all, event)
	}
	return all
}

func TestLog_WritesWhatIsQueuedBeforeRunAndUntilItEnds(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(DefaultConfig(), &out)
	l.Logger().Info().Msg("early")
	stop := run(l)
	l.Exchange(&Exchange{})
	l.Logger().Warn().Msg("late")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l.Logger().Error().Msg("too late")

	var messages []string
	for _, e := range events(t, out.String()) {
		messages = append(messages, e["message"].(string))
	}
	if got := strings.Join(messages, " "); got != "early exchange late" {
		t.Errorf("messages %q, want early exchange late", got)
	}
	if got := l.Dropped(); got != 1 {
		t.Errorf("%d lines dropped, want 1, the one after the end", got)
	}
}

func TestLog_LevelIsItsOwnAndChangesAtRunTime(t *testing.T) {
	cfg := DefaultConfig()
	var out, other bytes.Buffer
	l, quiet := NewLog(cfg, &out), NewLog(Config{Level: "error"}, &other)
	child := l.Logger().With().Str("part", "child").Logger()
	stop, stopQuiet := run(l), run(quiet)

	child.Debug().Msg("1 debug at info")
	if child.Debug().Enabled() {
		t.Error("an event below the level is built, want it refused before that")
	}
	if err := l.SetLevel("debug"); err != nil {
		t.Fatal(err)
	}
	child.Debug().Msg("2 debug at debug")
	quiet.Logger().Warn().Msg("warn at error")
	if err := l.SetLevel("off"); err != nil {
		t.Fatal(err)
	}
	child.Error().Msg("3 error at off")
	if err := l.SetLevel("loud"); err == nil || !strings.Contains(err.Error(), "debug, info, warn, error, off") {
		t.Errorf("SetLevel(loud): %v, want an error with the levels there are", err)
	}
	if got := l.Level(); got != "off" {
		t.Errorf("Level %q after a wrong one, want off", got)
	}
	if err := errors.Join(stop(), stopQuiet()); err != nil {
		t.Fatal(err)
	}
	if all := events(t, out.String()); len(all) != 1 || all[0]["message"] != "2 debug at debug" || all[0]["part"] != "child" {
		t.Errorf("written: %v, want number 2 only", all)
	}
	if other.Len() != 0 {
		t.Errorf("the other log wrote %q, want nothing", other.String())
	}
}

func TestLog_ReloadKeepsALevelSetAtRunTimeUnlessItsOwnChanged(t *testing.T) {
	cfg := DefaultConfig()
	l := NewLog(cfg, io.Discard)
	if err := l.SetLevel("debug"); err != nil {
		t.Fatal(err)
	}
	cfg.Access = false
	l.Configure(cfg)
	if l.Level() != "debug" || l.Wants(200, outcome.Passed) {
		t.Errorf("level %q, exchanges wanted %v after a reload with access off; want debug, false", l.Level(), l.Wants(200, outcome.Passed))
	}
	cfg.Level = "warn"
	l.Configure(cfg)
	if l.Level() != "warn" {
		t.Errorf("level %q after a reload that changed it, want warn", l.Level())
	}
}

func TestLog_EventsCarryTheTimeInUTCWithMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble begins at midnight UTC, 1 January 2000
		text := written(t, DefaultConfig(), func(l *Log) {
			time.Sleep(1500 * time.Microsecond)
			l.Logger().Info().Msg("now")
		})
		if got := events(t, text)[0]["time"]; got != "2000-01-01T00:00:00.001Z" {
			t.Errorf("time %v, want 2000-01-01T00:00:00.001Z", got)
		}
	})
}

func TestLog_ConsoleIsOneLineForPeople(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Format = FormatConsole
	text := written(t, cfg, func(l *Log) {
		l.Exchange(sample())
		l.Logger().Warn().Err(errors.New("a\nb")).Msg("two\nlines \u009b31m")
	})
	lines := bufio.NewScanner(strings.NewReader(text))
	want := []string{
		"method=POST host=api.example.com path=/v1/charges status=200 code=answered outcome=done total_ms=12.346",
		`"two\nlines \u009b31m" error="a\nb"`,
	}
	for _, w := range want {
		if !lines.Scan() || !strings.Contains(lines.Text(), w) {
			t.Errorf("line %q, want one with %q", lines.Text(), w)
		}
	}
	if lines.Scan() {
		t.Errorf("a line too many: %q", lines.Text())
	}
}

func TestConfig_ValidateNamesEveryFault(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	nan := 0.0
	for _, c := range []struct {
		cfg    Config
		fields string
	}{
		{Config{Level: "loud", Format: "xml", Sample: 1.5}, "level format sample"},
		{Config{Level: "off", Format: "console", Sample: 0}, ""},
		{Config{Level: "INFO", Format: "json", Sample: -0.1}, "level sample"},
		{Config{Level: "info", Format: "json", Sample: nan / nan}, "sample"},
	} {
		var got []string
		if err := c.cfg.Validate(); err != nil {
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				var f *Fault
				if !errors.As(e, &f) || !strings.HasPrefix(f.Error(), f.Field+": ") {
					t.Fatalf("%v is no *Fault that names its field", e)
				}
				got = append(got, f.Field)
			}
		}
		if strings.Join(got, " ") != c.fields {
			t.Errorf("%+v: faults in %v, want %q", c.cfg, got, c.fields)
		}
	}
}
