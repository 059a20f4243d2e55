package edge

import (
	"encoding/binary"
	"encoding/hex"
	"time"
)

// maxRequestID bounds an identifier that a trusted peer gives.
const maxRequestID = 128

// RequestIDOK reports whether an identifier from a trusted peer can be taken over:
// short, and of characters that need no quoting in any header, log or URL.
func RequestIDOK(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=', c == '~':
		default:
			return false
		}
	}
	return true
}

// AppendRequestID appends a new identifier, a UUID of version 7 (RFC 9562 section
// 5.7): the time in milliseconds, then 74 random bits.
func AppendRequestID(dst []byte, now time.Time, random func() uint64) []byte {
	var u [16]byte
	binary.BigEndian.PutUint64(u[:8], uint64(now.UnixMilli())<<16|random()&0x0fff)
	binary.BigEndian.PutUint64(u[8:], random())
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	dst = hex.AppendEncode(dst, u[0:4])
	dst = hex.AppendEncode(append(dst, '-'), u[4:6])
	dst = hex.AppendEncode(append(dst, '-'), u[6:8])
	dst = hex.AppendEncode(append(dst, '-'), u[8:10])
	return hex.AppendEncode(append(dst, '-'), u[10:16])
}
