package edge

import (
	"bufio"
	"bytes"
)

// PeekResponse waits until r holds the whole head of a response and judges it, as
// ReadHead judges that of a request. It takes nothing out of r, whose buffer bounds
// the head. A head in doubt is told at once, even if it never ends.
//
// The library reads responses more leniently than requests: it takes empty lines
// before the first one and any version, joins folded lines, lets Transfer-Encoding
// win over Content-Length, and ignores it in HTTP/1.0. White space before a colon is
// no fault here: a proxy has to take it away (RFC 9112 section 5.1), as the library
// does. Neither is a content with two types, for which a 502 would be no help.
func PeekResponse(r *bufio.Reader) (h Head, err error) {
	http10, next := false, 0 // next is where the next line begins
	for {
		b, _ := r.Peek(r.Buffered())
		for {
			end := bytes.IndexByte(b[next:], '\n')
			if end < 0 {
				break
			}
			line := b[next : next+end]
			ok := end > 0 && line[end-1] == '\r'
			switch {
			case ok && next == 0:
				http10, ok = statusLine(line[:end-1])
			case ok && end > 1:
				h.line(line[:end-1], FieldCoding|FieldLength, true)
			case ok: // the section's end
				// RFC 9112 sections 6.1 and 6.3.
				h.Doubtful = h.Seen&FieldCoding != 0 && (http10 || h.Seen&FieldLength != 0)
				return h, nil
			}
			if h.Doubtful = h.Doubtful || !ok; h.Doubtful {
				return h, nil
			}
			next += end + 1
		}
		if _, err := r.Peek(len(b) + 1); err != nil {
			return h, err
		}
	}
}

// statusLine judges a status line, without its end.
func statusLine(line []byte) (http10, ok bool) {
	const version, code = len("HTTP/1."), len("HTTP/1.1 ")
	const status = code + len("200")
	if len(line) < status || string(line[:version]) != "HTTP/1." || line[version] != '0' && line[version] != '1' || line[version+1] != ' ' {
		return false, false
	}
	for i, c := range line[code:status] {
		if c < '0' || c > '9' || i == 0 && c == '0' {
			return false, false
		}
	}
	// The reason may be missing, with its space.
	if len(line) > status && line[status] != ' ' {
		return false, false
	}
	for _, c := range line[status:] {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false, false
		}
	}
	return line[version] == '0', true
}
