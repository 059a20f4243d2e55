package routes

import (
	"maps"
	"slices"
	"strings"
)

// A shape is a pattern whose parameters have no expressions. A key is a shape in the
// router's words: "/a/{p}/{r:*}". Literal text has no braces, so a key is unambiguous.
const (
	keyParameter = "{p}"
	keyRest      = "{r:*}"
)

// key gives the shape of p.
func (p *pattern) key() string {
	var b strings.Builder
	for _, s := range p.segments {
		b.WriteByte('/')
		if s.parameter {
			b.WriteString(keyParameter)
		} else {
			b.WriteString(s.text)
		}
	}
	switch p.end {
	case endSlash:
		b.WriteByte('/')
	case endRest:
		b.WriteString("/" + keyRest)
	}
	return b.String()
}

// shapeOf reads a key.
func shapeOf(key string) (p pattern) {
	parts := strings.Split(key[1:], "/")
	for i, part := range parts {
		switch {
		case part == keyParameter:
			p.segments = append(p.segments, segment{parameter: true})
		case part == keyRest:
			p.end = endRest
		case part == "" && i == len(parts)-1:
			p.end = endSlash
		default:
			p.segments = append(p.segments, segment{text: part})
		}
	}
	return p
}

// keys gives every key that the tree for routes and paths with an end needs, sorted: a
// pattern stands before those that it is the beginning of, so the router never finds a
// place taken by one of its hidden nodes.
//
// Beside the routes' own these are the places where the router would give up although
// a less specific route may match.
func keys(routes []*route, end end) []string {
	all := map[string]bool{}
	for _, r := range routes {
		all[r.key()] = true
		// A path that ends in a slash can end after any segment.
		if end == endSlash {
			for i := range len(r.segments) + 1 {
				all[(&pattern{r.segments[:i], endSlash}).key()] = true
			}
		}
		// Before a catch-all the router hides a redirect.
		if end == endPlain && r.end == endRest && len(r.segments) > 0 {
			all[(&pattern{r.segments, endPlain}).key()] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(all))
	if end == endSlash {
		return sorted
	}
	for i := range len(sorted) - 1 {
		if fork := fork(sorted[i], sorted[i+1]); fork != "" {
			all[fork] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// fork gives the key at which the ways to a and b part if a path without a slash at
// its end can end there, "" otherwise. Between neighbours in order lie all forks.
func fork(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	common := a[:n]
	if open := strings.LastIndexByte(common, '{'); open > strings.LastIndexByte(common, '}') {
		common = common[:open] // "{p}" and "{r:*}" part at their slash
	}
	if strings.HasSuffix(common, "/") {
		return ""
	}
	return common
}

// meets compares p with a path that the tree led to shape: whether p may match it, and
// whether it does for certain. Both belong to the same tree.
func (p *pattern) meets(shape *pattern) (possible, certain bool) {
	n, m := len(p.segments), len(shape.segments)
	certain = n <= m
	for i := range min(n, m) {
		s, at := &p.segments[i], &shape.segments[i]
		switch {
		case s.expression != nil:
			certain = false
		case s.parameter:
		case at.parameter:
			certain = false
		case s.text != at.text:
			return false, false
		}
	}
	switch {
	case p.end != endRest && shape.end != endRest:
		return n == m, certain
	case p.end != endRest: // the shape leaves open what follows
		return n >= m, false
	case shape.end == endRest:
		return true, certain
	case shape.end == endSlash: // "/a/{rest:*}" matches "/a/"
		return n <= m, certain
	default: // but not "/a"
		return n < m, certain
	}
}
