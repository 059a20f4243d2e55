package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

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
