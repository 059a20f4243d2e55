package edge

import (
	"bytes"
	"iter"

	"github.com/valyala/fasthttp"
)

// Fields says which groups of header fields a message may have. One walk over the
// raw header section finds them, so that a message without any of them, as nearly
// all are, pays for no look-up.
type Fields uint16

// The groups.
const (
	FieldConnection Fields = 1 << iota // Connection, and what it may list
	FieldHop                           // the other fields that are for one hop only
	FieldExpect                        // Expect: the gateway has answered it
	FieldForwarded                     // X-Forwarded-For, -Proto, -Host
	FieldTrailer                       // Trailer
	FieldCoding                        // Transfer-Encoding: a body that may have trailers
	FieldLength                        // Content-Length
	FieldRequestID                     // X-Request-Id
	FieldType                          // Content-Type
	FieldAgent                         // User-Agent

	FieldsAll = FieldAgent<<1 - 1

	// fieldsOnce may stand in one line only. Of two, the library would keep the last
	// and others the first. It refuses a second Host by itself.
	fieldsOnce = FieldCoding | FieldLength | FieldType | FieldAgent
)

// name is a field that matters, in lower case, and the group it is in.
type name struct {
	text  string
	group Fields
}

// names are those that matter.
var names = []name{
	{"connection", FieldConnection},
	{"keep-alive", FieldHop},
	{"proxy-connection", FieldHop},
	{"proxy-authenticate", FieldHop},
	{"proxy-authorization", FieldHop},
	{"te", FieldHop},
	{"upgrade", FieldHop},
	{"http2-settings", FieldHop},
	{"expect", FieldExpect},
	{"x-forwarded-for", FieldForwarded},
	{"x-forwarded-proto", FieldForwarded},
	{"x-forwarded-host", FieldForwarded},
	{"x-forwarded-port", FieldForwarded},
	{"x-forwarded-prefix", FieldForwarded},
	{"x-forwarded-server", FieldForwarded},
	{"x-forwarded-ssl", FieldForwarded},
	{"x-real-ip", FieldForwarded},
	{"x-client-ip", FieldForwarded},
	{"true-client-ip", FieldForwarded},
	{"forwarded", FieldForwarded},
	{"trailer", FieldTrailer},
	{"transfer-encoding", FieldCoding},
	{"content-length", FieldLength},
	{"x-request-id", FieldRequestID},
	{"content-type", FieldType},
	{"user-agent", FieldAgent},
}

// longest is the length of the longest of them.
const longest = len("proxy-authorization")

// byLength has the names by their length: hardly any other field is as long as one
// of them and begins with the same letter.
var byLength = func() (table [longest + 1][]name) {
	for _, n := range names {
		table[len(n.text)] = append(table[len(n.text)], n)
	}
	return table
}()

// fieldOf is the group of a field, whose name has to be a token.
func fieldOf(field []byte) Fields {
	if len(field) == 0 || len(field) > longest {
		return 0
	}
	first := field[0] | 0x20
	for _, n := range byLength[len(field)] {
		if first == n.text[0] && isName(field, n.text) {
			return n.group
		}
	}
	return 0
}

