package routes

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Conflict is one reason why a table cannot hold its routes. Where two routes
// conflict, the later one is blamed, once, however many earlier ones there are.
type Conflict struct {
	Index int    // of the route in the entries
	Other int    // of the route that it conflicts with; -1: the fault is its own
	Field string // the key of the route at Index, as in a file: path
	Text  string // the value, what is wrong with it and what is allowed
}

// Error gives the place and what is wrong there.
func (c *Conflict) Error() string {
	return fmt.Sprintf("routes[%d].%s: %s", c.Index, c.Field, c.Text)
}

// inOrder joins conflicts by the index of their route.
func inOrder(list []*Conflict) error {
	slices.SortStableFunc(list, func(a, b *Conflict) int { return cmp.Compare(a.Index, b.Index) })
	joined := make([]error, len(list))
	for i, c := range list {
		joined[i] = c
	}
	return errors.Join(joined...)
}

// conflicts finds the routes of one host that could match the same request with the
// same right: their patterns are equally specific, some path may match both, and so
// may some method.
func conflicts(routes []*route) []*Conflict {
	alike := map[string][]*route{}
	var list []*Conflict
	for _, r := range routes {
		group := r.key() + r.finer
		for _, earlier := range alike[group] {
			if c := r.against(earlier); c != nil {
				list = append(list, c)
				break
			}
		}
		alike[group] = append(alike[group], r)
	}
	return list
}

// against compares r with an earlier route of the same shape.
func (r *route) against(earlier *route) *Conflict {
	method, ok := r.shared(earlier)
	if !ok {
		return nil
	}
	same := true
	for i, s := range r.segments {
		other := earlier.segments[i]
		if s.expression == nil || s.text == other.text {
			continue
		}
		same = false
		if !overlap(s.text, other.text) {
			return nil
		}
	}
	c := &Conflict{Index: r.index, Other: earlier.index, Field: "path"}
	if same {
		c.Text = fmt.Sprintf("%q for %s is taken by route %q, one of them can go", r.path, method, earlier.name)
	} else {
		c.Text = fmt.Sprintf("%q and %q of route %q can match the same path for %s, and neither is more specific; expressions in the same place must exclude each other",
			r.path, earlier.path, earlier.name, method)
	}
	return c
}

// shared gives a method, in words, for which both routes stand equally. One that takes
// any method gives way to one that names it.
func (r *route) shared(other *route) (method string, ok bool) {
	if len(r.methods) == 0 && len(other.methods) == 0 {
		return "any method", true
	}
	for _, m := range r.methods {
		if slices.Contains(other.methods, m) {
			return m, true
		}
	}
	return "", false
}
