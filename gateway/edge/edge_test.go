package edge

import (
	"bufio"
	"net/netip"
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

func TestHostOK_NoCredentials(t *testing.T) {
	for host, want := range map[string]bool{"pay.test": true, "[::1]:80": true, "user:secret@pay.test": false, "": false} {
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
			seen, _ := Find(r.Header.RawHeaders())
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
			StripResponse(&r.Header)
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
		"spoofed": {"GET / HTTP/1.1\nHost: pay.test\nX-Forwarded-For: 1.1.1.1\nx-forwarded-for: 2.2.2.2\nX-Forwarded-Proto: https\nX-Forwarded-Host: evil\n\n", false,
			[]string{"X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http", "X-Forwarded-Host: pay.test"}},
		"from a trusted peer": {"GET / HTTP/1.1\nHost: in.test\nX-Forwarded-For: 1.1.1.1\nX-Forwarded-For: 2.2.2.2\nX-Forwarded-Proto: https\nX-Forwarded-Host: pay.test\n\n", true,
			[]string{"X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: pay.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, c.in)
			var caller Caller
			caller.Set(netip.MustParseAddr("::ffff:192.0.2.7"), false)
			seen, _ := Find(r.Header.RawHeaders())
			Forward(&r.Header, &caller, seen, c.trusted, nil)
			got := sent(t, r)
			for _, line := range c.out {
				if strings.Count(got, "\n"+line+"\n") != 1 {
					t.Errorf("%q is not there once in\n%s", line, got)
				}
			}
			if strings.Count(got, "X-Forwarded-") != 3 {
				t.Errorf("want one line of each of the three, got\n%s", got)
			}
		})
	}
}

func TestFind_SeesEveryGroup(t *testing.T) {
	for _, n := range names {
		for _, line := range []string{n.text + ": x\r\n", strings.ToUpper(n.text) + ":x\r\n", "A: b\r\n" + n.text + " : x\r\nC: d\r\n"} {
			if seen, _ := Find([]byte(line)); seen != n.group {
				t.Errorf("Find(%q) = %b, want %b", line, seen, n.group)
			}
		}
	}
	if seen, lines := Find([]byte("Host: h\r\nAccept: x\r\nX-Forwarded-Forx: y\r\nTea: z\r\n")); seen != 0 || lines != 4 {
		t.Errorf("found %b in %d lines, want nothing in 4", seen, lines)
	}
	if seen, _ := Find(nil); seen != FieldsAll {
		t.Errorf("without a raw section anything may be there, got %b", seen)
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
		seen, _ := Find(r.Header.RawHeaders())
		StripRequest(&r.Header, seen)
		for _, name := range []string{"Connection", "Keep-Alive", "Te", "Upgrade", "Proxy-Authorization", "Expect", "Trailer"} {
			if v := r.Header.Peek(name); len(v) > 0 {
				t.Fatalf("%s: %q is still there", name, v)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	raw := []byte("Host: 127.0.0.1:21001\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: 512\r\nIdempotency-Key: 123\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		Find(raw)
	}
}
