package routes

import (
	"cmp"
	"slices"
)

// route is one entry, ready to be matched.
type route struct {
	index   int
	name    string
	host    string   // normal form; "": any
	methods []string // empty: any
	path    string   // as configured
	pattern
	ranks string // how specific the pattern is, see pattern.ranks
	finer string
}

// newRoute takes a valid Config.
func newRoute(index int, c Config) *route {
	r := &route{index: index, name: c.Name, methods: slices.Clone(c.Methods), path: c.Path}
	var buffer [longestHost]byte
	r.host = string(normalHost(&buffer, []byte(c.Host)))
	r.pattern, _ = parsePattern(c.Path)
	r.ranks, r.finer = r.pattern.ranks()
	return r
}

// accepts reports whether r takes the method.
func (r *route) accepts(method []byte) bool {
	if len(r.methods) == 0 {
		return true
	}
	for _, m := range r.methods {
		if string(method) == m {
			return true
		}
	}
	return false
}

// mostSpecificFirst is the order in which routes are asked. Routes that it holds for
// equal cannot match the same request, see conflicts.
func mostSpecificFirst(a, b *route) int {
	return cmp.Or(
		cmp.Compare(a.ranks, b.ranks),
		cmp.Compare(a.finer, b.finer),
		cmp.Compare(min(len(b.methods), 1), min(len(a.methods), 1)),
		cmp.Compare(a.index, b.index),
	)
}
