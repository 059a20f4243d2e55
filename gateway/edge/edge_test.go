package edge

import (
	"bufio"
	"net/netip"
	"net/url"
	pathpkg "path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		uri, path string
		ok        bool
	}{
		{"/", "/", true},
		{"/a/b?x=1", "/a/b", true},
		{"/a%2Fb/../c?", "/a%2Fb/../c", true},
		{"//evil/x", "//evil/x", true},
		{"", "", false},
		{"*", "", false},
		{"http://other/x", "", false},
		{"other:443", "", false},
		{"/a#b", "", false},
		{"/a?x#b", "", false},
	} {
		path, ok := Target([]byte(c.uri))
		if ok != c.ok || string(path) != c.path {
			t.Errorf("Target(%q) = %q, %v; want %q, %v", c.uri, path, ok, c.path, c.ok)
		}
	}
}

func TestHostOK(t *testing.T) {
	for host, want := range map[string]bool{
		"pay.test": true, "pay.test:8080": true, "pay.test:": true, "a_b-c~d.": true, "192.0.2.7": true, "[::1]:80": true, "[::1]": true,
		"": false, ":80": false, "[]": false, "[::1": false, "[::1]x": false, "::1": false, "a:b": false, "a:1:2": false,
		"user:secret@pay.test": false, "user@pay.test": false, "a b": false, "a,b": false, "a/b": false, "a%2eb": false, "\"": false,
		"a\x00": false, "caf\u00e9.test": false, "a?b": false, "a#b": false, "a\\b": false,
	} {
		if got := HostOK([]byte(host)); got != want {
			t.Errorf("HostOK(%q) = %v, want %v", host, got, want)
		}
	}
}

func TestTrust(t *testing.T) {
	p := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	for peer, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "11.0.0.1": false, "2001:db8::7": true, "::1": false,
	} {
		if got := p.Trust(netip.MustParseAddr(peer)); got != want {
			t.Errorf("Trust(%s) = %v, want %v", peer, got, want)
		}
	}
	if p.Trust(netip.Addr{}) || Proxies(nil).Trust(netip.MustParseAddr("10.1.2.3")) {
		t.Error("a peer without address, or any peer of a gateway without trusted networks, must not be believed")
	}
}

// request reads one from its bytes, as an engine does.
func request(t *testing.T, head string) *fasthttp.Request {
	t.Helper()
	var r fasthttp.Request
	if err := r.Read(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n")))); err != nil {
		t.Fatal(err)
	}
	return &r
}

// sent is what goes out of a request, one line each.
func sent(t *testing.T, r *fasthttp.Request) string {
	t.Helper()
	var b strings.Builder
	w := bufio.NewWriter(&b)
	r.SetRequestURIBytes(r.Header.RequestURI())
	if err := r.Write(w); err != nil {
		t.Fatal(err)
	}
	_ = w.Flush()
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

func TestStripRequest(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"nothing to strip": {
			"GET /a?b=%20 HTTP/1.1\nHost: h\nAccept: */*\n\n",
			"GET /a?b=%20 HTTP/1.1\nHost: h\nAccept: */*\n\n",
		},
		"hop by hop": {
			"GET / HTTP/1.1\nHost: h\nKeep-Alive: 5\nTE: trailers\nProxy-Connection: x\nProxy-Authorization: y\nUpgrade: websocket\nConnection: upgrade\nX-A: 1\n\n",
			"GET / HTTP/1.1\nHost: h\nX-A: 1\n\n",
		},
		"listed in Connection": {
			"GET / HTTP/1.1\nHost: h\nX-Hop: 1\nX-A: 2\nConnection: x-hop , close\nConnection: x-other\nX-Other: 3\n\n",
			"GET / HTTP/1.1\nHost: h\nX-A: 2\n\n",
		},
		"Connection cannot take end-to-end fields": {
			"GET / HTTP/1.1\nHost: h\nIdempotency-Key: k\nAuthorization: a\nConnection: idempotency-key, authorization, host\n\n",
			"GET / HTTP/1.1\nHost: h\nIdempotency-Key: k\nAuthorization: a\n\n",
		},
		"HTTP/1.0 and its keep-alive": {
			"GET / HTTP/1.0\nHost: h\nConnection: keep-alive\n\n",
			"GET / HTTP/1.1\nHost: h\n\n",
		},
		"expectation": {
			"POST / HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 2\n\nab",
			"POST / HTTP/1.1\nHost: h\nContent-Length: 2\n\nab",
		},
		"chunked with trailers": {
			"POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nTrailer: X-Sum\n\n2\nab\n0\nX-Sum: 9\n\n",
			"POST / HTTP/1.1\nHost: h\nContent-Length: 2\n\nab",
		},
		"trailers that were not announced": {
			"POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n2\nab\n0\nX-Role: admin\n\n",
			"POST / HTTP/1.1\nHost: h\nContent-Length: 2\n\nab",
		},
		"no content type is invented": {
			"POST / HTTP/1.1\nHost: h\nContent-Length: 2\n\nab",
			"POST / HTTP/1.1\nHost: h\nContent-Length: 2\n\nab",
		},
		"doubled fields and cookies stay as they are": {
			"GET / HTTP/1.1\nHost: h\nX-A: 1\nCookie: a=1\nX-A: 2\nCookie: b=2\n\n",
			"GET / HTTP/1.1\nHost: h\nX-A: 1\nCookie: a=1\nX-A: 2\nCookie: b=2\n\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, c.in)
			seen := ReadHead(r.Header.RawHeaders()).Seen
			if r.MayContinue() {
				if err := r.ContinueReadBody(bufio.NewReader(strings.NewReader("ab")), 10); err != nil {
					t.Fatal(err)
				}
			}
			StripRequest(&r.Header, seen)
			if got := sent(t, r); got != c.out {
				t.Errorf("sent\n%s\nwant\n%s", got, c.out)
			}
		})
	}
}

func TestStripResponse(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"hop by hop": {
			"HTTP/1.1 200 OK\nServer: s\nDate: Mon, 30 Nov 2026 14:00:00 GMT\nConnection: close, X-Hop\nX-Hop: 1\nKeep-Alive: 5\nContent-Length: 2\n\nab",
			"HTTP/1.1 200 OK\nServer: s\nContent-Length: 2\n",
		},
		"cookies and doubled fields": {
			"HTTP/1.1 200 Fine\nSet-Cookie: a=1\nSet-Cookie: a=2\nVia: x\nVia: y\nContent-Length: 0\n\n",
			"HTTP/1.1 200 Fine\nContent-Length: 0\nVia: x\nVia: y\nSet-Cookie: a=1\nSet-Cookie: a=2\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r fasthttp.Response
			if err := r.Header.Read(bufio.NewReader(strings.NewReader(strings.ReplaceAll(c.in, "\n", "\r\n")))); err != nil {
				t.Fatal(err)
			}
			StripResponse(&r.Header, FieldsAll)
			got := strings.ReplaceAll(r.Header.String(), "\r\n", "\n")
			got = regexp.MustCompile(`(?m)^Date: .*\n`).ReplaceAllString(got, "")
			if got = strings.TrimSuffix(got, "\n"); got != c.out {
				t.Errorf("got\n%s\nwant\n%s", got, c.out)
			}
		})
	}
}

