package server_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/gateway/outcome"
	. "sluice/internal/gatewaytest"
)

// secure is a TLS backend and a file with its certificate.
func secure(t *testing.T, handler http.HandlerFunc) (s *httptest.Server, ca string) {
	t.Helper()
	s = httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = quietLog()
	s.StartTLS()
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s, ca
}

func TestTLS_Upstream(t *testing.T) {
	var connections sync.Map
	s, ca := secure(t, func(w http.ResponseWriter, r *http.Request) {
		connections.Store(r.RemoteAddr, true)
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte(r.TLS.ServerName+" "), body...))
	})
	cfg := Config(s.URL)
	cfg.Upstreams[0].TLS.CA = ca
	cfg.Upstreams[0].TLS.ServerName = "example.com" // a name in httptest's certificate
	g := Start(t, cfg)
	for range 5 {
		if a := ask(t, g, "POST", "/", "hello"); a.status != 200 || a.body != "example.com hello" {
			t.Fatalf("%+v", a)
		}
	}
	n := 0
	connections.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d connections for requests one after the other, want one", n)
	}
}

func TestTLS_UpstreamThatCannotBeTrusted(t *testing.T) {
	s, ca := secure(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) })
	t.Run("unknown authority", func(t *testing.T) {
		ask(t, Start(t, Config(s.URL)), "POST", "/", "x").want(t, outcome.ConnectFailed)
	})
	t.Run("wrong name", func(t *testing.T) {
		cfg := Config(s.URL)
		cfg.Upstreams[0].TLS.CA, cfg.Upstreams[0].TLS.ServerName = ca, "other.test"
		ask(t, Start(t, cfg), "POST", "/", "x").want(t, outcome.ConnectFailed)
	})
}

// TestTLS_HandshakeIsBounded has a backend accept and say nothing.
func TestTLS_HandshakeIsBounded(t *testing.T) {
	u := NewUpstream(t, Hang) // it waits for a request's head, which never comes
	cfg := Config(strings.Replace(u.URL, "http:", "https:", 1))
	cfg.Upstreams[0].Connections.DialTimeout = 50 * time.Millisecond
	ask(t, Start(t, cfg), "POST", "/", "x").want(t, outcome.ConnectFailed)
}

// TestTLS_CloseWhileIdle has the backend close each connection behind its answer.
func TestTLS_CloseWhileIdle(t *testing.T) {
	s, ca := secure(t, nil)
	certificate := s.TLS.Certificates
	s.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	var requests atomic.Int64
	closed := make(chan struct{}, 10)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if n, _ := c.Read(make([]byte, 4096)); n > 0 {
				requests.Add(1)
				_, _ = io.WriteString(c, OK)
			}
			_ = c.Close()
			closed <- struct{}{}
		}
	}()
	cfg := Config("https://" + ln.Addr().String())
	cfg.Upstreams[0].TLS.CA = ca
	g := Start(t, cfg)
	const n = 10
	for i := range n {
		if a := ask(t, g, "POST", "/", ""); a.status != 200 {
			t.Fatalf("request %d: %+v", i, a)
		}
		<-closed // on loopback the close is then at the gateway's socket
	}
	if requests.Load() != n {
		t.Errorf("the backend saw %d requests of %d", requests.Load(), n)
	}
}

func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }
