package server

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"sluice/config"
	"sluice/gateway/edge"
)

// callers are the open connections of callers: as many as are allowed, in all and
// from one address.
type callers struct {
	refused atomic.Uint64 // for want of room
	crowded atomic.Uint64 // because their address had its share

	mu         sync.Mutex
	most       int
	perAddress int          // 0: no limit
	exempt     edge.Proxies // who speaks for many callers
	open       map[*inbound]struct{}
	addresses  map[netip.Addr]int // of open; never more than open, and none that is 0

	leaving map[*inbound]struct{} // those that linger
	over    bool                  // nothing lingers any more
	empty   chan struct{}         // closed when open becomes empty; nil until somebody waits
	work    sync.WaitGroup        // a goroutine for each of leaving
}

func newCallers(cfg config.Server) *callers {
	s := &callers{
		open:      map[*inbound]struct{}{},
		addresses: map[netip.Addr]int{},
		leaving:   map[*inbound]struct{}{},
	}
	s.configure(cfg)
	return s
}

// configure sets the limits. Connections that are open stay.
func (s *callers) configure(cfg config.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.perAddress = cfg.Limits.Connections, cfg.Limits.ConnectionsPerAddress
	s.exempt = edge.Proxies(cfg.TrustedProxies)
}

// add takes a connection in, if there is room.
func (s *callers) add(in *inbound) bool {
	from := share(in.caller.Address)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.open) >= s.most:
		s.refused.Add(1)
		return false
	case s.perAddress > 0 && s.addresses[from] >= s.perAddress && from.IsValid() && !s.exempt.Trust(in.caller.Address):
		s.crowded.Add(1)
		return false
	}
	s.open[in] = struct{}{}
	if from.IsValid() {
		s.addresses[from]++ // also without a limit: a reload may set one
	}
	return true
}

// share is the address that a caller's connections count for. Whoever has an IPv6
// address has 2^64 of them.
func share(a netip.Addr) netip.Addr {
	const network = 64
	if a.Is6() {
		if p, err := a.Prefix(network); err == nil {
			return p.Addr()
		}
	}
	return a
}

func (s *callers) remove(in *inbound) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.open[in]; !ok {
		return
	}
	delete(s.open, in)
	if from := share(in.caller.Address); from.IsValid() {
		if s.addresses[from]--; s.addresses[from] == 0 {
			delete(s.addresses, from)
		}
	}
	if len(s.open) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// cutAttempts ends every attempt in flight, so that its exchange ends with what is
// known of it. It returns how many there were, streams without an end not counted.
func (s *callers) cutAttempts() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for in := range s.open {
		if c := in.trying.Load(); c != nil {
			_ = c.SetDeadline(time.Unix(1, 0))
			if !c.stream.Load() {
				n++
			}
		}
	}
	return n
}
