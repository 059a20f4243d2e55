package telemetry

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice/gateway/outcome"
)

func sample() *Exchange {
	return &Exchange{
		At:        time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.FixedZone("", 3600)),
		RequestID: []byte("0123456789abcdef0123456789abcdef"),
		Caller:    []byte("203.0.113.7"),
		Method:    []byte("POST"),
		Host:      []byte("api.example.com"),
		Path:      []byte("/v1/charges"),
		Route:     "charges", Upstream: "payments", Endpoint: "10.0.0.1:9001",
		Status: 200, Code: "answered", Outcome: "done",
		Attempts: 1, Reused: true,
		BytesIn: 300, BytesOut: 1200,
		Connect: 150 * time.Microsecond,
		Head:    11 * time.Millisecond,
		Total:   12346 * time.Microsecond,
	}
}

func TestExchange_EventIsExactlyThis(t *testing.T) {
	got := written(t, DefaultConfig(), func(l *Log) { l.Exchange(sample()) })
	want := `{"level":"info","time":"2026-03-14T14:09:26.535Z","request_id":"0123456789abcdef0123456789abcdef",` +
		`"caller":"203.0.113.7","method":"POST","host":"api.example.com","path":"/v1/charges",` +
		`"route":"charges","upstream":"payments","endpoint":"10.0.0.1:9001","status":200,"code":"answered","outcome":"done",` +
		`"attempts":1,"reused":true,"bytes_in":300,"bytes_out":1200,` +
		`"connect_ms":0.150,"head_ms":11.000,"total_ms":12.346,"message":"exchange"}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestExchange_ErrorMadeHereIsAWarningWithItsReason(t *testing.T) {
	text := written(t, DefaultConfig(), func(l *Log) {
		l.Exchange(&Exchange{Status: 504, Code: "upstream_timeout", Outcome: "unknown", Detail: "timeout", Attempts: 2})
		l.Exchange(&Exchange{Status: 504, Code: "answered", Outcome: "done", Attempts: 1})
	})
	all := events(t, text)
	if e := all[0]; e["level"] != "warn" || e["detail"] != "timeout" || e["code"] != "upstream_timeout" {
		t.Errorf("an error made here: %v, want level warn and its code and detail", e)
	}
	if e := all[1]; e["level"] != "info" {
		t.Errorf("a backend's own error: level %v, want info", e["level"])
	}
}

func TestExchange_QueryIsNeverLogged(t *testing.T) {
	e := sample()
	e.Path = []byte("/v1/charges?card=4242424242424242")
	if text := written(t, DefaultConfig(), func(l *Log) { l.Exchange(e) }); strings.Contains(text, "4242") {
		t.Errorf("the query is in the log: %s", text)
	}
}

func TestExchange_LongValuesAreCut(t *testing.T) {
	e := sample()
	long := []byte(strings.Repeat("\x01", 1<<16)) // the worst case: six bytes for each
	e.RequestID, e.Caller, e.Method, e.Host, e.Path = long, long, long, long, long
	text := written(t, DefaultConfig(), func(l *Log) { l.Exchange(e) })
	all := events(t, text)
	if len(all) != 1 {
		t.Fatalf("%d events, want 1", len(all))
	}
	for field, want := range map[string]int{
		"request_id": idBytes, "caller": callerBytes, "method": methodBytes, "host": hostBytes, "path": pathBytes,
	} {
		if got := len(all[0][field].(string)); got != want {
			t.Errorf("%s has %d bytes, want it cut to %d", field, got, want)
		}
	}
}

func TestExchange_HostileBytesForgeNoLine(t *testing.T) {
	everything := make([]byte, 0, 256)
	for b := range 256 {
		everything = append(everything, byte(b))
	}
	values := [][]byte{
		everything,
		[]byte("/a\"}\n{\"level\":\"info\",\"status\":200}"),
		[]byte("\r\nforged\x1b[2J"),
		[]byte("\xff\xfe\n\xc3"),
		[]byte("next\u0085line\u2028separator\u2029\u009b31m\u202ereversed"),
	}
	for _, format := range []string{FormatJSON, FormatConsole} {
		for _, v := range values {
			cfg := DefaultConfig()
			cfg.Format = format
			text := written(t, cfg, func(l *Log) {
				l.Exchange(&Exchange{RequestID: v, Caller: v, Method: v, Host: v, Path: v, Detail: "d"})
			})
			line, rest, _ := strings.Cut(text, "\n")
			if rest != "" || !utf8.ValidString(line) {
				t.Errorf("%s, %q: %q after the first line, want one line of valid UTF-8", format, v, rest)
			}
			for _, r := range line {
				if !unicode.IsPrint(r) {
					t.Errorf("%s, %q: %U is in the log", format, v, r)
				}
			}
			if format == FormatJSON {
				if e := events(t, text)[0]; e["level"] != "info" || e["status"] != 0.0 {
					t.Errorf("%q changed other fields: %v", v, e)
				}
			}
		}
	}
}

func TestWants_SamplesAllButErrorsMadeHere(t *testing.T) {
	const n = 20_000
	for _, share := range []float64{0, 0.1, 0.5, 1} {
		cfg := DefaultConfig()
		cfg.Sample = share
		l := NewLog(cfg, io.Discard)
		odd, all, errors := 0, 0, 0
		for i := range n {
			if l.Wants(200, outcome.Passed) {
				all++
				odd += i % 2
			}
			if l.Wants(503, outcome.Draining) {
				errors++
			}
		}
		// The hash is the same in each run: these bounds are no chance.
		if got := float64(all) / n; got < share-0.02 || got > share+0.02 {
			t.Errorf("sample %v: share %v is logged", share, got)
		}
		if want := all / 2; odd < want*9/10 || odd > want*11/10 {
			t.Errorf("sample %v: %d of %d are every second exchange, want half", share, odd, all)
		}
		if errors != n {
			t.Errorf("sample %v: %d of %d errors made here are logged, want all", share, errors, n)
		}
	}
}

func TestWants_LevelHoldsForExchanges(t *testing.T) {
	l := NewLog(DefaultConfig(), io.Discard)
	for _, c := range []struct {
		level  string
		status int
		code   outcome.Code
		want   bool
	}{
		{"info", 200, outcome.Passed, true},
		{"warn", 200, outcome.Passed, false},
		{"warn", 500, outcome.Passed, false},
		{"warn", 502, outcome.ConnectFailed, true},
		{"warn", 404, outcome.NoRoute, false},
		{"error", 502, outcome.ConnectFailed, false},
		{"off", 502, outcome.ConnectFailed, false},
	} {
		if err := l.SetLevel(c.level); err != nil {
			t.Fatal(err)
		}
		if got := l.Wants(c.status, c.code); got != c.want {
			t.Errorf("level %s, %d %v: wanted %v, want %v", c.level, c.status, c.code, got, c.want)
		}
	}
}

func TestExchange_AllocatesNothing(t *testing.T) {
	l := NewLog(DefaultConfig(), io.Discard)
	stop := run(l)
	e := sample()
	allocs := testing.AllocsPerRun(1000, func() {
		if l.Wants(e.Status, outcome.Passed) {
			l.Exchange(e)
		}
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if allocs != 0 && !raceEnabled {
		t.Errorf("%v allocations for an exchange, want 0", allocs)
	}
}

func BenchmarkExchange(b *testing.B) {
	l := NewLog(DefaultConfig(), io.Discard)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx)
	}()
	e := sample()
	b.ReportAllocs()
	for b.Loop() {
		l.Exchange(e)
	}
	b.StopTimer()
	b.ReportMetric(float64(l.Dropped()), "dropped")
	cancel()
	<-done
}

func BenchmarkExchangeNotWanted(b *testing.B) {
	cfg := DefaultConfig()
	cfg.Sample = 0
	l := NewLog(cfg, io.Discard)
	b.ReportAllocs()
	for b.Loop() {
		if l.Wants(200, outcome.Passed) {
			b.Fatal("wanted")
		}
	}
}
