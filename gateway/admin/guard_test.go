package admin

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestToken_AllButHealthNeedsIt(t *testing.T) {
	cfg := Config{Listen: "127.0.0.1:0", TokenFile: tokenFile(t, " s3cret \n")}
	url := "http://" + serve(t, cfg, newGateway()).String()
	for _, e := range endpoints() {
		want := http.StatusUnauthorized
		if e.path == "/healthz" || e.path == "/readyz" {
			want = http.StatusOK
		}
		for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer s3cret2", "Bearer s3cre", "Basic s3cret", "s3cret"} {
			response, _ := ask(t, "GET", url+e.path, "Authorization", authorization)
			if response.StatusCode != want {
				t.Errorf("%s with %q: %d, want %d", e.path, authorization, response.StatusCode, want)
			}
			if want == http.StatusUnauthorized && !strings.HasPrefix(response.Header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%s: WWW-Authenticate %q, want Bearer", e.path, response.Header.Get("WWW-Authenticate"))
			}
		}
		for _, authorization := range []string{"Bearer s3cret", "bearer s3cret"} {
			if response, _ := ask(t, "GET", url+e.path, "Authorization", authorization); response.StatusCode != http.StatusOK {
				t.Errorf("%s with the token: %d, want 200", e.path, response.StatusCode)
			}
		}
	}
	for _, path := range []string{"/none", "/healthz/x"} {
		if response, _ := ask(t, "GET", url+path); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d, want 401", path, response.StatusCode)
		}
	}
	if response, _ := ask(t, "PUT", url+"/log?level=debug"); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a change without the token: %d, want 401", response.StatusCode)
	}
}

func TestToken_FileMustHoldOne(t *testing.T) {
	for content, fault := range map[string]string{
		"":                         "holds no token",
		" \n\t":                    "holds no token",
		"two words":                "without spaces",
		"two\nlines":               "without spaces",
		"nul\x00":                  "printable",
		"é":                        "printable",
		strings.Repeat("x", 5_000): "larger than",
	} {
		_, err := New(Config{Listen: "127.0.0.1:0", TokenFile: tokenFile(t, content)}, newGateway().sources())
		if err == nil || !strings.Contains(err.Error(), fault) || !strings.HasPrefix(err.Error(), "token_file: ") {
			t.Errorf("%.20q: %v, want token_file: ... %s", content, err, fault)
		}
	}
	_, err := New(Config{Listen: "127.0.0.1:0", TokenFile: "/does/not/exist"}, newGateway().sources())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestHost_OtherNamesAreRefusedOnLoopback(t *testing.T) {
	addr := serve(t, onLoopback, newGateway())
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:9901": 200, "localhost": 200, "LocalHost:1": 200, "127.9.9.9": 200,
		"[::1]": 200, "[::1]:9901": 200, "::1": 200,
		"evil.example": 403, "evil.example:9901": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"10.0.0.1": 403, "[::2]:9901": 403, "0.0.0.0": 403, "localhost@evil.example": 400,
	} {
		for _, path := range []string{"/state", "/healthz"} {
			conn, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			conn.Close()
			if err != nil || response.StatusCode != want {
				t.Errorf("%s with Host %q: %v, %v; want %d", path, host, response, err, want)
			}
		}
	}
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /healthz HTTP/1.0\r\n\r\n")
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != 200 {
		t.Errorf("a plain HTTP/1.0 check: %v, %v; want 200", response, err)
	}
}

func TestForeign_OtherSitesMayNotChangeOrProfile(t *testing.T) {
	g := newGateway()
	addr := serve(t, onLoopback, g).String()
	url := "http://" + addr
	for _, c := range []struct {
		method, path  string
		header, value string
		want          int
	}{
		{"PUT", "/log?level=debug", "Sec-Fetch-Site", "cross-site", 403},
		{"PUT", "/log?level=debug", "Sec-Fetch-Site", "same-site", 403},
		{"PUT", "/log?level=debug", "Origin", "http://evil.example", 403},
		{"PUT", "/log?level=debug", "Origin", "null", 403},
		{"PUT", "/log?level=debug", "Origin", "http://127.0.0.1:1", 403},
		{"GET", "/debug/pprof/heap", "Sec-Fetch-Site", "cross-site", 403},
		{"POST", "/debug/pprof/symbol", "Origin", "http://evil.example", 403},
		{"GET", "/state", "Sec-Fetch-Site", "cross-site", 200}, // a link from a dashboard; other sites cannot read it
		{"PUT", "/log?level=info", "Sec-Fetch-Site", "same-origin", 200},
		{"PUT", "/log?level=info", "Sec-Fetch-Site", "none", 200},
		{"PUT", "/log?level=info", "Origin", "http://" + addr, 200},
		{"GET", "/debug/pprof/heap", "Sec-Fetch-Site", "same-origin", 200},
		{"POST", "/debug/pprof/symbol", "User-Agent", "go tool pprof", 200},
	} {
		response, _ := ask(t, c.method, url+c.path, c.header, c.value)
		if response.StatusCode != c.want {
			t.Errorf("%s %s with %s %s: %d, want %d", c.method, c.path, c.header, c.value, response.StatusCode, c.want)
		}
		if level := g.level.Load(); level != "info" {
			t.Fatalf("%s %s: the level became %v", c.method, c.path, level)
		}
	}
}

func TestConfig_ValidateSaysWhenATokenIsNeeded(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	for _, c := range []struct{ listen, token, field string }{
		{"off", "", ""},
		{"127.0.0.1:0", "", ""},
		{"127.1.2.3:9901", "", ""},
		{"localhost:9901", "", ""},
		{"[::1]:9901", "", ""},
		{"[::ffff:127.0.0.1]:9901", "", ""},
		{"unix:/run/sluice-admin.sock", "", ""},
		{":9901", "", "token_file"},
		{"0.0.0.0:9901", "", "token_file"},
		{"[::]:9901", "", "token_file"},
		{"10.0.0.1:9901", "", "token_file"},
		{"admin.internal:9901", "", "token_file"},
		{":9901", "/run/token", ""},
		{"", "", "listen"},
		{"9901", "", "listen"},
		{"127.0.0.1", "", "listen"},
		{"127.0.0.1:", "", "listen"},
		{"127.0.0.1:65536", "", "listen"},
		{"127.0.0.1:http", "", "listen"},
		{"unix:", "", "listen"},
		{"unix:relative.sock", "", "listen"},
		{"unix:/" + strings.Repeat("x", 107), "", "listen"},
		{"OFF", "", "listen"},
	} {
		err := Config{Listen: c.listen, TokenFile: c.token}.Validate()
		var f *Fault
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &f) || f.Field != c.field) {
			t.Errorf("listen %q, token_file %q: %v, want a fault in %q", c.listen, c.token, err, c.field)
		}
	}
}
