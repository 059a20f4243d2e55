package sim

import "sluice/gateway"

// held sums up what the exchanges under way hold.
type held struct{ permits, waiting, trying int64 }

// check compares the core's books with the exchanges' own, after every event.
func (w *world) check() {
	byUpstream := map[*gateway.Upstream]*held{}
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
		if h.Permit && h.Waiting {
			w.failf("%v holds a permit and a place in the queue", a)
		}
		if h.Trying {
			sum.trying++
		}
		if h.Trying && !h.Permit && a.waits != gateway.Relay {
			w.failf("%v has an attempt in flight without a permit", a)
		}
	}
	state := w.core.State()
	if state.InFlight != counted {
		w.failf("the gateway counts %d exchanges, there are %d", state.InFlight, counted)
	}
	for i, u := range w.core.Upstreams() {
		s := state.Upstreams[i]
		sum := byUpstream[u]
		if sum == nil {
			sum = &held{}
		}
		if s.InFlight != sum.permits || s.Queued != sum.waiting {
			w.failf("%s counts %d permits and %d waiting, the exchanges have %d and %d",
				s.Name, s.InFlight, s.Queued, sum.permits, sum.waiting)
		}
		if s.Queued > 0 && s.InFlight < s.Limit {
			w.failf("%s lets %d wait with %d of %d permits in use", s.Name, s.Queued, s.InFlight, s.Limit)
		}
		if len(w.actors) == 0 {
			for _, e := range s.Endpoints {
				if e.InFlight != 0 {
					w.failf("%s: endpoint %s has %d attempts in flight and no exchange is under way", s.Name, e.Address, e.InFlight)
				}
			}
		}
	}
}
