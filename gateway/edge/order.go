package edge

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// header is what request and response headers share here.
type header interface {
	PeekAll(key string) [][]byte
	DelBytes(key []byte)
	AddBytesKV(key, value []byte)
}

// repeated is a field with several lines.
type repeated struct {
	name   string
	values [][]byte
}

// keepOrder runs change, which takes fields away, and afterwards puts the lines of
// each field of names in their order again: when the library takes a field away, it
// moves the last one into its place. names are those with several lines.
func keepOrder(h header, names []string, change func()) {
	before := make([]repeated, 0, len(names))
	for _, name := range names {
		r := repeated{name: name}
		for _, value := range h.PeekAll(name) {
			r.values = append(r.values, bytes.Clone(value))
		}
		before = append(before, r)
	}
	change()
	for i := range before {
		if len(h.PeekAll(before[i].name)) != len(before[i].values) {
			before[i].values = nil // it was taken away, or made one line
			continue
		}
		h.DelBytes([]byte(before[i].name))
	}
	for _, r := range before {
		for _, value := range r.values {
			h.AddBytesKV([]byte(r.name), value)
		}
	}
}

// removes are the groups whose fields are taken away from a request.
const removes = FieldConnection | FieldHop | FieldExpect | FieldForwarded | FieldTrailer | FieldCoding | FieldRequestID

// KeepOrder runs change, which takes fields away from a request, so that the lines of
// repeated fields stay in their order (RFC 9110 section 5.3).
func KeepOrder(h *fasthttp.RequestHeader, seen Fields, change func()) {
	if seen&removes == 0 {
		change()
		return
	}
	if names := repeatedIn(h.RawHeaders()); len(names) > 0 {
		keepOrder(h, names, change)
		return
	}
	change()
}

// repeatedIn gives the names that stand in several lines of a raw header section.
// Cookie is left out: to look at its lines makes the library join them.
func repeatedIn(raw []byte) (list []string) {
	var names [][]byte
	for len(raw) > 0 {
		line := raw
		if i := bytes.IndexByte(raw, '\n'); i >= 0 {
			line, raw = raw[:i], raw[i+1:]
		} else {
			raw = nil
		}
		if colon := bytes.IndexByte(line, ':'); colon > 0 {
			names = append(names, line[:colon])
		}
	}
	return repeatedOf(names, "cookie")
}

func repeatedOf(names [][]byte, except string) (list []string) {
	for i, name := range names {
		first, more := true, false
		for j, other := range names {
			if i != j && len(name) == len(other) && bytes.EqualFold(name, other) {
				first, more = first && i < j, true
			}
		}
		if first && more && !bytes.EqualFold(name, []byte(except)) {
			list = append(list, string(name))
		}
	}
	return list
}
