package edge

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/valyala/fasthttp"
)

const plainHead = "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 14:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 15\r\nSet-Cookie: a=1\r\nSet-Cookie: a=2\r\n\r\n"

func TestPeekResponse(t *testing.T) {
	for name, c := range map[string]struct {
		head     string
		doubtful bool
	}{
		"plain":                     {plainHead, false},
		"no fields":                 {"HTTP/1.1 204 No Content\r\n\r\n", false},
		"no reason":                 {"HTTP/1.1 200 \r\n\r\n", false},
		"not even its space":        {"HTTP/1.0 599\r\n\r\n", false},
		"reason of any bytes":       {"HTTP/1.1 200 d\xc3\xa9j\xe0\tvu\r\n\r\n", false},
		"chunked":                   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", false},
		"space before a colon":      {"HTTP/1.1 200 OK\r\nContent-Length \t: 1\r\n\r\n", false},
		"doubled type":              {"HTTP/1.1 200 OK\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n", false},
		"two lengths":               {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", true},
		"both lengths":              {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		"both, with a space":        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding : chunked\r\n\r\n", true},
		"another coding":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", true},
		"a coding in HTTP/1.0":      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		"folded":                    {"HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\n\r\n", true},
		"bare LF":                   {"HTTP/1.1 200 OK\r\nX-A: 1\nX-B: 2\r\n\r\n", true},
		"bare LF at the end":        {"HTTP/1.1 200 OK\r\nX-A: 1\r\n\n", true},
		"bare LF in the first line": {"HTTP/1.1 200 OK\nX-A: 1\r\n\r\n", true},
		"name with a space":         {"HTTP/1.1 200 OK\r\nX A: 1\r\n\r\n", true},
		"no name":                   {"HTTP/1.1 200 OK\r\n : 1\r\n\r\n", true},
		"no colon":                  {"HTTP/1.1 200 OK\r\nX-A\r\n\r\n", true},
		"empty line before":         {"\r\nHTTP/1.1 200 OK\r\n\r\n", true},
		"HTTP/2.0":                  {"HTTP/2.0 200 OK\r\n\r\n", true},
		"HTTP/1.2":                  {"HTTP/1.2 200 OK\r\n\r\n", true},
		"two spaces":                {"HTTP/1.1  200 OK\r\n\r\n", true},
		"two digits":                {"HTTP/1.1 20 OK\r\n\r\n", true},
		"four digits":               {"HTTP/1.1 2000 OK\r\n\r\n", true},
		"below 100":                 {"HTTP/1.1 099 No\r\n\r\n", true},
		"CR in the reason":          {"HTTP/1.1 200 OK\rX: y\r\n\r\n", true},
		"NUL in the reason":         {"HTTP/1.1 200 O\x00K\r\n\r\n", true},
		"another protocol":          {"SSH-2.0-OpenSSH_9.2\r\n\r\n", true},
	} {
		for how, from := range map[string]io.Reader{"whole": strings.NewReader(c.head + "body"), "byte by byte": iotest.OneByteReader(strings.NewReader(c.head + "body"))} {
			r := bufio.NewReader(from)
			h, err := PeekResponse(r)
			if err != nil || h.Doubtful != c.doubtful {
				t.Errorf("%s, %s: %+v, %v; want in doubt: %v", name, how, h, err, c.doubtful)
			}
			if all, _ := io.ReadAll(r); string(all) != c.head+"body" {
				t.Errorf("%s, %s: something was taken, %q is left", name, how, all)
			}
		}
	}
}

func TestPeekResponse_SeesFields(t *testing.T) {
	h, err := PeekResponse(bufio.NewReader(strings.NewReader(plainHead)))
	if want := FieldType | FieldLength; err != nil || h.Seen != want || h.Lines != 5 {
		t.Errorf("got %+v, %v; want the groups %b in 5 lines", h, err, want)
	}
}

func TestPeekResponse_EndsWithTheConnection(t *testing.T) {
	for head, want := range map[string]error{"": io.EOF, "HTTP/1.1 200 OK\r\nX-A": io.EOF, "HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("x", 100): bufio.ErrBufferFull} {
		if _, err := PeekResponse(bufio.NewReaderSize(strings.NewReader(head), 64)); !errors.Is(err, want) {
			t.Errorf("%.30q: %v, want %v", head, err, want)
		}
	}
}

func TestPeekResponse_DoesNotAllocate(t *testing.T) {
	from := strings.NewReader(plainHead)
	r := bufio.NewReader(from)
	if n := testing.AllocsPerRun(100, func() {
		from.Reset(plainHead)
		r.Reset(from)
		_, _ = PeekResponse(r)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzPeekResponse holds what the library reads from a head that is not in doubt
// against what net/http reads from it.
func FuzzPeekResponse(f *testing.F) {
	for _, seed := range []string{
		plainHead, "HTTP/1.0 404\r\nX-A:\r\nX-A: \t b \r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nConnection: close, x\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\nX: 1\n 2\r\n\r\n", "HTTP/1.1 200 OK\r\nTrailer: X-T\r\nContent-Length: +1\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := PeekResponse(bufio.NewReaderSize(bytes.NewReader(raw), len(raw)+16))
		var got fasthttp.ResponseHeader
		if err != nil || h.Doubtful || got.Read(bufio.NewReaderSize(bytes.NewReader(raw), len(raw)+16)) != nil {
			return
		}
		if bytes.Contains(raw, []byte(" :")) || bytes.Contains(raw, []byte("\t:")) {
			return // which net/http refuses
		}
		want, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: "GET"})
		if err != nil {
			t.Fatalf("net/http refuses %q, which is not in doubt: %v", raw, err)
		}
		if got.StatusCode() != want.StatusCode {
			t.Fatalf("status %d, net/http reads %d from %q", got.StatusCode(), want.StatusCode, raw)
		}
		if (len(want.TransferEncoding) > 0) != (got.ContentLength() == -1) {
			t.Fatalf("length %d, net/http reads the coding %q from %q", got.ContentLength(), want.TransferEncoding, raw)
		}
		if text := want.Header.Get("Content-Length"); text != "" {
			if n, _ := strconv.Atoi(text); n != got.ContentLength() {
				t.Fatalf("length %d, net/http reads %q from %q", got.ContentLength(), text, raw)
			}
		}
		for name, values := range want.Header {
			switch name {
			case "Content-Type", "Content-Encoding", "Server", "Connection", "Content-Length", "Trailer", "Set-Cookie":
				continue // the library does not keep these as they are
			}
			var kept []string
			for _, v := range got.PeekAll(name) {
				kept = append(kept, string(v))
			}
			if !slices.Equal(kept, values) {
				t.Fatalf("%s: %q, net/http reads %q from %q", name, kept, values, raw)
			}
		}
	})
}

func BenchmarkPeekResponse(b *testing.B) {
	from := strings.NewReader(plainHead)
	r := bufio.NewReader(from)
	b.ReportAllocs()
	for b.Loop() {
		from.Reset(plainHead)
		r.Reset(from)
		_, _ = PeekResponse(r)
	}
}