// isName compares a token with a name in lower case that is as long. Among the
// characters of tokens, the bit only makes letters small.
func isName(token []byte, lower string) bool {
	for i, c := range token {
		if i >= len(lower) || c|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// equalFold compares ASCII letters without case; lower is in lower case and as long
// as b.
func equalFold(b []byte, lower string) bool {
	for i := range b {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// hopByHop are the fields for one hop only (RFC 9110 section 7.6.1), in fasthttp's
// spelling. Transfer-Encoding is not here: fasthttp writes the framing on both sides.
var hopByHop = [][]byte{
	[]byte("Keep-Alive"), []byte("Proxy-Connection"), []byte("Proxy-Authenticate"),
	[]byte("Proxy-Authorization"), []byte("Te"), []byte("Upgrade"), []byte("Http2-Settings"),
}

// kept are names that Connection may not take away: they belong to the message or
// are written here.
var kept = []string{
	"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "date", "set-cookie",
	"authorization", "idempotency-key", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-request-id",
}

// StripRequest takes away what ends at this hop, and makes the rest fit the next
// one: HTTP/1.1, persistent, no expectation, no trailers.
func StripRequest(h *fasthttp.RequestHeader, seen Fields) {
	if seen&(FieldConnection|FieldHop) != 0 {
		dropHop(h, seen)
	}
	if seen&FieldExpect != 0 {
		h.Del(fasthttp.HeaderExpect)
	}
	if seen&(FieldTrailer|FieldCoding) != 0 {
		dropTrailers(h)
	}
	if seen&FieldCoding != 0 {
		// The library writes the framing of the body that it sends, but for a GET or
		// HEAD without one it writes none and would leave this: the next request would
		// be read as chunks.
		h.Del(fasthttp.HeaderTransferEncoding)
	}
	h.ResetConnectionClose()
	if !h.IsHTTP11() {
		h.SetProtocol("HTTP/1.1")
	}
	h.SetNoDefaultContentType(true)
}

// StripResponse takes away what ends at this hop. seen is what PeekResponse found.
func StripResponse(h *fasthttp.ResponseHeader, seen Fields) {
	if seen&(FieldConnection|FieldHop|FieldTrailer) != 0 {
		keepOrder(h, repeatedOf(h.PeekKeys(), "set-cookie"), func() {
			dropHop(h, seen)
			if seen&FieldTrailer != 0 {
				dropTrailers(h)
			}
		})
	}
	h.ResetConnectionClose()
	h.SetNoDefaultContentType(true)
	if !h.IsHTTP11() {
		h.SetProtocol(http11) // the version is this hop's own
	}
}

// dropHop takes away the fields for one hop, those that Connection lists among them.
func dropHop(h header, seen Fields) {
	if seen&FieldConnection != 0 {
		for _, value := range h.PeekAll(fasthttp.HeaderConnection) {
			listed(value, func(name []byte) { h.DelBytes(name) })
		}
		h.DelBytes(connectionName)
	}
	if seen&FieldHop != 0 {
		for _, name := range hopByHop {
			h.DelBytes(name)
		}
	}
}

var connectionName = []byte(fasthttp.HeaderConnection)

var http11 = []byte("HTTP/1.1")

// trailers is what request and response headers share here.
type trailers interface {
	Trailers() iter.Seq[[]byte]
	DelBytes(key []byte)
	Del(key string)
}

// dropTrailers forgets the trailer section (RFC 9110 section 6.5.1 lets any hop do
// so). The fields go first: forgetting the announcement alone would move their
// values into the header section, where they would mean something else.
func dropTrailers(h trailers) {
	found := false
	for name := range h.Trailers() {
		h.DelBytes(bytes.Clone(name))
		found = true
	}
	if found {
		h.Del(fasthttp.HeaderTrailer)
	}
}

// listed calls f with each name that a Connection value lists and that may go.
func listed(value []byte, f func(name []byte)) {
	for len(value) > 0 {
		var name []byte
		if i := bytes.IndexByte(value, ','); i >= 0 {
			name, value = value[:i], value[i+1:]
		} else {
			name, value = value, nil
		}
		name = bytes.Trim(name, " \t")
		if len(name) > 0 && !isKept(name) {
			f(bytes.Clone(name))
		}
	}
}

func isKept(name []byte) bool {
	for _, k := range kept {
		if len(k) == len(name) && equalFold(name, k) {
			return true
		}
	}
	return false
}

// setOnly makes value the only line of a field.
func setOnly(h *fasthttp.RequestHeader, key, value []byte) {
	value = bytes.Clone(value)
	h.DelBytes(key)
	h.SetCanonical(key, value)
}
