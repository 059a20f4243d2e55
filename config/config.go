// Package config is the whole configuration: what can be set, where settings come
// from, and everything that is wrong with them. It composes the Config of each
// stage and checks what spans several of them; what a single value may be is
// decided by the package that uses it. It reads one file and nothing else: whether
// a directory can be written, an address is free or a certificate can be loaded
// shows when it is used.
package config

import (
	"fmt"
	"time"

	"sluice/gateway/admin"
	"sluice/gateway/deadline"
	"sluice/gateway/limits"
	"sluice/gateway/routes"
	"sluice/gateway/telemetry"
	"sluice/gateway/upstream"
)

// Config is a whole configuration. See Default for the defaults.
type Config struct {
	Server    Server           `koanf:"server"`
	Admin     admin.Config     `koanf:"admin"`
	StateDir  string           `koanf:"state_dir"` // folder for what outlives a restart; made when missing
	Log       telemetry.Config `koanf:"log"`
	Upstreams []Upstream       `koanf:"upstreams"` // required; each name once
	Routes    []Route          `koanf:"routes"`    // required; each name once, the order means nothing
}

// Upstream is a named service and what protects it.
type Upstream struct {
	upstream.Config `koanf:",squash"`
	Limit           limits.Config `koanf:"limit"`
}

// Times is deadline.Config under a name of its own, since Route embeds two types
// that are called Config.
type Times = deadline.Config

// Route says which requests go to which upstream, and how.
type Route struct {
	routes.Config `koanf:",squash"`
	Times         `koanf:",squash"`
	Upstream      string        `koanf:"upstream"`  // required: the name of one
	MaxBody       Size          `koanf:"max_body"`  // of a request; where absent Server.Limits.Body
	RawPaths      bool          `koanf:"raw_paths"` // paths with more than one reading are passed on as bytes, not refused
	Response      Response      `koanf:"response"`
	Stall         time.Duration `koanf:"stall"` // longest pause between bytes of a streamed response
}

// Deadline is the part of r that sets its times.
func (r Route) Deadline() deadline.Config { return r.Times }

// Response says what a route's timeout covers.
type Response uint8

// The zero value is the bounded one.
const (
	ResponseBounded Response = iota // the whole response
	ResponseStream                  // up to the head; after it Stall bounds each pause
)

var responseNames = [...]string{"bounded", "stream"}

// String gives the word as it stands in a file.
func (r Response) String() string {
	if int(r) < len(responseNames) {
		return responseNames[r]
	}
	return fmt.Sprintf("response %d", uint8(r))
}

// MarshalText gives the word as it stands in a file.
func (r Response) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads bounded or stream.
func (r *Response) UnmarshalText(text []byte) error {
	for i, name := range responseNames {
		if string(text) == name {
			*r = Response(i)
			return nil
		}
	}
	return fmt.Errorf("%s is unknown, bounded or stream", quote(string(text)))
}

// Default is a configuration that still needs an upstream and a route.
func Default() Config {
	return Config{
		Server:   DefaultServer(),
		Admin:    admin.DefaultConfig(),
		StateDir: "./state",
		Log:      telemetry.DefaultConfig(),
	}
}

// DefaultUpstream is an upstream that still needs a name and endpoints.
func DefaultUpstream() Upstream {
	return Upstream{Config: upstream.DefaultConfig(), Limit: limits.DefaultConfig()}
}

// DefaultRoute is a route that still needs a name, a path and an upstream.
func DefaultRoute() Route {
	return Route{
		Config:   routes.DefaultConfig(),
		Times:    deadline.DefaultConfig(),
		MaxBody:  DefaultServer().Limits.Body,
		Response: ResponseBounded,
		Stall:    3 * time.Second,
	}
}
