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

// HostOK reports whether a Host value may be passed on. User information is not
// part of Host (RFC 9110 section 7.2) and would become a credential downstream.
func HostOK(host []byte) bool {
	return len(host) > 0 && bytes.IndexByte(host, '@') < 0
}

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
