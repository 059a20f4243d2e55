package server_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/outcome"
	"sluice/gateway/server"
	"sluice/gateway/telemetry"
	. "sluice/internal/gatewaytest"
)

// pair is a certificate for 127.0.0.1 and its key, in files.
type pair struct {
	files config.TLS
	roots *x509.CertPool
	name  string
}

func newPair(t *testing.T) pair {
	dir := t.TempDir()
	return writePair(t, config.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}, "first")
}

// writePair replaces what the files hold.
func writePair(t *testing.T, files config.TLS, name string) pair {
	t.Helper()
	cert, key, root := makePair(t, name)
	replace(t, files.Cert, cert)
	replace(t, files.Key, key)
	p := pair{files: files, roots: x509.NewCertPool(), name: name}
	p.roots.AddCert(root)
	return p
}

func makePair(t *testing.T, name string) (cert, key []byte, root *x509.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	if root, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), root
}

func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// start is Start for those who look at the engine's counts.
func start(t *testing.T, cfg config.Config) (g *Gateway, e *server.Engine) {
	t.Helper()
	g = StartWith(t, cfg, func(engine *server.Engine) { e = engine })
	return g, e
}

// secured is a configuration with TLS before a backend.
func secured(t *testing.T, p pair, acts ...Act) (config.Config, *Upstream) {
	t.Helper()
	u := NewUpstream(t, acts...)
	cfg := Config(u.URL)
	cfg.Server.TLS = p.files
	return cfg, u
}

// serve starts it.
func serve(t *testing.T, p pair, acts ...Act) (*Gateway, *Upstream) {
	t.Helper()
	cfg, u := secured(t, p, acts...)
	return Start(t, cfg), u
}

// dial makes a handshake, or fails the test.
func dial(t *testing.T, g *Gateway, p pair) *tls.Conn {
	t.Helper()
	c := tls.Client(g.Dial(t), &tls.Config{RootCAs: p.roots, ServerName: "127.0.0.1"})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c
}

// get asks for a path on a connection and keeps it.
func get(t *testing.T, c net.Conn, r *bufio.Reader, path string) answer {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return read(t, r, "GET")
}

func TestTLS_Versions(t *testing.T) {
	p := newPair(t)
	cfg, u := secured(t, p, Say(OK))
	g, e := start(t, cfg)
	for version, served := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := tls.Client(g.Dial(t), &tls.Config{RootCAs: p.roots, ServerName: "127.0.0.1", MinVersion: version, MaxVersion: version})
		err := c.Handshake()
		if (err == nil) != served {
			t.Errorf("%s: handshake ended with %v", tls.VersionName(version), err)
		}
		if err != nil {
			continue
		}
		if a := get(t, c, bufio.NewReader(c), "/"); a.status != 200 || a.body != "ok" {
			t.Errorf("%s: %+v", tls.VersionName(version), a)
		}
	}
	for _, seen := range u.Seen() {
		if !strings.Contains(seen.Head, "\r\nX-Forwarded-Proto: https\r\n") || !strings.Contains(seen.Head, "\r\nX-Forwarded-For: 127.0.0.1\r\n") {
			t.Errorf("the backend saw %q", seen.Head)
		}
	}
	eventually(t, "two handshakes failed", func() bool { return e.HandshakesFailed() == 2 })
}

