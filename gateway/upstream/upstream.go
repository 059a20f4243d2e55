// Package upstream knows the endpoints of a named service, chooses one for each
// attempt, and says in which class an attempt ended from the facts that an engine
// saw on the socket. It opens no socket, resolves no name and waits for nothing.
//
// The choice is "power of two choices" on the number of attempts in flight
// (Mitzenmacher, The Power of Two Choices in Randomized Load Balancing, 2001).
package upstream

import (
	"sync"
	"sync/atomic"
)

// Endpoint is one address of an upstream.
type Endpoint struct {
	Address    string // literal IP and port, to be dialled as it is
	ServerName string // name for TLS; "" when the upstream is plain HTTP

	// Attached is what the engine keeps with the endpoint, its connections for one.
	// It is set before the endpoint is chosen for the first time and never changes.
	Attached any

	inFlight atomic.Int64
}

// Begin counts an attempt as in flight. End it once.
func (e *Endpoint) Begin() { e.inFlight.Add(1) }

// End takes back Begin.
func (e *Endpoint) End() { e.inFlight.Add(-1) }

// InFlight is how many attempts are with the endpoint now.
func (e *Endpoint) InFlight() int64 { return e.inFlight.Load() }

// Address is where an endpoint is and how it is named in TLS.
type Address struct{ HostPort, ServerName string }

// Upstream is the live state of one named service. It is safe for concurrent use.
type Upstream struct {
	Name string

	endpoints atomic.Pointer[[]*Endpoint]
	mu        sync.Mutex // one Replace at a time
}

// New makes an upstream without endpoints.
func New(name string) *Upstream {
	u := &Upstream{Name: name}
	u.endpoints.Store(&[]*Endpoint{})
	return u
}

// Endpoints is the present list. It must not be changed.
func (u *Upstream) Endpoints() []*Endpoint { return *u.endpoints.Load() }

// Replace makes addresses the list of endpoints. An endpoint whose address stays
// keeps its state; a new one gets what attach returns. It returns those that are
// gone; attempts under way on them go on.
func (u *Upstream) Replace(addresses []Address, attach func(Address) any) (gone []*Endpoint) {
	u.mu.Lock()
	defer u.mu.Unlock()
	old := make(map[Address]*Endpoint)
	for _, e := range u.Endpoints() {
		old[Address{e.Address, e.ServerName}] = e
	}
	list := make([]*Endpoint, 0, len(addresses))
	kept := make(map[Address]bool, len(addresses))
	for _, a := range addresses {
		if kept[a] {
			continue
		}
		kept[a] = true
		e := old[a]
		if e == nil {
			e = &Endpoint{Address: a.HostPort, ServerName: a.ServerName, Attached: attach(a)}
		}
		list = append(list, e)
	}
	for a, e := range old {
		if !kept[a] {
			gone = append(gone, e)
		}
	}
	u.endpoints.Store(&list)
	return gone
}

// Pick chooses the endpoint for an attempt, or nil when there is none. random is a
// uniformly distributed number.
func (u *Upstream) Pick(random uint64) *Endpoint {
	list := u.Endpoints()
	n := uint64(len(list))
	switch n {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	i := random >> 32 % n
	j := (i + 1 + random&0xffffffff%(n-1)) % n // any other one
	if list[j].InFlight() < list[i].InFlight() {
		return list[j]
	}
	return list[i]
}
