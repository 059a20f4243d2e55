package server

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"sluice/gateway"
	"sluice/gateway/upstream"
)

// resolver keeps the endpoints of one upstream up to date: addresses as they are,
// names looked up again and again. A name that stops resolving keeps the addresses
// it had: a resolver that is down must not take the upstream with it.
//
// Its settings never change: a reload that changes them puts another in its place,
// which begins with what this one knows.
type resolver struct {
	engine    *Engine
	upstream  *gateway.Upstream
	cfg       upstream.Config
	locations []upstream.Location
	secure    *tls.Config // nil for plain HTTP
	files     [sha256.Size]byte

	stop context.CancelFunc // ends run, which then closes done
	done chan struct{}

	known  map[upstream.Location][]netip.Addr
	failed map[upstream.Location]bool // said so already
}

// firstRetry is the pause after a failed look-up; it doubles up to the configured
// interval.
const firstRetry = time.Second

// newResolver makes the resolver of u, or returns the one before it if that does what
// cfg says. It opens nothing.
func newResolver(e *Engine, u *gateway.Upstream, cfg upstream.Config, before *resolver) (*resolver, error) {
	r := &resolver{
		engine: e, upstream: u, cfg: cfg, files: filesOf(cfg.TLS),
		known: map[upstream.Location][]netip.Addr{}, failed: map[upstream.Location]bool{},
	}
	if before != nil {
		if reflect.DeepEqual(before.cfg, cfg) && before.files == r.files {
			return before, nil
		}
		if before.cfg.TLS == cfg.TLS && before.files == r.files {
			r.secure = before.secure // and the sessions that can be resumed
		}
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

// filesOf tells files by their contents: a certificate is renewed under its old name.
// What cannot be read is for clientTLS to report.
func filesOf(cfg upstream.TLS) [sha256.Size]byte {
	h := sha256.New()
	for _, name := range []string{cfg.CA, cfg.Cert, cfg.Key} {
		if name == "" {
			continue
		}
		data, _ := os.ReadFile(name)
		sum := sha256.Sum256(data)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// follow takes over from the resolver before r, which has ended: what it knows of the
// names that stay, and its endpoints, whose connections are from now on opened and
// kept as r says.
func (r *resolver) follow(before *resolver) {
	for _, at := range r.locations {
		if known, ok := before.known[at]; ok {
			r.known[at], r.failed[at] = known, before.failed[at]
		}
	}
	was, is := before.cfg.Connections, r.cfg.Connections
	most := is.Max
	was.Max, is.Max = 0, 0
	for _, e := range r.upstream.Endpoints() {
		p := e.Attached.(*pool)
		if was != is || before.secure != r.secure {
			p.renew(e.Address, r.cfg.Connections, r.dialer(e.ServerName))
		} else {
			p.setMax(most)
		}
	}
}

// run looks names up until ctx ends. The first look-up has been made.
func (r *resolver) run(ctx context.Context, ok bool) {
	defer close(r.done)
	if !r.named() {
		return
	}
	pause := firstRetry
	for {
		every := r.cfg.Resolve.Every
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
	if ctx.Err() != nil {
		return false // nothing was found out
	}

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
	retire(r.upstream.Replace(list, r.attach))
	return all
}

// retire closes the connections to endpoints that are gone, once they are idle.
func retire(gone []*upstream.Endpoint) {
	for _, e := range gone {
		e.Attached.(*pool).retire()
	}
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
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Resolve.Timeout)
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
		out.ServerName = r.cfg.TLS.ServerName
		if out.ServerName == "" {
			out.ServerName = at.Host
		}
	}
	return out
}

func (r *resolver) attach(a upstream.Address) any {
	return newPool(a.HostPort, r.cfg.Connections, r.dialer(a.ServerName))
}

func (r *resolver) dialer(serverName string) *dialer {
	d := &dialer{open: r.engine.Dial, timeout: r.cfg.Connections.DialTimeout}
	if r.secure != nil {
		d.secure = r.secure.Clone()
		d.secure.ServerName = serverName
	}
	return d
}