// TestTLS_Protocols: only HTTP/1.1 is promised, and whoever speaks nothing else is
// told so. What name a caller asks for does not matter.
func TestTLS_Protocols(t *testing.T) {
	p := newPair(t)
	g, _ := serve(t, p, Say(OK))
	for _, c := range []struct {
		offers []string
		name   string
		got    string
		fails  bool
	}{
		{nil, "first", "", false},
		{nil, "", "", false},
		{[]string{"h2", "http/1.1"}, "other.test", "http/1.1", false},
		{[]string{"h2"}, "first", "", true},
	} {
		conn := tls.Client(g.Dial(t), &tls.Config{InsecureSkipVerify: true, ServerName: c.name, NextProtos: c.offers})
		err := conn.Handshake()
		if state := conn.ConnectionState(); (err != nil) != c.fails || state.NegotiatedProtocol != c.got {
			t.Errorf("%v for %q: %q, %v; want %q", c.offers, c.name, state.NegotiatedProtocol, err, c.got)
		}
		if err == nil {
			if a := get(t, conn, bufio.NewReader(conn), "/"); a.status != 200 {
				t.Errorf("%v for %q: %+v", c.offers, c.name, a)
			}
		}
	}
}

func TestTLS_PipeliningAndLargeBodies(t *testing.T) {
	p := newPair(t)
	g, u := serve(t, p, func(c net.Conn, r Seen) {
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(r.Body), r.Body)
	})
	body := strings.Repeat("0123456789abcdef", 60_000)
	c := dial(t, g, p)
	go func() {
		for i := range 10 {
			_, _ = fmt.Fprintf(c, "POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", i, len(body), body)
		}
	}()
	r := bufio.NewReader(c)
	for i := range 10 {
		if a := read(t, r, "POST"); a.status != 200 || a.body != body {
			t.Fatalf("answer %d: %d with %d bytes", i, a.status, len(a.body))
		}
	}
	if n := len(u.Seen()); n != 10 {
		t.Errorf("the backend saw %d requests", n)
	}
}

func TestTLS_ManyHandshakesAtOnce(t *testing.T) {
	p := newPair(t)
	g, _ := serve(t, p, Say(OK))
	var all sync.WaitGroup
	for range 200 {
		conn := g.Dial(t)
		all.Go(func() {
			c := tls.Client(conn, &tls.Config{RootCAs: p.roots, ServerName: "127.0.0.1"})
			defer func() { _ = c.Close() }()
			_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			res, readErr := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || readErr != nil || res.StatusCode != 200 {
				t.Errorf("%v, %v", err, readErr)
			}
		})
	}
	all.Wait()
}

// TestTLS_SlowHandshakesHoldNobodyUp has callers begin a handshake and stop.
func TestTLS_SlowHandshakesHoldNobodyUp(t *testing.T) {
	p := newPair(t)
	cfg, _ := secured(t, p, Say(OK))
	cfg.Server.Timeouts.Header = 300 * time.Millisecond
	g, e := start(t, cfg)
	var slow []net.Conn
	for i := range 20 {
		c := g.Dial(t)
		_, _ = c.Write([]byte("\x16\x03\x01\x02\x00\x01")[:i%7]) // the beginning of a hello, or nothing
		slow = append(slow, c)
	}
	c := dial(t, g, p)
	if a := get(t, c, bufio.NewReader(c), "/"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	for _, c := range slow {
		_, _ = io.Copy(io.Discard, c) // until the gateway closes it
	}
	eventually(t, "all are counted", func() bool { return e.HandshakesFailed() == 20 })
	_ = g.Stop()
	if n := strings.Count(g.Log(), `"message":"exchange"`); n != 1 || strings.Contains(g.Log(), `"level":"warn"`) {
		t.Errorf("want one event and no warning: %s", g.Log())
	}
}

// TestTLS_SlowHead has a caller make its handshake and then nothing, or little.
func TestTLS_SlowHead(t *testing.T) {
	p := newPair(t)
	cfg, _ := secured(t, p, Say(OK))
	cfg.Server.Timeouts.Header = 200 * time.Millisecond
	g := Start(t, cfg)
	c := dial(t, g, p)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHos")
	read(t, bufio.NewReader(c), "GET").want(t, outcome.RequestTimeout)
}

// TestTLS_OtherThingsThanHandshakes: plain HTTP is told what is wrong, all else is
// closed. None of it is an exchange, and opening a connection is no failure.
func TestTLS_OtherThingsThanHandshakes(t *testing.T) {
	p := newPair(t)
	cfg, _ := secured(t, p, Say(OK))
	g, e := start(t, cfg)
	a := stubborn(t, g.Dial(t), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 100_000))
	if a.status != 400 || !strings.Contains(a.body, `"code":"bad_request"`) || !a.closes {
		t.Errorf("got %+v", a)
	}
	for _, bytes := range []string{"\x00\x00\x00\x00\x00\x00\x00", "\x16\x03\x01\x00\x05hello", "get / HTTP/1.1\r\n\r\n"} {
		c := g.Dial(t)
		_, _ = io.WriteString(c, bytes)
		if text, _ := io.ReadAll(c); strings.Contains(string(text), "HTTP") {
			t.Errorf("%q was answered with %q", bytes, text)
		}
	}
	_ = g.Dial(t).Close()
	reset := g.Dial(t)
	_ = reset.(*net.TCPConn).SetLinger(0)
	_ = reset.Close()
	c := dial(t, g, p) // those before it have been accepted
	get(t, c, bufio.NewReader(c), "/")
	_ = g.Stop()
	if n := e.HandshakesFailed(); n != 4 {
		t.Errorf("%d failed handshakes, want 4", n)
	}
	if strings.Count(g.Log(), `"message":"exchange"`) != 1 {
		t.Errorf("want one event: %s", g.Log())
	}
}

