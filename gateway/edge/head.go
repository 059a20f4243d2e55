package edge

import "bytes"

// Head is what one walk over a message's raw header section tells.
type Head struct {
	Seen  Fields
	Lines int
	// Doubtful says that two readers could disagree about the section: about where a
	// line ends, what a field's name is, or how long the body is. Such a message is
	// not forwarded, whatever this reader made of it (RFC 9112 sections 2.2, 5.1, 5.2
	// and 6.3).
	Doubtful bool
}

// ReadHead walks a raw header section, without its start line. An empty one means
// that it is not known: then everything may be there.
//
// The library has read the section already, and more leniently: it takes a bare LF
// for a line's end, joins folded lines, passes names with spaces on, and lets
// Transfer-Encoding win over Content-Length.
func ReadHead(raw []byte) (h Head) {
	if len(raw) == 0 {
		return Head{Seen: FieldsAll}
	}
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 1 || raw[end-1] != '\r' {
			h.Doubtful = true
			return h
		}
		line := raw[:end-1]
		raw = raw[end+1:]
		if len(line) == 0 { // the section's end
			h.Doubtful = h.Doubtful || len(raw) > 0
			break
		}
		h.line(line, fieldsOnce, false)
	}
	if h.Seen&FieldCoding != 0 && h.Seen&FieldLength != 0 {
		h.Doubtful = true
	}
	return h
}

// line takes one line in. Those fields of once may come once. trim passes over white
// space before the colon.
func (h *Head) line(line []byte, once Fields, trim bool) {
	h.Lines++
	end := 0
	for end < len(line) && tokens[line[end]] {
		end++
	}
	colon := end
	if trim {
		colon += blanks(line[end:])
	}
	// A fold begins with a space, which no name holds.
	if end == 0 || colon == len(line) || line[colon] != ':' {
		h.Doubtful = true
		return
	}
	group := fieldOf(line[:end])
	if group == 0 {
		return
	}
	if group&h.Seen&once != 0 || group == FieldCoding && !isChunked(line[colon+1:]) {
		h.Doubtful = true
	}
	h.Seen |= group
}

// blanks is the length of the white space at the beginning of b.
func blanks(b []byte) (n int) {
	for n < len(b) && (b[n] == ' ' || b[n] == '\t') {
		n++
	}
	return n
}

func isChunked(value []byte) bool {
	const chunked = "chunked"
	value = bytes.Trim(value, " \t")
	return len(value) == len(chunked) && equalFold(value, chunked)
}

// tokens are the characters of a field's name (RFC 9110 section 5.6.2).
var tokens = func() (table [256]bool) {
	for c := '0'; c <= 'z'; c++ {
		table[c] = c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		table[c] = true
	}
	return table
}()
