package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/gateway/upstream"
)

// sessionsKept is how many TLS sessions towards an upstream can be resumed.
const sessionsKept = 256

// CheckTLS reads the files that cfg names and returns every fault, each of which
// begins with the setting.
func CheckTLS(cfg upstream.TLS) []error {
	_, faults := readTLS(cfg)
	return faults
}

// clientTLS is the configuration of connections to an upstream.
func clientTLS(cfg upstream.TLS) (*tls.Config, error) {
	c, faults := readTLS(cfg)
	return c, errors.Join(faults...)
}

func readTLS(cfg upstream.TLS) (c *tls.Config, faults []error) {
	c = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(sessionsKept),
	}
	if cfg.CA != "" {
		pem, err := os.ReadFile(cfg.CA)
		c.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("tls.ca: %w", err))
		case !c.RootCAs.AppendCertsFromPEM(pem):
			faults = append(faults, fmt.Errorf("tls.ca: %s holds no certificate in PEM form", cfg.CA))
		}
	}
	if cfg.Cert != "" {
		pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
		if err != nil {
			faults = append(faults, fmt.Errorf("tls.cert, tls.key: %w", err))
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, faults
}

// frontTLS is TLS towards callers.
type frontTLS struct {
	config *tls.Config
	time   time.Duration // for a handshake
	failed atomic.Uint64 // handshakes
}

func newFrontTLS(certificates *certificates, time time.Duration) *frontTLS {
	return &frontTLS{time: time, config: &tls.Config{
		MinVersion: tls.VersionTLS12,
		// A caller who speaks another protocol alone learns it here.
		NextProtos:     []string{"http/1.1"},
		GetCertificate: certificates.get,
	}}
}

// hasty is the socket below TLS. Once it is closing nothing waits for the caller,
// whereas the TLS library gives its farewell five seconds: a drain would stand still
// before callers who do not read.
type hasty struct {
	net.Conn
	closing atomic.Bool
}

// SetWriteDeadline implements net.Conn.
func (h *hasty) SetWriteDeadline(t time.Time) error {
	if h.closing.Load() {
		t = time.Now().Add(time.Millisecond)
	}
	return h.Conn.SetWriteDeadline(t)
}

// CloseWrite ends what is sent.
func (h *hasty) CloseWrite() error {
	if half, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// secure puts TLS on a new connection.
func (in *inbound) secure(front *frontTLS) {
	in.front = front
	in.socket = &hasty{Conn: in.socket}
	in.Conn = tls.Server(in.socket, front.config)
}

// shake makes the handshake. The head that follows has its own time.
func (in *inbound) shake() bool {
	conn, ok := in.Conn.(*tls.Conn)
	if !ok || in.socket.SetDeadline(time.Now().Add(in.front.time)) != nil {
		return false
	}
	if err := conn.Handshake(); err != nil {
		in.unshaken(conn, err)
		return false
	}
	in.shaken = true
	return in.socket.SetWriteDeadline(time.Time{}) == nil && in.socket.SetReadDeadline(time.Now().Add(in.front.time)) == nil
}

// unshaken counts a handshake that failed. It is no event in the log: whoever scans
// the port would write it.
func (in *inbound) unshaken(conn *tls.Conn, err error) {
	var other tls.RecordHeaderError
	switch {
	case errors.Is(err, net.ErrClosed):
		return // by a drain
	case conn.ConnectionState().Version == 0 && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return // it was opened and closed, as health checks do
	case errors.As(err, &other) && other.Conn != nil && looksLikeHTTP(other.RecordHeader[:]):
		if say(in.socket, unencrypted) {
			in.latest.Store(didWrite)
		}
	}
	in.front.failed.Add(1)
}

// looksLikeHTTP reports whether b can be the beginning of a method.
func looksLikeHTTP(b []byte) bool {
	for _, c := range b[:3] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}
