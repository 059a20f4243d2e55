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
	Limit     int64           `json:"limit"` // 0: none
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

// gauges are the operator's view of an upstream, read when they are asked for.
var gauges = map[string]func(*Upstream) float64{
	"sluice_limit":     func(u *Upstream) float64 { return float64(u.limiter.Limit()) },
	"sluice_in_flight": func(u *Upstream) float64 { return float64(u.limiter.InFlight()) },
	"sluice_queued":    func(u *Upstream) float64 { return float64(u.limiter.Waiting()) },
	"sluice_endpoints": func(u *Upstream) float64 { return float64(len(u.Endpoints())) },
}

func (g *Gateway) watch(u *Upstream) {
	for family, read := range gauges {
		g.metrics.UpstreamGauge(family, u.Name, func() float64 { return read(u) })
	}
}

func (g *Gateway) unwatch(u *Upstream) {
	for family := range gauges {
		g.metrics.UpstreamGauge(family, u.Name, nil)
	}
}
