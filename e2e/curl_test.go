package e2e

import (
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// curled is what curl received.
type curled struct {
	interim []int // 1xx answers before the final one
	proto   string
	status  int
	header  http.Header
	body    string
}

// curl runs curl once. It fails the test when curl itself reports an error: a
// cut body, a malformed answer, a time-out.
func curl(t *testing.T, args ...string) curled {
	t.Helper()
	dir := t.TempDir()
	head, body := filepath.Join(dir, "head"), filepath.Join(dir, "body")
	writeFile(t, body, "") // curl makes none when the body is empty
	all := append([]string{"-q", "-sS", "--max-time", "15", "-D", head, "-o", body}, args...)
	output(t, installed(t, "curl", "apt-get install curl"), all...)
	got := parseHeads(t, readFile(t, head))
	if !slices.Contains(args, "-I") { // which makes curl write the head there
		got.body = readFile(t, body)
	}
	return got
}

// parseHeads reads the heads that curl wrote, one after another.
func parseHeads(t *testing.T, text string) curled {
	t.Helper()
	var got curled
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n\r\n"), "\r\n\r\n") {
		rows := strings.Split(block, "\r\n")
		status := strings.SplitN(rows[0], " ", 3)
		if len(status) < 2 {
			t.Fatalf("status line %q", rows[0])
		}
		if got.status != 0 {
			got.interim = append(got.interim, got.status)
		}
		var err error
		if got.status, err = strconv.Atoi(status[1]); err != nil {
			t.Fatalf("status line %q", rows[0])
		}
		got.proto, got.header = status[0], http.Header{}
		for _, row := range rows[1:] {
			name, value, _ := strings.Cut(row, ":")
			got.header.Add(name, textproto.TrimString(value))
		}
	}
	return got
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// echo answers with the request line and the body that arrived.
func echo(_ int, r wireRequest) string {
	body := r.line + "\n" + string(r.body)
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", len(body))
	if r.method() == "HEAD" {
		return head
	}
	return head + body
}

func TestCurl_EveryMethodArrives(t *testing.T) {
	s := startStub(t, echo)
	g := startGateway(t, oneUpstream(s.url()))
	for i, tc := range []struct {
		method string
		args   []string
		body   string
	}{
		{"GET", nil, ""},
		{"HEAD", []string{"-I"}, ""},
		{"OPTIONS", []string{"-X", "OPTIONS"}, ""},
		{"DELETE", []string{"-X", "DELETE"}, ""},
		{"POST", []string{"--data-binary", "amount=5"}, "amount=5"},
		{"POST", []string{"--data-binary", ""}, ""},
		{"POST", []string{"--data-binary", "amount=5", "-H", "Transfer-Encoding: chunked"}, "amount=5"},
		{"PUT", []string{"-X", "PUT", "--data-binary", "{}"}, "{}"},
		{"PATCH", []string{"-X", "PATCH", "--data-binary", "{}", "-H", "Transfer-Encoding: chunked"}, "{}"},
		{"DELETE", []string{"-X", "DELETE", "--data-binary", "why"}, "why"},
	} {
		t.Run(fmt.Sprint(i, tc.method), func(t *testing.T) {
			before := len(s.requests())
			got := curl(t, append(tc.args, g.url("/v1/things/7"))...)
			if got.status != 200 {
				t.Errorf("status %d, want 200; %s", got.status, got.body)
			}
			want := tc.method + " /v1/things/7 HTTP/1.1\n" + tc.body
			if tc.method == "HEAD" {
				want = ""
				if length := got.header.Get("Content-Length"); length != "27" {
					t.Errorf("Content-Length of HEAD is %q, want the backend's 27", length)
				}
			}
			if got.body != want {
				t.Errorf("body %q, want %q", got.body, want)
			}
			if arrived := len(s.requests()) - before; arrived != 1 {
				t.Errorf("the backend got %d requests, want 1", arrived)
			}
		})
	}
}

func TestCurl_BodiesUpToTheLimit(t *testing.T) {
	s := startStub(t, func(_ int, r wireRequest) string { return jsonAnswer(200, "", fmt.Sprint(len(r.body))) })
	g := startGateway(t, oneUpstream(s.url())) // max_body: 1MiB
	const limit = 1 << 20
	for _, framing := range []string{"Content-Length", "chunked"} {
		for _, size := range []int{1, limit - 1, limit, limit + 1, 4 * limit} {
			t.Run(fmt.Sprint(framing, size), func(t *testing.T) {
				before := len(s.requests())
				content := string(binaryBytes(size))
				args := []string{"--data-binary", "@" + writeFile(t, filepath.Join(t.TempDir(), "body"), content), "-H", "Expect:"}
				if framing == "chunked" {
					args = append(args, "-H", "Transfer-Encoding: chunked")
				}
				got := curl(t, append(args, g.url("/upload"))...)
				arrived := s.requests()[before:]
				if size > limit {
					wantProblem(t, got.status, got.header, got.body, http.StatusRequestEntityTooLarge)
					if len(arrived) != 0 {
						t.Errorf("the backend got %d requests", len(arrived))
					}
					return
				}
				if got.status != 200 || len(arrived) != 1 || string(arrived[0].body) != content {
					t.Errorf("status %d, body %q, %d requests arrived: want the body, once", got.status, got.body, len(arrived))
				}
			})
		}
	}
}

func TestCurl_ExpectContinue(t *testing.T) {
	s := startStub(t, func(_ int, r wireRequest) string { return jsonAnswer(200, "", fmt.Sprint(len(r.body))) })
	g := startGateway(t, oneUpstream(s.url()))
	file := func(size int) string {
		return "@" + writeFile(t, filepath.Join(t.TempDir(), "body"), string(binaryBytes(size)))
	}
	got := curl(t, "-H", "Expect: 100-continue", "--expect100-timeout", "10", "--data-binary", file(100_000), g.url("/upload"))
	if got.status != 200 || got.body != "100000" || !slices.Equal(got.interim, []int{100}) {
		t.Errorf("status %d, body %q, interim %v: want 200, 100000, [100]", got.status, got.body, got.interim)
	}
	// A body that will be refused is not asked for.
	got = curl(t, "-H", "Expect: 100-continue", "--expect100-timeout", "10", "--data-binary", file(2<<20), g.url("/upload"))
	wantProblem(t, got.status, got.header, got.body, http.StatusRequestEntityTooLarge)
	if len(got.interim) != 0 {
		t.Errorf("interim answers %v before the 413, want none", got.interim)
	}
	if arrived := len(s.requests()); arrived != 1 {
		t.Errorf("the backend got %d requests, want 1", arrived)
	}
}

func TestCurl_NothingIsAddedOrChanged(t *testing.T) {
	s := startStub(t, echo)
	g := startGateway(t, oneUpstream(s.url()))
	for _, target := range []string{
		"/v1/charges?a=1&b=%20x+y&c=%2F%2f&d=;&e&=f&a=2&%00=%zz",
		"/v1/charges?",
		"/v1/charges/?limit=3",
		"/v1/a%20b/~c-d_e.f",
	} {
		got := curl(t, "--path-as-is", "--globoff", g.url(target))
		if want := "GET " + target + " HTTP/1.1\n"; got.status != 200 || got.body != want {
			t.Errorf("%s: status %d, arrived as %q", target, got.status, got.body)
		}
	}

	curl(t, "-H", "User-Agent:", "-H", "Accept:", "-H", "Content-Type:", "-H", "X-Empty;",
		"-H", "X-Twice: one", "-H", "X-Twice: two", "-H", "Cookie: a=1; b=2", "--data-binary", "x", g.url("/bare"))
	all := s.requests()
	last := all[len(all)-1]
	for _, name := range []string{"User-Agent", "Accept", "Accept-Encoding", "Content-Type"} {
		if values := last.values(name); len(values) != 0 {
			t.Errorf("the caller sent no %s, the backend got %q", name, values)
		}
	}
	if values := last.values("X-Twice"); !slices.Equal(values, []string{"one", "two"}) {
		t.Errorf("X-Twice arrived as %q", values)
	}
	if values := last.values("X-Empty"); !slices.Equal(values, []string{""}) {
		t.Errorf("X-Empty arrived as %q", values)
	}
	if value := last.value("Cookie"); value != "a=1; b=2" {
		t.Errorf("Cookie arrived as %q", value)
	}
	if value := last.value("Host"); value != g.addr {
		t.Errorf("Host arrived as %q, sent as %q", value, g.addr)
	}
}
