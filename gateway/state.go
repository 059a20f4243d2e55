package gateway

// State is what /state shows of the gateway, as JSON.
type State struct {
	Ready     bool            `json:"ready"`
	Draining  bool            `json:"draining"`
	InFlight  int64           `json:"in_flight"`
	Upstreams []UpstreamState `json:"upstreams"`
}

// UpstreamState is what /state shows of one upstream.
type UpstreamState struct {
	Name      string          `json:"name"`
	Ready     bool            `json:"ready"`
	Limit     int64           `json:"limit"`
	InFlight  int64           `json:"in_flight"`
	Queued    int64           `json:"queued"`
	Endpoints []EndpointState `json:"endpoints"`
}

// EndpointState is what /state shows of one endpoint.
type EndpointState struct {
	Address  string `json:"address"`
	InFlight int64  `json:"in_flight"`
}

// State gives the present state.
func (g *Gateway) State() State {
	s := State{Draining: g.draining.Load(), InFlight: g.inFlight.Load()}
	for _, u := range g.Upstreams() {
		us := UpstreamState{
			Name: u.Name, Ready: u.Ready(), Limit: u.limiter.Limit(),
			InFlight: u.limiter.InFlight(), Queued: u.limiter.Waiting(), Endpoints: []EndpointState{},
		}
		for _, e := range u.Endpoints() {
			us.Endpoints = append(us.Endpoints, EndpointState{e.Address, e.InFlight()})
		}
		s.Ready = s.Ready || us.Ready
		s.Upstreams = append(s.Upstreams, us)
	}
	s.Ready = s.Ready && !s.Draining
	return s
}

// Ready reports whether the upstream has an endpoint to send to.
func (u *Upstream) Ready() bool { return len(u.Endpoints()) > 0 }

// watch gives the operator's view of an upstream: gauges read when they are asked
// for.
func (g *Gateway) watch(u *Upstream) {
	gauge := func(name string, f func() float64) {
		g.metrics.UpstreamGauge(name, u.Name, f)
	}
	gauge("sluice_limit", func() float64 { return float64(u.limiter.Limit()) })
	gauge("sluice_in_flight", func() float64 { return float64(u.limiter.InFlight()) })
	gauge("sluice_queued", func() float64 { return float64(u.limiter.Waiting()) })
	gauge("sluice_endpoints", func() float64 { return float64(len(u.Endpoints())) })
}
