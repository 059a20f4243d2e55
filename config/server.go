package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server sets how callers are served. See DefaultServer for the defaults.
type Server struct {
	Listen         []string       `koanf:"listen"`     // "host:port", ":8080", "unix:/run/sluice.sock"
	ReusePort      bool           `koanf:"reuse_port"` // another process may listen on the same ports and take over; Linux
	TLS            TLS            `koanf:"tls"`
	Timeouts       Timeouts       `koanf:"timeouts"`
	Limits         Limits         `koanf:"limits"`
	TrustedProxies []netip.Prefix `koanf:"trusted_proxies"` // whose forwarding headers are believed
	Drain          Drain          `koanf:"drain"`
}

// TLS sets the certificate that callers see. With one, everything but Unix sockets is
// served with TLS; without, nothing is. The files are read again when they change.
type TLS struct {
	Cert string `koanf:"cert"` // file with the certificate and those that lead to its authority, in PEM form
	Key  string `koanf:"key"`  // file with its private key
}

// On reports whether there is a certificate.
func (t TLS) On() bool { return t.Cert != "" || t.Key != "" }

// Timeouts bounds how long a connection may take over each of its parts.
type Timeouts struct {
	Header time.Duration `koanf:"header"` // to read the head of a request
	Body   time.Duration `koanf:"body"`   // to read its body
	Idle   time.Duration `koanf:"idle"`   // between requests
	Write  time.Duration `koanf:"write"`  // to write to a caller who does not read
}

// Limits bounds what callers can make the gateway hold.
type Limits struct {
	HeaderBytes Size `koanf:"header_bytes"` // of a request's head
	Headers     int  `koanf:"headers"`      // lines in it
	Body        Size `koanf:"body"`         // default of the routes' MaxBody
	Connections int  `koanf:"connections"`
	InFlight    int  `koanf:"in_flight"` // exchanges
	Buffered    Size `koanf:"buffered"`  // bytes of request bodies, held in all

	// ConnectionsPerAddress bounds the connections from one address, a /64 for IPv6;
	// 0 is no bound. Those of trusted proxies are not counted: they speak for many.
	ConnectionsPerAddress int `koanf:"connections_per_address"`
}

// Drain sets what happens between SIGTERM and the end.
type Drain struct {
	Delay   time.Duration `koanf:"delay"`   // not ready, but still accepting
	Timeout time.Duration `koanf:"timeout"` // then for what is in flight
}

// DefaultServer listens on port 8080 of every address.
func DefaultServer() Server {
	return Server{
		Listen:   []string{":8080"},
		Timeouts: Timeouts{Header: 5 * time.Second, Body: 30 * time.Second, Idle: 75 * time.Second, Write: 30 * time.Second},
		Limits:   Limits{HeaderBytes: 16 * KiB, Headers: 100, Body: MiB, Connections: 65536, InFlight: 10000, Buffered: GiB},
		Drain:    Drain{Timeout: 30 * time.Second},
	}
}

// The bounds. No timeout and no limit but that per address can be switched off: every
// one is there because a caller could otherwise hold the gateway's memory or
// connections.
const (
	shortest    = time.Millisecond
	longest     = time.Hour
	largestHead = 16 * MiB
	largestBody = GiB // one body is one buffer
	mostLines   = 10_000
	mostHeld    = 10_000_000

	mostBuffered = 1024 * GiB
)

// Validate returns every fault of s, joined; each is a *Fault whose Path begins
// below s.
func (s Server) Validate() error {
	faults := []error{
		s.checkListen(),
		s.TLS.check(),
		within("timeouts.header", s.Timeouts.Header, shortest, longest),
		within("timeouts.body", s.Timeouts.Body, shortest, longest),
		within("timeouts.idle", s.Timeouts.Idle, shortest, longest),
		within("timeouts.write", s.Timeouts.Write, shortest, longest),
		within("limits.header_bytes", s.Limits.HeaderBytes, KiB, largestHead),
		within("limits.headers", s.Limits.Headers, 1, mostLines),
		within("limits.body", s.Limits.Body, Byte, largestBody),
		within("limits.connections", s.Limits.Connections, 1, mostHeld),
		within("limits.connections_per_address", s.Limits.ConnectionsPerAddress, 0, mostHeld),
		within("limits.in_flight", s.Limits.InFlight, 1, mostHeld),
		within("limits.buffered", s.Limits.Buffered, KiB, mostBuffered),
		within("drain.delay", s.Drain.Delay, 0, longest),
		within("drain.timeout", s.Drain.Timeout, 0, longest),
	}
	for i, prefix := range s.TrustedProxies {
		if wrong := wrongPrefix(prefix); wrong != "" {
			faults = append(faults, fault(fmt.Sprintf("trusted_proxies[%d]", i), wrong))
		}
	}
	return errors.Join(faults...)
}

// check finds half a pair. The files are read when the gateway starts.
func (t TLS) check() error {
	switch {
	case t.Cert != "" && t.Key == "":
		return fault("tls.key", "is required with tls.cert, the file with its private key")
	case t.Key != "" && t.Cert == "":
		return fault("tls.cert", "is required with tls.key, the file with its certificate")
	}
	return nil
}

func (s Server) checkListen() error {
	const most = 64
	if len(s.Listen) == 0 {
		return fault("listen", `is required, for example ":8080"`)
	}
	if len(s.Listen) > most {
		return fault("listen", fmt.Sprintf("%d are too many, at most %d", len(s.Listen), most))
	}
	var faults []error
	for i, address := range s.Listen {
		wrong := wrongAddress(address)
		if wrong == "" && slices.Contains(s.Listen[:i], address) && !strings.HasSuffix(address, ":0") {
			wrong = "is listed before"
		}
		if wrong != "" {
			faults = append(faults, fault(fmt.Sprintf("listen[%d]", i), quote(address)+" "+wrong))
		}
	}
	return errors.Join(faults...)
}

// wrongAddress says what keeps address from being one to listen on; "" is nothing.
func wrongAddress(address string) string {
	const form = `write host:port, ":port" or "unix:/absolute/path"`
	if path, unix := strings.CutPrefix(address, "unix:"); unix {
		const longest = 107 // of sun_path on Linux, less its end
		switch {
		case !filepath.IsAbs(path) || strings.ContainsRune(path, 0):
			return "has no absolute path, " + form
		case len(path) > longest:
			return fmt.Sprintf("has a path of %d bytes, at most %d", len(path), longest)
		}
		return ""
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.ContainsAny(host, "/ \t\r\n\x00") {
		return "is not an address, " + form
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "has no valid port (0 to 65535), " + form
	}
	return ""
}

// wrongPrefix says what keeps p from meaning what it seems to mean.
func wrongPrefix(p netip.Prefix) string {
	switch {
	case !p.IsValid():
		return "is not an address range, write for example 10.0.0.0/8"
	case p.Addr().Is4In6():
		return fmt.Sprintf("%v is IPv4 in IPv6, which no caller's address ever is, write it as IPv4", p)
	case p != p.Masked():
		return fmt.Sprintf("%v is an address within a range, write %v for the range or %v/%d for the address", p, p.Masked(), p.Addr(), p.Addr().BitLen())
	}
	return ""
}

func fault(path, text string) *Fault { return &Fault{Place{Path: path}, text} }

func within[T int | Size | time.Duration](path string, value, low, high T) error {
	switch {
	case value < low:
		return fault(path, fmt.Sprintf("%v is too small, at least %v", value, low))
	case value > high:
		return fault(path, fmt.Sprintf("%v is too large, at most %v", value, high))
	}
	return nil
}
