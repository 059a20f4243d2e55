package telemetry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
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

func TestLog_StuckOutputBlocksNobodyAndTearsNoLine(t *testing.T) {
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l := NewLog(DefaultConfig(), pipe)
	stop := run(l)
	e := sample()
	sent := 0
	for l.Dropped() < 1000 {
		if sent++; sent > 200_000 {
			t.Fatal("200,000 exchanges were queued while nobody read, want a bound")
		}
		l.Exchange(e)
	}

	read := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(reader)
		read <- all
	}()
	if err := stop(); err != nil {
		t.Errorf("Run with an output that works again: %v", err)
	}
	pipe.Close()
	lines, told := 0, 0.0
	for _, event := range events(t, string(<-read)) {
		if event["message"] == "exchange" {
			lines++
		} else {
			told += event["dropped"].(float64)
		}
	}
	if lines+int(l.Dropped()) != sent {
		t.Errorf("%d lines written and %d dropped of %d", lines, l.Dropped(), sent)
	}
	if told != float64(l.Dropped()) {
		t.Errorf("the log tells of %v dropped lines, want %d", told, l.Dropped())
	}
}

// stuck is an output that blocks until it is freed.
type stuck struct {
	free  chan struct{}
	begun int
}

func (s *stuck) Write(p []byte) (int, error) {
	s.begun++
	<-s.free
	return len(p), nil
}

func TestLog_StuckOutputHoldsTheExitForASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{free: make(chan struct{})}
		l := NewLog(DefaultConfig(), out)
		stop := run(l)
		for range 100 {
			l.Exchange(sample())
		}
		synctest.Wait()
		time.Sleep(gatherTime)
		begin := time.Now()
		if err := stop(); !errors.Is(err, ErrOutputStuck) {
			t.Errorf("Run: %v, want %v", err, ErrOutputStuck)
		}
		if got := time.Since(begin); got != exitTime {
			t.Errorf("Run returned after %v, want %v", got, exitTime)
		}
		close(out.free)
		synctest.Wait()
		if out.begun != 1 {
			t.Errorf("%d writes began, want none after the log was given up", out.begun)
		}
		if l.Dropped() == 0 {
			t.Error("the lines given up are not counted")
		}
	})
}

// writes records what each write got.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestLog_ExchangesShareWritesAndTheRestDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out writes
		l := NewLog(DefaultConfig(), &out)
		stop := run(l)
		synctest.Wait()
		for range 100 {
			l.Exchange(sample())
		}
		synctest.Wait()
		if len(out) != 0 {
			t.Errorf("%d writes at once, want none before %v", len(out), gatherTime)
		}
		time.Sleep(gatherTime)
		synctest.Wait()
		total := 0
		for _, w := range out {
			total += strings.Count(w, "\n")
			if len(w) > chunkBytes || !strings.HasSuffix(w, "\n") {
				t.Errorf("a write of %d bytes that ends in %q, want whole lines up to %d", len(w), w[len(w)-1:], chunkBytes)
			}
		}
		if total != 100 || len(out) > 20 {
			t.Errorf("%d lines in %d writes, want 100 in at most 20", total, len(out))
		}

		out = nil
		l.Logger().Warn().Msg("at once")
		synctest.Wait()
		if len(out) != 1 {
			t.Errorf("%d writes for an event that is no exchange, want 1 at once", len(out))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// failing fails all writes but those after the first fails, of which it takes half.
type failing struct {
	fails int
	text  bytes.Buffer
}

func (f *failing) Write(p []byte) (int, error) {
	if f.fails > 0 {
		f.fails--
		n, _ := f.text.Write(p[:len(p)/2])
		return n, errors.New("disk full")
	}
	return f.text.Write(p)
}

func TestLog_FailingOutputIsCountedAndTheNextLineIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &failing{fails: 1}
		l := NewLog(DefaultConfig(), out)
		stop := run(l)
		l.Logger().Info().Msg("lost")
		synctest.Wait()
		l.Logger().Info().Msg("kept")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if l.Dropped() != 1 {
			t.Errorf("%d dropped, want 1", l.Dropped())
		}
		half, rest, _ := strings.Cut(out.text.String(), "\n")
		if json.Valid([]byte(half)) {
			t.Errorf("the first line %q is whole, want half of one", half)
		}
		all := events(t, rest)
		if len(all) != 2 || all[0]["dropped"] != 1.0 || all[1]["message"] != "kept" {
			t.Errorf("after the half line: %v, want a report of 1 dropped line, then kept", all)
		}
	})
}

func TestLog_LineOfAnybodysLengthIsDropped(t *testing.T) {
	text := written(t, DefaultConfig(), func(l *Log) {
		l.Logger().Info().Str("value", strings.Repeat("x", lineBytes)).Msg("long")
		l.Logger().Info().Str("value", strings.Repeat("x", lineBytes-1000)).Msg("fits")
	})
	all := events(t, text)
	if len(all) != 2 || all[0]["message"] != "fits" || all[1]["dropped"] != 1.0 {
		t.Errorf("%d lines, want the one that fits and a report of the other", len(all))
	}
}

func TestLog_LevelIsItsOwnAndChangesAtRunTime(t *testing.T) {
	cfg := DefaultConfig()
	var out, other bytes.Buffer
	l, quiet := NewLog(cfg, &out), NewLog(Config{Level: "error"}, &other)
	child := l.Logger().With().Str("part", "child").Logger()
	stop, stopQuiet := run(l), run(quiet)

	child.Debug().Msg("1 debug at info")
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
