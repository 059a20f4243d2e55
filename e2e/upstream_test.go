package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveOn runs a backend on one listener; it answers with its name.
func serveOn(t *testing.T, network, addr, name string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, name)
	}))
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	return l
}

func TestUpstream_IPv6(t *testing.T) {
	l := serveOn(t, "tcp6", "[::1]:0", "six")
	g := startGateway(t, oneUpstream("http://"+l.Addr().String()))
	if got := curl(t, g.url("/")); got.status != 200 || got.body != "six" {
		t.Errorf("%d %q, want 200 six", got.status, got.body)
	}
}

func TestUpstream_Name(t *testing.T) {
	l := serveOn(t, "tcp4", "127.0.0.1:0", "named")
	g := startGateway(t, oneUpstream("http://localhost:"+portOf(t, l)))
	if got := curl(t, g.url("/")); got.status != 200 || got.body != "named" {
		t.Errorf("%d %q, want 200 named", got.status, got.body)
	}
}

func portOf(t *testing.T, l net.Listener) string {
	t.Helper()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// On most machines localhost has two addresses, and most backends listen on one of
// them. The gateway sees an /etc/hosts of the test's own, in a mount namespace.
func TestUpstream_NameWithAnAddressNobodyListensOn(t *testing.T) {
	l := serveOn(t, "tcp4", "127.0.0.1:0", "named")
	g := &gateway{addr: freeAddr(t), admin: freeAddr(t)}
	config := writeConfig(t, g, oneUpstream("http://localhost:"+portOf(t, l)))
	hosts := writeFile(t, filepath.Join(t.TempDir(), "hosts"), "127.0.0.1 localhost\n::1 localhost\n")
	g.program = start(t, installed(t, "unshare", "apt-get install util-linux"), "--map-root-user", "--mount", "sh", "-c",
		`mount --bind "$1" /etc/hosts && exec "$2" run --config "$3"`, "sh", hosts, must(t, gatewayBinary), config)
	g.waitAdmin(t, "/readyz", http.StatusOK)
	caller := newCaller(t)
	got := map[int]int{}
	for range 40 {
		got[ask(caller, http.MethodPost, g.url("/"))]++
	}
	if got[http.StatusOK] != 40 {
		t.Errorf("40 requests gave these statuses: %v, want 200 for all", got)
	}
}

func TestUpstream_SeveralEndpointsShareTheTraffic(t *testing.T) {
	var hits [3]int
	var mu sync.Mutex
	var urls []string
	for i := range hits {
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			hits[i]++
		}))
		t.Cleanup(srv.Close)
		urls = append(urls, fmt.Sprintf("%q", srv.URL))
	}
	g := startGateway(t, fmt.Sprintf(`
upstreams:
  - name: backend
    endpoints: [%s]
routes:
  - {name: everything, path: "/{path:*}", upstream: backend}
`, strings.Join(urls, ", ")))
	caller := newCaller(t)
	for range 300 {
		if status := ask(caller, http.MethodGet, g.url("/")); status != 200 {
			t.Fatalf("status %d, want 200", status)
		}
	}
	for i, n := range hits {
		if n == 0 {
			t.Errorf("endpoint %d got none of 300 requests: %v", i, hits)
		}
	}
}

// authority is a certificate authority of the test's own.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	template := certTemplate(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	pair := a.issue(t, template)
	a.file = filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, a.file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	return a
}

func certTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// issue signs a certificate; the first one that it signs is its own.
func (a *authority) issue(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert == nil {
		a.cert, a.key = leaf, key
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// pemFiles writes a certificate and its key where a configuration can name them.
func pemFiles(t *testing.T, pair tls.Certificate) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert = writeFile(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	key = writeFile(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	return cert, key
}

// startTLS runs an https backend whose certificate is for payments.test and that
// wants a certificate of ca's from its callers. It answers with the names of
// server and caller that it saw.
func startTLS(t *testing.T, ca *authority) string {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s for %s", r.TLS.ServerName, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	srv.TLS = &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, certTemplate("payments.test"))},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are the subject
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL
}

func tlsUpstream(backend, settings string) string {
	return fmt.Sprintf(`
upstreams:
  - name: backend
    endpoints: [%q]
    tls: %s
routes:
  - {name: everything, path: "/{path:*}", upstream: backend}
`, backend, settings)
}

func TestUpstream_TLS(t *testing.T) {
	ca, other := newAuthority(t, "ours"), newAuthority(t, "another")
	backend := startTLS(t, ca)
	cert, key := pemFiles(t, ca.issue(t, certTemplate("gateway.test")))

	good := fmt.Sprintf("{ca: %q, cert: %q, key: %q, server_name: payments.test}", ca.file, cert, key)
	g := startGateway(t, tlsUpstream(backend, good))
	for range 3 {
		if got := curl(t, g.url("/")); got.status != 200 || got.body != "payments.test for gateway.test" {
			t.Errorf("%d %q, want 200 payments.test for gateway.test", got.status, got.body)
		}
	}

	for name, config := range map[string]string{
		"another authority": fmt.Sprintf("{ca: %q, cert: %q, key: %q, server_name: payments.test}", other.file, cert, key),
		"another name":      fmt.Sprintf("{ca: %q, cert: %q, key: %q, server_name: accounts.test}", ca.file, cert, key),
	} {
		t.Run(name, func(t *testing.T) {
			g := beginGateway(t, tlsUpstream(backend, config))
			g.waitListening(t, g.addr)
			got := curl(t, "-d", "amount=5", g.url("/v1/charges"))
			p := wantProblem(t, got.status, got.header, got.body, http.StatusBadGateway)
			if p.Outcome != "not-sent" || got.header.Get("Gateway-Outcome") != "not-sent" {
				t.Errorf("outcome %q, in the head %q, want not-sent", p.Outcome, got.header.Get("Gateway-Outcome"))
			}
			if strings.Contains(got.body, "x509") || strings.Contains(got.body, backend[len("https://"):]) {
				t.Errorf("the answer tells internals: %s", got.body)
			}
		})
	}
}