func TestTLS_Drain(t *testing.T) {
	p := newPair(t)
	act, open := gated()
	g, u := serve(t, p, Say(OK), act)
	idle := dial(t, g, p)
	idleReader := bufio.NewReader(idle)
	get(t, idle, idleReader, "/")
	busy := dial(t, g, p)
	_, _ = io.WriteString(busy, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	u.Wait(t, 2)
	stopped := make(chan error, 1)
	go func() { stopped <- g.Stop() }()
	if _, err := idleReader.ReadByte(); err != io.EOF { // a farewell, not a cut
		t.Errorf("the idle connection ended with %v, want its proper end", err)
	}
	close(open)
	r := bufio.NewReader(busy)
	if a := read(t, r, "GET"); a.status != 200 || !a.closes {
		t.Errorf("got %+v", a)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the busy connection ended with %v, want its proper end", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopped with %v", err)
	}
}

func TestTLS_DrainCutsAfterItsTime(t *testing.T) {
	p := newPair(t)
	cfg, u := secured(t, p, Hang)
	cfg.Routes[0].Timeout = 20 * time.Second
	cfg.Server.Drain.Timeout = 50 * time.Millisecond
	g := Start(t, cfg)
	g.Expect = server.ErrCut
	c := dial(t, g, p)
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\n\r\n")
	u.Wait(t, 1)
	if err := g.Stop(); !errors.Is(err, server.ErrCut) {
		t.Errorf("stopped with %v", err)
	}
	a := read(t, bufio.NewReader(c), "POST")
	if a.status != 503 || !strings.Contains(a.body, `"code":"draining"`) || a.header.Get("Gateway-Outcome") != "unknown" {
		t.Errorf("got %+v, want it told that the gateway stops and the outcome is unknown", a)
	}
}

// TestTLS_ASlowReaderKeepsNoPermit: a caller who stops reading is cut off by the
// write timeout, through TLS too.
func TestTLS_ASlowReaderKeepsNoPermit(t *testing.T) {
	p := newPair(t)
	cfg, u := secured(t, p, Say("HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n"+strings.Repeat("x", 30_000_000)))
	cfg.Routes[0].Timeout = 300 * time.Millisecond
	g := Start(t, cfg)
	c := dial(t, g, p)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	u.Wait(t, 1)
	eventually(t, "the permit is back", func() bool { return g.Core.State().Upstreams[0].InFlight == 0 && g.Core.InFlight() == 0 })
}