func TestForward(t *testing.T) {
	for name, c := range map[string]struct {
		in      string
		trusted bool
		out     []string
	}{
		"nothing there": {"GET / HTTP/1.1\nHost: pay.test\n\n", false,
			[]string{"X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http", "X-Forwarded-Host: pay.test"}},
		"spoofed": {"GET / HTTP/1.1\nHost: pay.test\nX-Forwarded-For: 1.1.1.1\nx-forwarded-for: 2.2.2.2\nX-Forwarded-Proto: https\nX-Forwarded-Host: evil\nForwarded: for=9.9.9.9\nX-Real-IP: 9.9.9.9\nX-Forwarded-Port: 1\n\n", false,
			[]string{"X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http", "X-Forwarded-Host: pay.test"}},
		"from a trusted peer": {"GET / HTTP/1.1\nHost: in.test\nX-Forwarded-For: 1.1.1.1\nX-Forwarded-For: 2.2.2.2\nX-Forwarded-Proto: https\nX-Forwarded-Host: pay.test\n\n", true,
			[]string{"X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: pay.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, c.in)
			var caller Caller
			caller.Set(netip.MustParseAddr("::ffff:192.0.2.7"), false)
			seen := ReadHead(r.Header.RawHeaders()).Seen
			Forward(&r.Header, &caller, seen, c.trusted, nil)
			got := sent(t, r)
			for _, line := range c.out {
				if strings.Count(got, "\n"+line+"\n") != 1 {
					t.Errorf("%q is not there once in\n%s", line, got)
				}
			}
			if strings.Contains(got, "9.9.9.9") {
				t.Errorf("a spoofed field is left in\n%s", got)
			}
			if strings.Count(got, "X-Forwarded-") != 3 {
				t.Errorf("want one line of each of the three, got\n%s", got)
			}
		})
	}
}

func TestReadHead_SeesEveryGroup(t *testing.T) {
	for _, n := range names {
		value := "x"
		if n.group == FieldCoding {
			value = "chunked"
		}
		for _, raw := range []string{n.text + ":" + value + "\r\n\r\n", "A: b\r\n" + strings.ToUpper(n.text) + ": \t" + value + " \r\nC: d\r\n\r\n"} {
			if h := ReadHead([]byte(raw)); h.Seen != n.group || h.Doubtful {
				t.Errorf("ReadHead(%q) = %+v, want the group %b", raw, h, n.group)
			}
		}
	}
	if h := ReadHead([]byte("Host: h\r\nAccept: x\r\nX-Forwarded-Forx: y\r\nTea: z\r\n\r\n")); h != (Head{Lines: 4}) {
		t.Errorf("found %+v, want nothing in 4 lines", h)
	}
	if h := ReadHead(nil); h.Seen != FieldsAll {
		t.Errorf("without a raw section anything may be there, got %+v", h)
	}
}

func TestReadHead_Doubtful(t *testing.T) {
	for name, raw := range map[string]string{
		"bare LF":                  "Host: h\n\r\n",
		"bare LF at the end":       "Host: h\r\n\n",
		"folded":                   "Host: h\r\nX-A: 1\r\n 2\r\n\r\n",
		"folded with a tab":        "Host: h\r\nX-A: 1\r\n\t2\r\n\r\n",
		"fold in the first line":   " Host: h\r\n\r\n",
		"folded coding":            "Host: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
		"space before the colon":   "Host: h\r\nX-A : 1\r\n\r\n",
		"space in a name":          "Host: h\r\nX A: 1\r\n\r\n",
		"no name":                  "Host: h\r\n: 1\r\n\r\n",
		"no colon":                 "Host: h\r\nX-A\r\n\r\n",
		"both lengths":             "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"both lengths, other case": "transfer-encoding: chunked\r\nCONTENT-LENGTH: 1\r\n\r\n",
		"identity":                 "Transfer-Encoding: identity\r\n\r\n",
		"two codings":              "Transfer-Encoding: gzip, chunked\r\n\r\n",
		"the coding twice":         "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"the length twice":         "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"the type twice":           "Content-Type: a\r\ncontent-type: b\r\n\r\n",
		"the agent twice":          "User-Agent: a\r\nUser-Agent: b\r\n\r\n",
		"more behind the end":      "Host: h\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"no end of line":           "Host: h",
	} {
		if h := ReadHead([]byte(raw)); !h.Doubtful {
			t.Errorf("%s: ReadHead(%q) = %+v, want it in doubt", name, raw, h)
		}
	}
}

