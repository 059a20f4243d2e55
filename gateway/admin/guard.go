package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// readToken reads a token from a file; "" as its name is no token.
func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("token_file: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, tokenMaxSize+1))
	if err != nil {
		return "", fmt.Errorf("token_file: %w", err)
	}
	token := strings.TrimSpace(string(content))
	switch {
	case token == "":
		return "", fmt.Errorf("token_file: %s holds no token", name)
	case len(content) > tokenMaxSize:
		return "", fmt.Errorf("token_file: %s is larger than %d bytes", name, tokenMaxSize)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("token_file: %s must hold one token of printable ASCII without spaces", name)
	}
	return token, nil
}

// guard decides who may ask.
type guard struct {
	host   string             // as configured; "" where the Host header is not checked
	secret *[sha256.Size]byte // of the token; nil for none
}

func newGuard(a address, token string) guard {
	var g guard
	if a.reach == loopback {
		g.host = a.host
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		g.secret = &sum
	}
	return g
}

// knows reports whether the request carries the token, in a time that does not
// depend on how much of it is right.
func (g guard) knows(r *http.Request) bool {
	if g.secret == nil {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], g.secret[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// addressed reports whether the request was meant for this listener. A browser
// that was lured here by a name that resolves to loopback shows that name. No name at
// all is no browser but a plain HTTP/1.0 health check.
func (g guard) addressed(r *http.Request) bool {
	if g.host == "" || r.Host == "" {
		return true
	}
	host := hostname(r.Host)
	return strings.EqualFold(host, g.host) || isLoopback(host)
}

// hostname is a Host header without port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// foreign reports that a browser was made to send the request by another site. It
// says so in Sec-Fetch-Site, older ones in Origin; other programs send neither.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		origin := r.Header.Get("Origin")
		if origin == "" {
			return false
		}
		if u, err := url.Parse(origin); err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	return true
}
