package edge

import (
	"bufio"
	"bytes"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// strictSection is the grammar of a header section, RFC 9112 section 5 without
// anything that it lets a recipient repair.
var (
	strictSection = regexp.MustCompile("^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n]*\r\n)*\r\n$")
	strictField   = regexp.MustCompile("([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*?)[ \t]*\r\n")
)

// FuzzReadHead holds the walk over a header section against the grammar and against
// what the library makes of the same bytes: a section that is not in doubt has one
// reading.
func FuzzReadHead(f *testing.F) {
	for _, seed := range []string{
		"Host: h\r\nContent-Length: 2\r\nX-A:\r\nX-A: \t b \r\n\r\n",
		"Host: h\r\nTransfer-Encoding: chunked\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n",
		"Host: h\nX-A : 1\r\n 2\r\n\r\n",
		"Host: h\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\n",
		"Host: h\r\nUser-Agent: a\r\nUser-Agent: b\r\nContent-Type: a\r\n\r\n",
		"Host: h\r\nConnection: x, close\r\nTrailer: X-T\r\nExpect: 100-continue\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		head := ReadHead(raw)
		if len(raw) == 0 || head.Doubtful {
			return
		}
		var h fasthttp.RequestHeader
		message := append([]byte("POST / HTTP/1.1\r\n"), raw...)
		if h.Read(bufio.NewReaderSize(bytes.NewReader(message), len(message)+1)) != nil {
			return
		}
		if !bytes.Equal(h.RawHeaders(), raw) && len(raw) > len("\r\n") {
			t.Fatalf("the section is %q, the library takes %q for it", raw, h.RawHeaders())
		}
		same(t, raw, head, &h)
	})
}

// same fails the test unless the library read the fields and the framing that the
// grammar finds.
func same(t *testing.T, raw []byte, head Head, h *fasthttp.RequestHeader) {
	t.Helper()
	if !strictSection.Match(raw) {
		t.Fatalf("%q is no header section, the library takes it, and it is not in doubt", raw)
	}
	fields := strictField.FindAllSubmatch(raw, -1)
	if len(fields) != head.Lines {
		t.Fatalf("%d lines, want %d, in %q", head.Lines, len(fields), raw)
	}
	values := map[string][]string{}
	for _, field := range fields {
		name := strings.ToLower(string(field[1]))
		values[name] = append(values[name], string(field[2]))
	}
	length, chunked := values["content-length"], values["transfer-encoding"]
	switch {
	case len(length)+len(chunked) > 1:
		t.Fatalf("%q has more than one framing", raw)
	case len(chunked) == 1 && h.ContentLength() != -1, len(length) == 1 && h.ContentLength() < 0,
		len(length)+len(chunked) == 0 && h.ContentLength() != -2:
		t.Fatalf("the library reads the length %d from %q", h.ContentLength(), raw)
	}
	for name, want := range values {
		switch name {
		case "content-length", "transfer-encoding", "connection", "trailer", "content-type", "user-agent":
			continue // these it does not keep as they are
		}
		got := h.PeekAll(name)
		if len(got) != len(want) {
			t.Fatalf("the library reads %d lines of %s, want %d, in %q", len(got), name, len(want), raw)
		}
		for i := range got {
			if string(got[i]) != want[i] {
				t.Fatalf("%s: the library reads %q, want %q", name, got[i], want[i])
			}
		}
	}
}

// FuzzForward has callers claim anything about where they come from.
func FuzzForward(f *testing.F) {
	for _, seed := range []string{"1.1.1.1", "1.1.1.1, 2.2.2.2", "", ",", "unknown, \"[::1]:80\"", "192.0.2.7", "a\tb"} {
		f.Add(seed, seed, "https", "evil.test", true)
		f.Add(seed, "", "", "", false)
	}
	f.Fuzz(func(t *testing.T, first, second, scheme, host string, trusted bool) {
		section := "Host: pay.test\r\nX-Forwarded-For: " + first + "\r\nx-forwarded-for: " + second +
			"\r\nX-Forwarded-Proto: " + scheme + "\r\nX-Forwarded-Host: " + host + "\r\n\r\n"
		head := ReadHead([]byte(section))
		var h fasthttp.RequestHeader
		if head.Doubtful || h.Read(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\n"+section))) != nil {
			return
		}
		var caller Caller
		caller.Set(netip.MustParseAddr("192.0.2.7"), false)
		Forward(&h, &caller, head.Seen, trusted, nil)

		lines := strings.Split(string(h.Header()), "\r\n")
		only := func(name string) string {
			value, n := "", 0
			for _, line := range lines {
				if key, v, _ := strings.Cut(line, ":"); strings.EqualFold(key, name) {
					value, n = strings.TrimPrefix(v, " "), n+1
				}
			}
			if n != 1 {
				t.Fatalf("%d lines of %s in %q", n, name, h.Header())
			}
			return value
		}
		list, proto, forHost := only("X-Forwarded-For"), only("X-Forwarded-Proto"), only("X-Forwarded-Host")
		elements := strings.Split(list, ", ")
		if elements[len(elements)-1] != "192.0.2.7" {
			t.Fatalf("the last element of %q is not the peer", list)
		}
		if !trusted && (list != "192.0.2.7" || proto != "http" || forHost != "pay.test") {
			t.Fatalf("a caller who is not trusted had its way: %q", h.Header())
		}
	})
}

// FuzzTarget: what is taken for a path is the target's beginning, and no target in
// absolute form names another authority than Host.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"/a?b", "/a#b", "*", "//h/x", "http://h/x?y", "http://h:80/", "HTTP://H/x", "http://h@evil/", "http://hevil/", "https://h"} {
		f.Add([]byte(seed), []byte("h"))
	}
	f.Fuzz(func(t *testing.T, uri, host []byte) {
		if path, ok := Target(uri); ok {
			rest := uri[len(path):]
			if path[0] != '/' || bytes.ContainsAny(path, "?#") || len(rest) > 0 && rest[0] != '?' || !bytes.HasPrefix(uri, path) {
				t.Fatalf("the path of %q is %q", uri, path)
			}
		}
		if !HostOK(host) {
			return
		}
		if bytes.ContainsAny(host, "@/?#\\%\" \t\r\n\x00") {
			t.Fatalf("%q is taken for a host", host)
		}
		origin := OriginForm(uri, host)
		if origin == nil {
			return
		}
		_, rest, _ := strings.Cut(string(uri), "://")
		authority, _, _ := strings.Cut(rest, "/")
		if origin[0] != '/' || !strings.EqualFold(authority, string(host)) || !bytes.HasSuffix(uri, origin) {
			t.Fatalf("%q before the host %q is taken for %q", uri, host, origin)
		}
	})
}

// FuzzRequestID: what is taken over can stand anywhere without being quoted.
func FuzzRequestID(f *testing.F) {
	f.Add([]byte("01890a5d-ac96-774b-bcce-b302099a8057"))
	f.Add([]byte("a\"b\r\nX: y"))
	safe := regexp.MustCompile(`^[A-Za-z0-9._:/+=~-]{1,128}$`)
	f.Fuzz(func(t *testing.T, id []byte) {
		if got := RequestIDOK(id); got != (safe.Match(id) && !bytes.ContainsRune(id, '\n')) {
			t.Fatalf("RequestIDOK(%q) = %v", id, got)
		}
	})
}
