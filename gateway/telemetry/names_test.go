package telemetry

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/VictoriaMetrics/metrics"

	"sluice/gateway/outcome"
)

var (
	helpLine   = regexp.MustCompile(`^# HELP [a-zA-Z_:][a-zA-Z0-9_:]* .+$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"(?:, ?|\}))+)? (\S+)$`)
)

// Everything written follows the text format: each family is told once, typed, in
// one piece.
func TestWrite_IsPrometheusText(t *testing.T) {
	m := NewMetrics()
	m.WatchLog(NewLog(DefaultConfig(), io.Discard))
	for _, name := range []string{"a", "b", `hostile"}` + "\n\\"} {
		m.Route(name, name).Done(200, outcome.Passed, time.Second, 1, 1)
		m.Upstream(name).Head(time.Second)
		m.UpstreamGauge("sluice_limit", name, func() float64 { return 1 })
	}
	m.Build("v1")

	var out bytes.Buffer
	m.Write(&out)
	types, closed, family := map[string]string{}, map[string]bool{}, ""
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# HELP ") && helpLine.MatchString(line) {
			continue
		}
		if typed := typeLine.FindStringSubmatch(line); typed != nil {
			if types[typed[1]] != "" {
				t.Errorf("%s is typed twice", typed[1])
			}
			closed[family], family = true, typed[1]
			types[family] = typed[2]
			continue
		}
		s := sampleLine.FindStringSubmatch(line)
		if s == nil {
			t.Errorf("no line of the format: %q", line)
			continue
		}
		of := s[1]
		if types[family] == "histogram" || types[family] == "summary" {
			of = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(of, "")
		}
		if of != family {
			t.Errorf("%q stands below %s", line, family)
		}
		if _, err := strconv.ParseFloat(s[2], 64); err != nil {
			t.Errorf("value of %q: %v", line, err)
		}
	}
	for family, want := range map[string]string{
		"sluice_requests_total": "counter", "sluice_request_seconds": "histogram", "sluice_limit": "gauge",
		"sluice_log_dropped_total": "counter", "sluice_build_info": "gauge",
		"go_goroutines": "gauge", "process_cpu_seconds_total": "counter", "process_open_fds": "gauge",
	} {
		if types[family] != want {
			t.Errorf("%s has the type %q, want %s", family, types[family], want)
		}
	}
	for family := range types {
		if strings.HasPrefix(family, "sluice_") && !strings.Contains(out.String(), "# HELP "+family+" ") {
			t.Errorf("%s has no help text", family)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"", "plain", `"\`, "\n", "\xff\xfe", strings.Repeat("é", 100), `\\"`, "{}", "a=\"b\","} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		name := Name("family", "a", a, "b", b)
		if err := metrics.ValidateMetric(name); err != nil {
			t.Errorf("%q, %q became %q, which the library refuses: %v", a, b, name, err)
		}
		if !sampleLine.MatchString(name+" 1") || !utf8.ValidString(name) {
			t.Errorf("%q, %q became %q, which is no name in the text format", a, b, name)
		}
	})
}
