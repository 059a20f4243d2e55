package server

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sluice/config"
)

// lookEvery is how often the certificate's files are read.
const lookEvery = time.Second

// largestPEM bounds each of them, in bytes.
const largestPEM = 1 << 20

// certificates is the certificate that callers see, and the files that it comes
// from. Files that change are taken over when they have been the same at two looks:
// the two are rarely replaced in one moment, and halves do not match.
type certificates struct {
	log *zerolog.Logger
	now atomic.Pointer[tls.Certificate]

	mu    sync.Mutex
	files config.TLS
	used  sum // what was taken over, or found wrong and said so
	seen  sum // at the latest look
}

// sum stands for the content of both files, or for the fault in reading them.
type sum = [sha256.Size]byte

// CheckServerTLS reads the files that cfg names. A fault begins with the setting.
func CheckServerTLS(cfg config.TLS) error {
	if !cfg.On() {
		return nil
	}
	_, _, err := readPair(cfg)
	return err
}

// newCertificates reads the files for the first time.
func newCertificates(cfg config.TLS, log *zerolog.Logger) (*certificates, error) {
	c := &certificates{log: log}
	return c, c.use(cfg)
}

// use takes other files, if they can be used.
func (c *certificates) use(cfg config.TLS) error {
	pair, content, err := readPair(cfg)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files, c.used, c.seen = cfg, content, content
	c.now.Store(pair)
	return nil
}

// get is for tls.Config. There is one certificate, whatever name a caller asks for.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }

// run looks at the files until ctx ends.
func (c *certificates) run(ctx context.Context) {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			c.look()
		}
	}
}

// look takes over what has changed. What cannot be used leaves the old pair in
// place, and is said once.
func (c *certificates) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	pair, content, err := readPair(c.files)
	settled := content == c.seen
	c.seen = content
	if !settled || content == c.used {
		return
	}
	c.used = content
	if err != nil {
		c.log.Warn().Err(err).Msg("the certificate has changed and cannot be used, the old one is kept")
		return
	}
	c.now.Store(pair)
	c.log.Info().Strs("names", pair.Leaf.DNSNames).Time("not_after", pair.Leaf.NotAfter).Msg("the certificate has changed")
}

func readPair(cfg config.TLS) (*tls.Certificate, sum, error) {
	cert, certErr := readPEM("server.tls.cert", cfg.Cert)
	key, keyErr := readPEM("server.tls.key", cfg.Key)
	if err := errors.Join(certErr, keyErr); err != nil {
		return nil, sha256.Sum256([]byte(err.Error())), errors.Join(certErr, keyErr)
	}
	content := sha256.Sum256(append(append(cert, 0), key...))
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, content, fmt.Errorf("server.tls: %s with %s: %w", cfg.Cert, cfg.Key, err)
	}
	return &pair, content, nil
}

func readPEM(setting, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, largestPEM+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", setting, err)
	case len(text) > largestPEM:
		return nil, fmt.Errorf("%s: %s is larger than %d bytes", setting, path, largestPEM)
	}
	return text, nil
}