func TestPathCanonical(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/": true, "/a/b.c/d-e_f~g": true, "/a%20b/%C3%A9": true, "/...": true, "/a/..b": true, "/.well-known/x": true,
		"/a%7Eb": true, "/a;x=1,2/b:c@d!$&'()*+=": true,
		"//": false, "/a//b": false, "/a//": false, "/.": false, "/..": false, "/a/.": false, "/a/../b": false, "/a/./": false,
		"/a%2Fb": false, "/a%2fb": false, "/a%5Cb": false, "/a\\b": false, "/a%00": false, "/a%0d%0a": false, "/a%7f": false,
		"/%2e%2e/a": false, "/a/%2E": false, "/ch%61rges": false, "/a%2Db": false, "/a%5fb": false, "/a%31": false,
		"/a%": false, "/a%2": false, "/a%zz": false, "/a b": false, "/a\tb": false, "/caf\u00e9": false,
	} {
		if got := PathCanonical([]byte(path)); got != want {
			t.Errorf("PathCanonical(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestOriginForm(t *testing.T) {
	for _, c := range []struct{ uri, host, want string }{
		{"http://pay.test/a?b", "pay.test", "/a?b"},
		{"HTTPS://PAY.test:8080/", "pay.test:8080", "/"},
		{"http://pay.test.evil/a", "pay.test", ""},
		{"http://evil/pay.test/a", "pay.test", ""},
		{"http://u:p@pay.test/a", "pay.test", ""},
		{"http://pay.test", "pay.test", ""},
		{"ftp://pay.test/a", "pay.test", ""},
		{"pay.test:443", "pay.test:443", ""},
		{"*", "pay.test", ""},
	} {
		if got := string(OriginForm([]byte(c.uri), []byte(c.host))); got != c.want {
			t.Errorf("OriginForm(%q, %q) = %q, want %q", c.uri, c.host, got, c.want)
		}
	}
}

func TestAppendRequestID_IsAVersion7UUID(t *testing.T) {
	now := time.UnixMilli(0x0123456789ab)
	got := string(AppendRequestID([]byte("x"), now, func() uint64 { return 0xffffffffffffffff }))
	if want := "x01234567-89ab-7fff-bfff-ffffffffffff"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRequestIDOK(t *testing.T) {
	for id, want := range map[string]bool{
		"a-B_9.:/+=~": true, "": false, "a b": false, "a\"b": false, "a\nb": false, "é": false,
		strings.Repeat("a", 128): true, strings.Repeat("a", 129): false,
	} {
		if got := RequestIDOK([]byte(id)); got != want {
			t.Errorf("RequestIDOK(%q) = %v, want %v", id, got, want)
		}
	}
}

func FuzzStripRequest(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: h\r\nConnection: x-hop, host, ,\r\nX-Hop: 1\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: Foo\r\n\r\n0\r\nFoo: bar\r\n\r\n"))
	f.Fuzz(func(t *testing.T, head []byte) {
		var r fasthttp.Request
		if r.Read(bufio.NewReader(strings.NewReader(string(head)))) != nil {
			return
		}
		seen := ReadHead(r.Header.RawHeaders())
		if seen.Doubtful {
			return // it is not forwarded
		}
		StripRequest(&r.Header, seen.Seen)
		for _, name := range []string{"Connection", "Keep-Alive", "Te", "Upgrade", "Proxy-Authorization", "Expect", "Trailer"} {
			if v := r.Header.Peek(name); len(v) > 0 {
				t.Fatalf("%s: %q is still there", name, v)
			}
		}
	})
}

// FuzzPathCanonical holds a canonical path against what a backend may do to it.
func FuzzPathCanonical(f *testing.F) {
	for _, seed := range []string{"/a/b", "/%2e", "/a/../b", "//", "/%C3%A9", "/a%2Fb"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, path []byte) {
		if len(path) == 0 || path[0] != '/' || !PathCanonical(path) {
			return
		}
		decoded, err := url.PathUnescape(string(path))
		if err != nil {
			t.Fatalf("%q is canonical and cannot be decoded: %v", path, err)
		}
		cleaned := pathpkg.Clean(decoded)
		if strings.HasSuffix(decoded, "/") && cleaned != "/" {
			cleaned += "/"
		}
		if cleaned != decoded || strings.Count(decoded, "/") != strings.Count(string(path), "/") {
			t.Fatalf("%q is canonical and a backend may take it for %q", path, cleaned)
		}
	})
}

func BenchmarkReadHead(b *testing.B) {
	raw := []byte("Host: 127.0.0.1:21001\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: 512\r\nIdempotency-Key: 123\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		ReadHead(raw)
	}
}
