package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // a bytes.Buffer takes everything
	_ = w.Close()
	return b.String()
}

func chunked(pieces ...string) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, p := range pieces {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	b.WriteString("0\r\n\r\n")
	return b.String()
}

// answerCase is one kind of answer that a backend may give.
type answerCase struct {
	name   string
	answer string   // in raw bytes
	args   []string // curl's
	status int
	header http.Header // exact values; nil: absent
	body   string
}

const okHead = "HTTP/1.1 200 OK\r\nServer: till/3\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\n"

var (
	large  = string(binaryBytes(8 << 20))
	packed = gzipped(strings.Repeat("payment ", 1000))
)

var answerCases = []answerCase{
	{
		name: "plain", answer: okHead + "Content-Length: 2\r\n\r\nhi", status: 200, body: "hi",
		header: http.Header{"Server": {"till/3"}, "Date": {"Mon, 02 Jan 2006 15:04:05 GMT"}, "Content-Type": nil, "Content-Length": {"2"}},
	},
	{
		name: "no content", answer: "HTTP/1.1 204 No Content\r\nX-Id: 1\r\n\r\n", status: 204,
		header: http.Header{"X-Id": {"1"}, "Content-Length": nil, "Transfer-Encoding": nil, "Content-Type": nil},
	},
	{
		name: "not modified", answer: "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n", args: []string{"-H", `If-None-Match: "v1"`}, status: 304,
		header: http.Header{"Etag": {`"v1"`}, "Transfer-Encoding": nil},
	},
	{
		name: "head", answer: okHead + "Content-Length: 12345\r\n\r\n", args: []string{"-I"}, status: 200,
		header: http.Header{"Content-Length": {"12345"}, "Transfer-Encoding": nil},
	},
	{name: "chunked", answer: chunked("one ", "two ", "three"), status: 200, body: "one two three"},
	{name: "chunked, empty", answer: chunked(), status: 200},
	{
		name: "chunked for HTTP/1.0", answer: chunked("one ", "two"), args: []string{"-0"}, status: 200, body: "one two",
		header: http.Header{"Transfer-Encoding": nil},
	},
	{name: "until close", answer: okHead + "Connection: close\r\n\r\nno length" + closeAfter, status: 200, body: "no length"},
	{name: "large", answer: okHead + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large), status: 200, body: large},
	{
		name: "early hints", status: 200, body: "{}",
		answer: "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" + jsonAnswer(200, "", "{}"),
	},
	{
		name: "gzip asked for", args: []string{"-H", "Accept-Encoding: gzip"}, status: 200, body: packed,
		answer: okHead + fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed),
		header: http.Header{"Content-Encoding": {"gzip"}, "Content-Length": {fmt.Sprint(len(packed))}},
	},
	{
		name: "gzip not asked for", status: 200, body: packed,
		answer: okHead + fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed),
		header: http.Header{"Content-Encoding": {"gzip"}},
	},
	{
		name: "cookies", answer: jsonAnswer(200, "Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; HttpOnly\r\nSet-Cookie: a=3\r\n", "{}"), status: 200, body: "{}",
		header: http.Header{"Set-Cookie": {"a=1; Path=/", "b=2; HttpOnly", "a=3"}},
	},
	{
		name: "redirect", answer: "HTTP/1.1 302 Found\r\nLocation: http://elsewhere.invalid/x?y#z\r\nContent-Length: 0\r\n\r\n", status: 302,
		header: http.Header{"Location": {"http://elsewhere.invalid/x?y#z"}},
	},
	{
		name: "backend's own error", status: 503, body: `{"error":"mine"}`,
		answer: jsonAnswer(503, "Retry-After: 7\r\n", `{"error":"mine"}`),
		header: http.Header{"Retry-After": {"7"}, "Content-Type": {"application/json"}},
	},
}

func TestCurl_EveryAnswerComesBack(t *testing.T) {
	for _, tc := range answerCases {
		t.Run(tc.name, func(t *testing.T) {
			s := startStub(t, func(int, wireRequest) string { return tc.answer })
			g := startGateway(t, oneUpstream(s.url()))
			got := curl(t, append(tc.args, g.url("/"))...)
			if got.status != tc.status || got.body != tc.body {
				t.Errorf("status %d and %d bytes %.100q, want %d and %d bytes", got.status, len(got.body), got.body, tc.status, len(tc.body))
			}
			for name, want := range tc.header {
				if values := got.header.Values(name); !slices.Equal(values, want) {
					t.Errorf("%s is %q, want %q", name, values, want)
				}
			}
			if got.header.Get("X-Request-Id") == "" {
				t.Error("no X-Request-Id")
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("the backend got %d requests, want 1", n)
			}
		})
	}
}

func TestCurl_NoRoute(t *testing.T) {
	s := startStub(t, echo)
	g := startGateway(t, fmt.Sprintf(`
upstreams:
  - name: backend
    endpoints: [%q]
routes:
  - {name: charges, path: /v1/charges, methods: [POST, PUT], upstream: backend}
  - {name: charge, path: "/v1/charges/{id}", methods: [GET], upstream: backend}
  - {name: elsewhere, host: pay.example, path: "/{path:*}", upstream: backend}
`, s.url()))

	for _, path := range []string{"/", "/v1", "/v1/charges/ch_1/refunds", "/v1/charges/", "/V1/charges"} {
		got := curl(t, g.url(path))
		wantProblem(t, got.status, got.header, got.body, http.StatusNotFound)
	}
	got := curl(t, g.url("/v1/charges"))
	wantProblem(t, got.status, got.header, got.body, http.StatusMethodNotAllowed)
	if allow := got.header.Get("Allow"); allow != "POST, PUT" && allow != "PUT, POST" {
		t.Errorf("Allow %q, want POST and PUT", allow)
	}
	got = curl(t, "-X", "OPTIONS", g.url("/v1/charges/ch_1")) // not answered by the gateway on the backend's behalf
	wantProblem(t, got.status, got.header, got.body, http.StatusMethodNotAllowed)
	if n := len(s.requests()); n != 0 {
		t.Errorf("the backend got %d requests, want none", n)
	}

	if got := curl(t, g.url("/v1/charges/ch_1")); got.status != 200 {
		t.Errorf("GET of one charge: %d", got.status)
	}
	if got := curl(t, "-H", "Host: pay.example", g.url("/anything")); got.status != 200 {
		t.Errorf("by host: %d", got.status)
	}
}
