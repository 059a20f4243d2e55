package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"sluice/gateway"
	"sluice/gateway/upstream"
)

// resolver keeps the endpoints of one upstream up to date: addresses as they are,
// names looked up again and again. A name that stops resolving keeps the addresses
// it had: a resolver that is down must not take the upstream with it.
type resolver struct {
	engine    *Engine
	upstream  *gateway.Upstream
	locations []upstream.Location
	secure    *tls.Config // nil for plain HTTP

	known  map[upstream.Location][]netip.Addr
	failed map[upstream.Location]bool // said so already
}

// firstRetry is the pause after a failed look-up; it doubles up to the configured
// interval.
const firstRetry = time.Second

func newResolver(e *Engine, u *gateway.Upstream) (*resolver, error) {
	cfg := u.Config()
	r := &resolver{
		engine: e, upstream: u,
		known: map[upstream.Location][]netip.Addr{}, failed: map[upstream.Location]bool{},
	}
	for _, text := range cfg.Endpoints {
		at, err := upstream.ParseEndpoint(text)
		if err != nil {
			return nil, err
		}
		r.locations = append(r.locations, at)
		if at.HTTPS && r.secure == nil {
			if r.secure, err = clientTLS(cfg.TLS); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// run looks names up until ctx ends. The first look-up has been made.
func (r *resolver) run(ctx context.Context, ok bool) {
	if !r.named() {
		return
	}
	pause := firstRetry
	for {
		every := r.upstream.Config().Resolve.Every
		if ok {
			pause = firstRetry
		}
		wait := every
		if !ok {
			wait = min(pause, every)
			pause = 2 * wait
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		ok = r.refresh(ctx)
	}
}

// named reports whether any endpoint is a name.
func (r *resolver) named() bool {
	for _, at := range r.locations {
		if _, err := netip.ParseAddr(at.Host); err != nil {
			return true
		}
	}
	return false
}

// refresh looks every name up once and puts the result in force. It reports whether
// all of them resolved.
func (r *resolver) refresh(ctx context.Context) bool {
	// Side by side: a name that answers nothing must not hold up the others.
	type answer struct {
		addresses []netip.Addr
		err       error
	}
	answers := make([]answer, len(r.locations))
	var asking sync.WaitGroup
	for i, at := range r.locations {
		asking.Go(func() { answers[i].addresses, answers[i].err = r.lookup(ctx, at.Host) })
	}
	asking.Wait()

	all := true
	var list []upstream.Address
	for i, at := range r.locations {
		addresses := answers[i].addresses
		if err := answers[i].err; err != nil {
			all = false
			r.tell(at, err)
			addresses = r.known[at]
		} else {
			if r.failed[at] {
				r.engine.log.Info().Str("upstream", r.upstream.Name).Str("name", at.Host).Msg("name resolves again")
			}
			r.known[at], r.failed[at] = addresses, false
		}
		for _, a := range addresses {
			list = append(list, r.address(at, a))
		}
	}
	for _, gone := range r.upstream.Replace(list, r.attach) {
		gone.Attached.(*pool).host.CloseIdleConnections()
	}
	return all
}

// tell says that a name does not resolve: once, until it does again.
func (r *resolver) tell(at upstream.Location, err error) {
	if r.failed[at] {
		return
	}
	r.failed[at] = true
	event := r.engine.log.Warn().Str("upstream", r.upstream.Name).Str("name", at.Host).Int("known_addresses", len(r.known[at]))
	var dns *net.DNSError
	if errors.As(err, &dns) {
		event = event.Str("error", dns.Err)
	} else {
		event = event.Str("error", err.Error())
	}
	event.Msg("name does not resolve, trying on")
}

func (r *resolver) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.upstream.Config().Resolve.Timeout)
	defer cancel()
	list, err := r.engine.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if list = oneFamily(list); len(list) == 0 {
		return nil, errors.New("no address")
	}
	return list[:min(len(list), addressesAtMost)], nil
}

// oneFamily keeps the IPv4 addresses of a name that has both kinds. Both usually lead
// to the same hosts, one of the two is often not served (localhost is the nearest
// example), and half of the attempts would then fail.
func oneFamily(list []netip.Addr) []netip.Addr {
	var v4 []netip.Addr
	for _, a := range list {
		if a = a.Unmap(); a.Is4() {
			v4 = append(v4, a)
		}
	}
	if len(v4) > 0 {
		return v4
	}
	return list
}

// addressesAtMost bounds what one name may bring.
const addressesAtMost = 64

func (r *resolver) address(at upstream.Location, a netip.Addr) upstream.Address {
	out := upstream.Address{HostPort: net.JoinHostPort(a.Unmap().String(), strconv.Itoa(int(at.Port)))}
	if at.HTTPS {
		out.ServerName = r.upstream.Config().TLS.ServerName
		if out.ServerName == "" {
			out.ServerName = at.Host
		}
	}
	return out
}

func (r *resolver) attach(a upstream.Address) any {
	limits := r.upstream.Config().Connections
	d := &dialer{open: r.engine.Dial, timeout: limits.DialTimeout}
	if r.secure != nil {
		d.secure = r.secure.Clone()
		d.secure.ServerName = a.ServerName
	}
	return newPool(a.HostPort, limits, d)
}
