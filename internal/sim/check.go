package sim

import (
	"bufio"
	"bytes"
	"slices"
	"strconv"
	"strings"

	"sluice/gateway"
	"sluice/gateway/upstream"
)

// held sums up what the exchanges under way hold.
type held struct{ permits, waiting int64 }

// check compares the core's books with the exchanges' own, after every event.
func (w *world) check() {
	byUpstream := map[*gateway.Upstream]*held{}
	trying := map[*upstream.Endpoint]int64{}
	var counted int64
	for a := range w.actors {
		h := a.Holding()
		if h.Counted {
			counted++
		}
		if a.Upstream == nil {
			continue
		}
		sum := byUpstream[a.Upstream]
		if sum == nil {
			sum = &held{}
			byUpstream[a.Upstream] = sum
		}
		switch {
		case h.Permit, a.granted:
			sum.permits++
		case h.Waiting:
			sum.waiting++
		}
		if h.Trying {
			trying[a.Endpoint]++
		}
		a.consistent(h)
	}
	for u, sum := range byUpstream {
		if sum.waiting > 0 && w.gone(u) {
			w.failf("%d wait for %s, which is gone", sum.waiting, u.Name)
		}
	}
	state := w.core.State()
	if state.InFlight != counted {
		w.failf("the gateway counts %d exchanges, there are %d", state.InFlight, counted)
	}
	for i, u := range w.core.Upstreams() {
		w.checkUpstream(u, state.Upstreams[i], byUpstream[u])
		for _, e := range u.Endpoints() {
			if e.InFlight() != trying[e] {
				w.failf("endpoint %s counts %d attempts in flight, there are %d", e.Address, e.InFlight(), trying[e])
			}
		}
	}
}

// gone reports whether u has left the configuration.
func (w *world) gone(u *gateway.Upstream) bool { return !slices.Contains(w.core.Upstreams(), u) }

// consistent checks what one exchange holds against what it waits for.
func (a *actor) consistent(h gateway.Holding) {
	w := a.world
	switch {
	case h.Permit && h.Waiting:
		w.failf("%v holds a permit and a place in the queue", a)
	case h.Trying && !h.Permit && a.waits != gateway.Relay:
		w.failf("%v has an attempt in flight without a permit", a)
	case h.Permit && a.waits == gateway.Relay && a.Stall > 0:
		w.failf("%v holds a permit while it streams", a)
	case !h.Permit && a.waits == gateway.Relay && a.Stall == 0:
		w.failf("%v has no permit while its upstream still sends", a)
	case h.Permit && a.waits == gateway.Answer:
		w.failf("%v holds a permit while its answer is written", a)
	}
}

func (w *world) checkUpstream(u *gateway.Upstream, s gateway.UpstreamState, sum *held) {
	if sum == nil {
		sum = &held{}
	}
	if s.InFlight != sum.permits || s.Queued != sum.waiting {
		w.failf("%s counts %d permits and %d waiting, the exchanges have %d and %d",
			s.Name, s.InFlight, s.Queued, sum.permits, sum.waiting)
	}
	if s.Queued > 0 && s.InFlight < s.Limit {
		w.failf("%s lets %d wait with %d of %d permits in use", u.Name, s.Queued, s.InFlight, s.Limit)
	}
}

// count compares the metrics with what happened, at the end.
func (w *world) count() {
	var text bytes.Buffer
	w.metrics.Write(&text)
	sums := map[string]int{}
	for lines := bufio.NewScanner(&text); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		family, _, _ := strings.Cut(name, "{")
		n, _ := strconv.Atoi(value)
		sums[family] += n
	}
	for family, want := range map[string]int{
		"sluice_requests_total":    w.result.Exchanges,
		"sluice_first_tries_total": w.result.FirstTry,
		"sluice_attempts_total":    w.result.FirstTry, // this version makes one
	} {
		if sums[family] != want {
			w.failf("%s is %d, want %d", family, sums[family], want)
		}
	}
}
