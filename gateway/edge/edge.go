// Package edge is where the public network meets the gateway: which request
// targets are read at all, which header fields end here, and what the next hop is
// told about the caller. It decides about bytes of one message; routes, upstreams
// and answers are not its business.
//
// It follows RFC 9110 section 7.6 (message forwarding) and RFC 9112 section 3.2
// (request target).
package edge

import (
	"net/netip"

	"github.com/valyala/fasthttp"
)

// Proxies are the networks whose peers are believed when they speak about callers.
type Proxies []netip.Prefix

// Trust reports whether a peer's statements are believed.
func (p Proxies) Trust(peer netip.Addr) bool {
	if len(p) == 0 {
		return false
	}
	peer = peer.Unmap()
	for _, prefix := range p {
		if prefix.Contains(peer) {
			return true
		}
	}
	return false
}

// Caller is what the next hop is told about the peer.
type Caller struct {
	Address netip.Addr
	Text    []byte // Address as text; "unknown" where there is none, as on a Unix socket
	Scheme  []byte // "http" or "https"
}

var (
	schemeHTTP  = []byte("http")
	schemeHTTPS = []byte("https")
)

// Set describes a peer. It keeps the memory of Text.
func (c *Caller) Set(address netip.Addr, secure bool) {
	c.Address = address.Unmap().WithZone("")
	c.Text, c.Scheme = c.Text[:0], schemeHTTP
	if address.IsValid() {
		c.Text = c.Address.AppendTo(c.Text)
	} else {
		c.Text = append(c.Text, "unknown"...)
	}
	if secure {
		c.Scheme = schemeHTTPS
	}
}

var (
	forwardedFor   = []byte(fasthttp.HeaderXForwardedFor)
	forwardedHost  = []byte(fasthttp.HeaderXForwardedHost)
	forwardedProto = []byte(fasthttp.HeaderXForwardedProto)
	commaSpace     = []byte(", ")
)

// spoofable are other fields that say who the caller is. They are not written here;
// from a peer that is not trusted they end here.
var spoofable = [][]byte{
	[]byte("Forwarded"), []byte("X-Forwarded-Port"), []byte("X-Forwarded-Prefix"), []byte("X-Forwarded-Server"),
	[]byte("X-Forwarded-Ssl"), []byte("X-Real-Ip"), []byte("X-Client-Ip"), []byte("True-Client-Ip"),
}

// Forward writes X-Forwarded-For, -Proto and -Host. What the caller sent in them is
// replaced, unless the peer is trusted: then the peer's address joins the list and
// the rest stands. scratch is reused for the joined list and returned.
func Forward(h *fasthttp.RequestHeader, c *Caller, seen Fields, trusted bool, scratch []byte) []byte {
	text, scheme, host := c.Text, c.Scheme, h.Host()
	if seen&FieldForwarded == 0 {
		h.SetCanonical(forwardedFor, text)
		h.SetCanonical(forwardedProto, scheme)
		h.SetCanonical(forwardedHost, host)
		return scratch
	}
	if trusted {
		// Several lines are one list (RFC 9110 section 5.3).
		scratch = scratch[:0]
		for _, line := range h.PeekAll(fasthttp.HeaderXForwardedFor) {
			scratch = append(append(scratch, line...), commaSpace...)
		}
		scratch = append(scratch, text...)
		text = scratch
		if v := h.PeekBytes(forwardedProto); len(v) > 0 {
			scheme = v
		}
		if v := h.PeekBytes(forwardedHost); len(v) > 0 {
			host = v
		}
	}
	if !trusted {
		for _, name := range spoofable {
			h.DelBytes(name)
		}
	}
	// SetCanonical changes the first line of a name and leaves further ones, so
	// they go first. What was peeked stays readable until the header is changed.
	setOnly(h, forwardedFor, text)
	setOnly(h, forwardedProto, scheme)
	setOnly(h, forwardedHost, host)
	return scratch
}
