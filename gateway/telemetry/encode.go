package telemetry

import (
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// verbatim are the bytes that stand for themselves within a JSON string: printable
// ASCII but for the quote and the backslash.
var verbatim = func() (table [256]bool) {
	for b := ' '; b <= '~'; b++ {
		table[b] = b != '"' && b != '\\'
	}
	return table
}()

const hex = "0123456789abcdef"

// appendText writes the inside of a JSON string, of value's first bytes. The value
// may be hostile: it can neither end the string nor the line, and what a terminal or
// a line splitter may obey (C1 controls, U+2028, directional marks) is replaced, as
// is invalid UTF-8.
func appendText[T string | []byte](dst []byte, value T, most int) []byte {
	if len(value) > most {
		value = value[:most]
	}
	done := 0
	for i := 0; i < len(value); {
		b := value[i]
		if verbatim[b] {
			i++
			continue
		}
		dst = append(dst, value[done:i]...)
		size := 1
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < utf8.RuneSelf:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			var r rune
			r, size = utf8.DecodeRuneInString(string(value[i:min(i+utf8.UTFMax, len(value))]))
			if !unicode.IsPrint(r) {
				r = utf8.RuneError
			}
			dst = utf8.AppendRune(dst, r)
		}
		i += size
		done = i
	}
	return append(dst, value[done:]...)
}

// timeBytes is the length of a time as appendTime writes it.
const timeBytes = len("2006-01-02T15:04:05.000Z")

// appendTime writes RFC 3339 with milliseconds, in UTC. By hand, since it is in
// every event and package time needs four times as long for this layout.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = append(digits2(digits2(dst, year/100), year), '-')
	dst = append(digits2(dst, int(month)), '-')
	dst = append(digits2(dst, day), 'T')
	dst = append(digits2(dst, hour), ':')
	dst = append(digits2(dst, minute), ':')
	dst = append(digits2(dst, second), '.')
	return append(digits3(dst, t.Nanosecond()/1e6), 'Z')
}

// appendMillis writes milliseconds with three decimals; what is negative is zero.
func appendMillis(dst []byte, d time.Duration) []byte {
	micros := max(d, 0).Microseconds()
	dst = append(strconv.AppendInt(dst, micros/1000, 10), '.')
	return digits3(dst, int(micros%1000))
}

func digits2(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/10%10), byte('0'+n%10))
}

func digits3(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
}
