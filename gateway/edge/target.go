package edge

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// Target splits a request target of origin form. path is what routes see and what
// is sent, byte for byte. ok is false for every other form and for a fragment,
// which no request may carry: with them, two readers could disagree about host or
// path.
func Target(uri []byte) (path []byte, ok bool) {
	if len(uri) == 0 || uri[0] != '/' || bytes.IndexByte(uri, '#') >= 0 {
		return nil, false
	}
	if i := bytes.IndexByte(uri, '?'); i >= 0 {
		return uri[:i], true
	}
	return uri, true
}

// OriginForm is the origin form of a target in absolute form, which every server
// must take (RFC 9112 section 3.2.2), where its authority is the Host field's. Where
// they differ it is nil: to obey either would be to trust one reader more.
func OriginForm(uri, host []byte) []byte {
	var rest []byte
	for _, scheme := range []string{"http://", "https://"} {
		if len(uri) > len(scheme) && equalFold(uri[:len(scheme)], scheme) {
			rest = uri[len(scheme):]
		}
	}
	if len(rest) <= len(host) || !bytes.EqualFold(rest[:len(host)], host) || rest[len(host)] != '/' {
		return nil
	}
	return rest[len(host):]
}

// HostOK reports whether a Host value may be passed on: a name, or an address in
// brackets, and perhaps a port (RFC 9110 section 7.2). User information is not part
// of it and would become a credential downstream. The grammar's escapes and
// punctuation are refused too: no name in use has them, and readers differ about
// what they mean.
func HostOK(host []byte) bool {
	name, port := host, []byte(nil)
	if len(host) > 0 && host[0] == '[' {
		end := bytes.IndexByte(host, ']')
		if end < 0 {
			return false
		}
		name, port = host[1:end], host[end+1:]
	} else if colon := bytes.IndexByte(host, ':'); colon >= 0 {
		name, port = host[:colon], host[colon:]
	}
	literal := len(name) < len(host)-len(port)
	for _, c := range name {
		if !hosts[c] && !(literal && c == ':') {
			return false
		}
	}
	for i, c := range port {
		if i == 0 && c != ':' || i > 0 && (c < '0' || c > '9') {
			return false
		}
	}
	return len(name) > 0
}

// hosts are the characters of a host's name.
var hosts = func() (table [256]bool) {
	for c := range table {
		table[c] = c == '-' || c == '.' || c == '_' || c == '~' ||
			'0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
	}
	return table
}()

// VersionOK reports whether the request's version is one that is spoken here.
func VersionOK(h *fasthttp.RequestHeader) bool {
	version := h.Protocol()
	return string(version) == "HTTP/1.1" || string(version) == "HTTP/1.0"
}

// MethodKnown reports whether a method is one of those that every route without
// methods takes. Any other has to be named by a route; CONNECT and TRACE never are:
// they are for the hop, not for what is behind it.
func MethodKnown(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return true
	}
	return false
}

// PathCanonical reports whether a path has one reading and one spelling only:
// visible ASCII, whole percent escapes, and nothing that a backend might resolve or
// decode into another path. So it refuses dot segments, empty segments, backslashes,
// and escapes of slashes, backslashes, controls, and of letters, digits, "-", "." and
// "_", which need none: with them a request for one route could be spelled so that
// it matches another (RFC 3986 sections 2.3, 5.2.4 and 6.2.2).
func PathCanonical(path []byte) bool {
	start := 0 // of the present segment
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c <= ' ' || c >= 0x7f || c == '\\':
			return false
		case c == '/':
			// The first slash ends nothing; an empty segment may stand at the end only.
			if i > 0 && (i == start || dots(path[start:i])) {
				return false
			}
			start = i + 1
		case c == '%':
			if !needed(path[i:]) {
				return false
			}
			i += 2
		}
	}
	return !dots(path[start:])
}

// PathSafe is what is left of PathCanonical on routes that take paths as bytes:
// nothing in it can end the request line.
func PathSafe(path []byte) bool {
	for _, c := range path {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

func dots(segment []byte) bool {
	return string(segment) == "." || string(segment) == ".."
}

// needed reports whether a whole escape begins b, of a byte that has to be escaped
// and means nothing to a path.
func needed(b []byte) bool {
	if len(b) < 3 {
		return false
	}
	high, ok1 := hexDigit(b[1])
	low, ok2 := hexDigit(b[2])
	if !ok1 || !ok2 {
		return false
	}
	switch c := high<<4 | low; {
	case c < ' ', c == 0x7f, c == '/', c == '\\', c == '-', c == '.', c == '_',
		'0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		return false
	}
	return true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
