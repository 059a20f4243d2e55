// Package admin is the listener for operators and their tools: health, readiness,
// metrics, state, the log's level and profiles. It decides who may ask, and nothing
// about traffic; it sees the gateway through the functions in Sources alone. It is
// never on the public listener.
//
// Who may ask: where a token is set, whoever sends it (RFC 6750), but for /healthz
// and /readyz, which load balancers ask. On a loopback listener that includes, of
// what a browser on this host sends, neither requests by another name (DNS
// rebinding) nor what another site makes it send (cross-site request forgery).
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Bounds of the listener.
const (
	headerTime   = 5 * time.Second  // to send the head of a request
	idleTime     = 30 * time.Second // between requests
	answerTime   = 15 * time.Second // to read a request and write the answer
	profileTime  = 5 * time.Minute  // longest profile
	stopTime     = time.Second      // for answers under way when Serve ends
	headerBytes  = 16 << 10
	bodyBytes    = 1 << 20
	connections  = 64
	tokenMaxSize = 4 << 10
)

// Sources is how the listener sees the gateway. All functions are called from many
// goroutines; all but Warn are required.
type Sources struct {
	Ready    func() Readiness
	State    func() any // written as JSON
	Metrics  func(io.Writer)
	Level    func() string
	SetLevel func(string) error // its error's text goes to the operator
	Warn     func(text string)  // what net/http reports about connections; may be nil
}

// Readiness is whether the gateway can serve.
type Readiness struct {
	Ready     bool            `json:"ready"`
	Reasons   []string        `json:"reasons,omitempty"` // why not
	Upstreams []UpstreamReady `json:"upstreams"`
}

// UpstreamReady is whether one upstream can be sent to.
type UpstreamReady struct {
	Name   string `json:"name"`
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"` // why not
}

// Server is the admin listener.
type Server struct {
	address address
	sources Sources
	guard   guard
}

// New makes a server and reads its token. It listens to nothing yet.
func New(cfg Config, sources Sources) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := sources
	if s.Ready == nil || s.State == nil || s.Metrics == nil || s.Level == nil || s.SetLevel == nil {
		return nil, errors.New("a source is missing")
	}
	a, err := cfg.address()
	if err != nil {
		return nil, err
	}
	token, err := readToken(cfg.TokenFile)
	if err != nil {
		return nil, err
	}
	return &Server{address: a, sources: sources, guard: newGuard(a, token)}, nil
}

// Listen opens the listener, apart from Serve so that the caller can report an
// address that is taken, and show the real one where the port is 0. It returns nil
// and no error where the listener is off. The error names the address.
func (s *Server) Listen() (net.Listener, error) {
	switch s.address.reach {
	case nobody:
		return nil, nil
	case files:
		return listenUnix(s.address.where)
	}
	return net.Listen(s.address.network, s.address.where)
}

// Serve answers on ln, which Listen returned, until ctx ends; it closes ln. Answers
// under way then have a second. Where ln is nil it only waits.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	if ln == nil {
		<-ctx.Done()
		return nil
	}
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,

		DisableGeneralOptionsHandler: true,

		ErrorLog:    log.New(warner{s.sources.Warn}, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }, // so that profiles end with it
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(bound(ln, connections)) }()
	select {
	case err := <-failed:
		_ = server.Close()
		return fmt.Errorf("admin: %w", err)
	case <-ctx.Done():
	}
	patience, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer done()
	if server.Shutdown(patience) != nil {
		_ = server.Close()
	}
	<-failed
	return nil
}

// warner hands lines of package log on.
type warner struct{ warn func(string) }

// Write implements io.Writer.
func (w warner) Write(line []byte) (int, error) {
	if w.warn != nil {
		w.warn("admin: " + string(line[:max(0, len(line)-1)]))
	}
	return len(line), nil
}
