package routes

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
)

// checkHost says what is wrong with the host of a route, "" if nothing is.
func checkHost(host string) string {
	if host == "" {
		return ""
	}
	if host[0] == '[' {
		return checkLiteral(host)
	}
	name := strings.TrimSuffix(host, ".")
	switch {
	case strings.Contains(host, ":"):
		return fmt.Sprintf(`%.80q has a colon, a host stands without port, an IPv6 address in brackets`, host)
	case strings.Contains(host, "*"):
		return fmt.Sprintf(`%.80q has a wildcard, a host is exact, or "" for any`, host)
	case len(name) > longestHost:
		return fmt.Sprintf("%.40q is too long, at most %d characters", host, longestHost)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > longestLabel {
			return fmt.Sprintf("%.80q has a label of %d characters, 1 to %d are allowed between dots", host, len(label), longestLabel)
		}
		for _, r := range label {
			if !isLetter(r) && !isDigit(r) && r != '-' && r != '_' {
				return fmt.Sprintf("%.80q holds %q, letters, digits, - and _ are allowed, and dots between", host, r)
			}
		}
	}
	return ""
}

// checkLiteral wants an IPv6 literal in the one form of RFC 5952: it is compared as
// text with what callers send.
func checkLiteral(host string) string {
	inside, closed := strings.CutSuffix(host[1:], "]")
	address, err := netip.ParseAddr(inside)
	if !closed || err != nil || !address.Is6() || address.Zone() != "" {
		return fmt.Sprintf("%.80q is not an IPv6 address in brackets, such as [2001:db8::1]", host)
	}
	if want := address.String(); want != strings.ToLower(inside) {
		return fmt.Sprintf("%.80q is not how the address is commonly written, [%s]", host, want)
	}
	return ""
}

// normalHost writes the host of a request as a table knows it into buffer: without
// port, without one trailing dot, in lower case. What is too long for any table is "".
func normalHost(buffer *[longestHost]byte, host []byte) []byte {
	if len(host) > 0 && host[0] == '[' {
		// A port may follow the bracket, nothing else: "[::1]x" is no host of ours.
		if i := bytes.IndexByte(host, ']'); i >= 0 && i+1 < len(host) && host[i+1] == ':' {
			host = host[:i+1]
		}
	} else {
		if i := bytes.IndexByte(host, ':'); i >= 0 {
			host = host[:i]
		}
		host = bytes.TrimSuffix(host, dot)
	}
	if len(host) > len(buffer) {
		return nil
	}
	for i, c := range host {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buffer[i] = c
	}
	return buffer[:len(host)]
}

var dot = []byte(".")