func TestTLS_IdleConnectionsEnd(t *testing.T) {
	p := newPair(t)
	cfg, _ := secured(t, p, Say(OK))
	cfg.Server.Timeouts.Idle = 100 * time.Millisecond
	g := Start(t, cfg)
	c := dial(t, g, p)
	r := bufio.NewReader(c)
	get(t, c, r, "/")
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("it ended with %v, want its proper end", err)
	}
}

// TestTLS_UnixSocketsStayPlain: whoever may open the file is on this machine.
func TestTLS_UnixSocketsStayPlain(t *testing.T) {
	p := newPair(t)
	cfg, u := secured(t, p, Say(OK))
	path := filepath.Join(t.TempDir(), "s")
	cfg.Server.Listen = append(cfg.Server.Listen, "unix:"+path)
	Start(t, cfg)
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if a := get(t, c, bufio.NewReader(c), "/"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	if head := u.Seen()[0].Head; !strings.Contains(head, "X-Forwarded-Proto: http\r\n") {
		t.Errorf("the backend saw %q", head)
	}
}

// TestTLS_NewCertificate has both files replaced while connections are open.
func TestTLS_NewCertificate(t *testing.T) {
	old := newPair(t)
	g, _ := serve(t, old, Say(OK))
	before := dial(t, g, old)
	r := bufio.NewReader(before)
	get(t, before, r, "/")
	next := writePair(t, old.files, "second")
	eventually(t, "the new certificate", func() bool {
		c := tls.Client(g.Dial(t), &tls.Config{RootCAs: next.roots, ServerName: "second"})
		defer func() { _ = c.Close() }()
		return c.Handshake() == nil
	})
	if a := get(t, before, r, "/"); a.status != 200 {
		t.Errorf("on the connection from before: %+v", a)
	}
	_ = g.Stop()
	if strings.Count(g.Log(), "the certificate has changed") != 1 {
		t.Errorf("want one line: %s", g.Log())
	}
}

func TestTLS_APairThatDoesNotMatchKeepsTheOld(t *testing.T) {
	old := newPair(t)
	g, _ := serve(t, old, Say(OK))
	cert, _, _ := makePair(t, "second")
	replace(t, old.files.Cert, cert)
	eventually(t, "it is said", func() bool { return strings.Contains(g.Log(), "the old one is kept") })
	c := dial(t, g, old)
	if a := get(t, c, bufio.NewReader(c), "/"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

func TestTLS_ABadPairIsNoStart(t *testing.T) {
	good, other := newPair(t), newPair(t)
	for name, files := range map[string]config.TLS{
		"no file":      {Cert: good.files.Cert, Key: filepath.Join(t.TempDir(), "none")},
		"not a match":  {Cert: good.files.Cert, Key: other.files.Key},
		"exchanged":    {Cert: good.files.Key, Key: good.files.Cert},
		"a folder":     {Cert: t.TempDir(), Key: good.files.Key},
		"only a key":   {Key: good.files.Key},
		"never-ending": {Cert: "/dev/zero", Key: good.files.Key},
	} {
		cfg := Config("http://127.0.0.1:9")
		cfg.Server.TLS = files
		log := telemetry.NewLog(cfg.Log, io.Discard)
		core, err := gateway.New(cfg, log, telemetry.NewMetrics(), mathrand.Uint64)
		if err != nil {
			t.Fatal(err)
		}
		_, err = server.New(core, cfg.Server, log.Logger())
		if err == nil || !strings.HasPrefix(err.Error(), "server.tls") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line about server.tls", name, err)
		}
		if check := server.CheckServerTLS(files); check == nil || check.Error() != err.Error() {
			t.Errorf("%s: checked, it is %v", name, check)
		}
	}
	if err := server.CheckServerTLS(good.files); err != nil {
		t.Errorf("a good pair: %v", err)
	}
	if err := server.CheckServerTLS(config.TLS{}); err != nil {
		t.Errorf("none: %v", err)
	}
}
