// Package routes decides which route a request matches, by host, method and path,
// and nothing else: what a route does is the value that its table gives back. It
// keeps fasthttp/router behind an API of bytes and strings, and makes up for what
// that router does differently (see tree.go).
//
// The most specific route wins; the order of configuration never matters.
//
// Host. Compared without port, without one trailing dot, and without regard to the
// case of ASCII letters; an IPv6 literal stands in brackets and is compared as text.
// The routes of exactly this host come first. If none of them matches, be it for the
// path or for the method, the routes for any host are asked.
//
// Path. The raw path as it was received, without query: not decoded, not normalised,
// case-sensitive. A pattern is segments between slashes:
//
//	/v1/charges          a literal
//	/v1/charges/{id}     a parameter: one whole segment, at least one byte
//	/v1/{id:[0-9]+}      a parameter that a regular expression (RE2) matches as a whole
//	/files/{rest:*}      at the end only, a catch-all: whatever follows /files/, also nothing
//
// Parameters are matched, not captured: their names document, no more. "/a" and
// "/a/" are different paths, and "/a/{rest:*}" matches "/a/" but not "/a".
//
// Patterns are compared segment by segment from the left: a literal is more specific
// than a parameter, a parameter more than a catch-all. Where that makes no
// difference, a parameter with an expression comes before one without, again from the
// left. A more specific pattern that matches only the beginning of a path hides
// nothing: with "/a/b/c" and "/a/{x}/d", "/a/b/d" matches the second.
//
// Method. Case-sensitive; a route without methods takes any. HEAD does not follow from
// GET and nothing answers OPTIONS by itself. The path decides before the method does:
// "/v1/charges" without methods beats "GET /{rest:*}" for GET /v1/charges. Of
// routes with equally specific paths, those that name the method come first.
//
// Nothing here redirects. What could match the same request with the same right is a
// conflict, and New refuses it.
package routes

import (
	"slices"
	"strings"
)

// Found says how far a request got.
type Found uint8

// From least to most. The zero value matches nothing.
const (
	NoPath   Found = iota // no route has this host and path: 404
	NoMethod              // some route has, but not for this method: 405, see Table.Allow
	Matched
)

var foundNames = [...]string{"no path", "no method", "matched"}

// String gives the words for f.
func (f Found) String() string {
	if int(f) < len(foundNames) {
		return foundNames[f]
	}
	return "unknown"
}

// Entry is one route of a table: what it matches and what a match gives.
type Entry[T any] struct {
	Config
	Value T
}

// Table holds routes. It never changes once built and is safe for concurrent use.
type Table[T any] struct {
	values []T
	any    *space            // routes for any host
	hosts  map[string]*space // routes for one host, by its normal form
}

// New builds a table. An error joins everything that is wrong, each a *Conflict: the
// faults of single entries (those that Config.Validate finds), and the pairs that
// could match the same request with the same right.
func New[T any](entries []Entry[T]) (*Table[T], error) {
	t := &Table[T]{values: make([]T, len(entries)), hosts: map[string]*space{}}
	byHost := map[string][]*route{}
	var wrong []*Conflict
	for i, e := range entries {
		t.values[i] = e.Value
		faults := e.faults()
		for _, f := range faults {
			wrong = append(wrong, &Conflict{Index: i, Other: -1, Field: f.Field, Text: f.Text})
		}
		if len(faults) == 0 {
			r := newRoute(i, e.Config)
			byHost[r.host] = append(byHost[r.host], r)
		}
	}
	for _, routes := range byHost {
		wrong = append(wrong, conflicts(routes)...)
	}
	if len(wrong) > 0 {
		return nil, inOrder(wrong)
	}
	for host, routes := range byHost {
		s, faults := newSpace(routes)
		wrong = append(wrong, faults...)
		t.hosts[host] = s
	}
	if len(wrong) > 0 {
		return nil, inOrder(wrong)
	}
	t.any = t.hosts[""]
	delete(t.hosts, "")
	return t, nil
}

// Match finds the route for a request. path is the request's without query. value is
// that of the route, the zero value unless found is Matched. The arguments are only
// read, and only during the call. It does not allocate unless a parameter was tried.
//
// The work is bounded by the length of the path and the number of routes: nodes of
// the router's tree are visited at most once each, whatever the path.
func (t *Table[T]) Match(host, method, path []byte) (value T, found Found) {
	if s := t.space(host); s != nil {
		r, f := s.match(method, path)
		if f == Matched {
			return t.values[r.index], Matched
		}
		found = f
	}
	r, f := t.any.match(method, path)
	if f == Matched {
		value = t.values[r.index]
	}
	return value, max(found, f)
}

// Allow gives the methods that the routes for host and path name, sorted, as the value
// of an Allow header: "GET, POST". It is meant for NoMethod; where no route has the
// path, or one takes any method, it is "".
func (t *Table[T]) Allow(host, path []byte) string {
	var methods []string
	for _, s := range []*space{t.space(host), t.any} {
		more, all := s.methods(path)
		if all {
			return ""
		}
		methods = append(methods, more...)
	}
	slices.Sort(methods)
	return strings.Join(slices.Compact(methods), ", ")
}

// space gives the routes for exactly this host, nil if there are none.
func (t *Table[T]) space(host []byte) *space {
	if len(t.hosts) == 0 {
		return nil
	}
	var buffer [longestHost]byte
	return t.hosts[string(normalHost(&buffer, host))]
}
