package telemetry

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
)

// Metrics is the gateway's metrics. Handles (Route, Upstream) live as long as it
// does, so that counts survive a reload. All methods may be called at any time from
// any goroutine.
type Metrics struct {
	set *metrics.Set

	mu         sync.Mutex
	routes     map[[2]string]*Route // by route and upstream
	upstreams  map[string]*Upstream
	histograms map[string]*histogram // by family and labels
	gauges     map[string]*gauge
	counters   map[string]*counter
}

// gauge is a function to ask when metrics are read; it can be exchanged.
type gauge struct {
	f atomic.Pointer[func() float64]
}

// counter mirrors a count that is kept elsewhere.
type counter struct {
	shown *metrics.Counter
	f     func() uint64
}

// NewMetrics makes an empty set.
func NewMetrics() *Metrics {
	// The library's one process-wide switch: TYPE lines in what it writes.
	metrics.ExposeMetadata(true)
	m := &Metrics{
		set:        metrics.NewSet(),
		routes:     map[[2]string]*Route{},
		upstreams:  map[string]*Upstream{},
		histograms: map[string]*histogram{},
		gauges:     map[string]*gauge{},
		counters:   map[string]*counter{},
	}
	return m
}

// Build shows which build this is: a gauge that is always 1 and tells it by its
// labels.
func (m *Metrics) Build(version string) {
	revision, goVersion := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	m.Gauge(Name("sluice_build_info", "version", version, "revision", revision, "go", goVersion), func() float64 { return 1 })
}

// Gauge shows f's value under name, which Name makes. The latest f for a name
// counts, and nil takes the gauge away: what f looks at ends with a reload. f is
// called whenever metrics are read and must not block.
func (m *Metrics) Gauge(name string, f func() float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gauges[name]
	if f == nil {
		m.set.UnregisterMetric(name)
		delete(m.gauges, name)
		return
	}
	if g == nil {
		g = &gauge{}
		g.f.Store(&f)
		m.gauges[name] = g
		m.set.NewGauge(name, func() float64 { return (*g.f.Load())() })
		return
	}
	g.f.Store(&f)
}

// Counter shows a count that is kept elsewhere, such as Log.Dropped, under name,
// which Name makes. The latest f for a name counts. f must not block.
func (m *Metrics) Counter(name string, f func() uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counters[name] = &counter{m.set.GetOrCreateCounter(name), f}
}

// UpstreamGauge is Gauge with the name made of a family and an upstream's name.
func (m *Metrics) UpstreamGauge(family, upstream string, f func() float64) {
	m.Gauge(Name(family, "upstream", upstream), f)
}

// WatchLog shows how many lines l dropped.
func (m *Metrics) WatchLog(l *Log) { m.Counter("sluice_log_dropped_total", l.Dropped) }

// Write writes all metrics, those of the Go runtime and the process among them, as
// Prometheus text, in one write. A slow w holds nothing up; that w fails is for w to
// tell.
func (m *Metrics) Write(w io.Writer) {
	m.mu.Lock()
	counters := slices.Collect(maps.Values(m.counters))
	histograms := slices.Collect(maps.Values(m.histograms))
	m.mu.Unlock()

	for _, c := range counters {
		c.shown.Set(c.f())
	}
	slices.SortFunc(histograms, func(a, b *histogram) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.labels, b.labels))
	})

	var all bytes.Buffer
	m.set.WritePrometheus(&all)
	family := ""
	for _, h := range histograms {
		if h.family != family {
			family = h.family
			metrics.WriteMetadataIfNeeded(&all, family, "histogram")
		}
		h.write(&all)
	}
	metrics.WriteProcessMetrics(&all)
	metrics.WriteFDMetrics(&all)
	_, _ = w.Write(describe(all.Bytes()))
}

// histogram returns the one with this family and labels, which Name makes.
func (m *Metrics) histogram(family string, labels ...string) *histogram {
	key := Name(family, labels...)
	h := m.histograms[key]
	if h == nil {
		h = &histogram{family: family, labels: key[len(family):]}
		m.histograms[key] = h
	}
	return h
}
