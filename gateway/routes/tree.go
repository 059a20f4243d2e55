package routes

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/fasthttp/router/radix"
	"github.com/valyala/fasthttp"
)

// The router's radix tree finds the place of a path quickly, and has gaps:
//
//   - it cannot hold "/a" and "/a/", and answers "redirect" from hidden nodes that it
//     adds to each of them, instead of looking further;
//   - it gives up at a node without a handler that the path ends at exactly, such as
//     "/ab" between "/abc" and "/abd", instead of looking further;
//   - it has one order among parameters in the same place, their number of children;
//   - it takes literal text beside a parameter for an expression;
//   - it lets a parameter be empty, but not at the end of a path.
//
// So it is given shapes only: patterns whose parameters are all "{p}". There is a tree
// for paths that end in a slash and one for those that do not, which keeps the first
// kind of hidden nodes out of reach. Every other place where a path may end inside a
// tree is filled with a leaf of its own. Thus the tree always finds the most specific
// shape that fits. Its leaf knows the routes still in question and asks them in order:
// those of that shape and the less specific ones. Expressions and methods are decided
// there, not in the tree.

// space holds the routes of one host, or those for any host.
type space struct {
	plain   *radix.Tree // for paths that do not end in a slash
	slashed *radix.Tree // for those that do
	slips   sync.Pool   // of *fasthttp.RequestCtx, see find
}

// leaf is what a tree leads to.
type leaf struct {
	gaps       bool // the tree may have matched an empty segment with a parameter
	candidates []candidate
}

// candidate is a route that may match a request that came to a leaf.
type candidate struct {
	*route
	certain bool // its pattern matches every such path
}

// match finds the first route in order. s may be nil, a space without routes.
func (s *space) match(method, path []byte) (r *route, found Found) {
	l := s.find(path)
	if l == nil {
		return nil, NoPath
	}
	doubt := l.doubt(path)
	for i := range l.candidates {
		c := &l.candidates[i]
		if (doubt || !c.certain) && !c.pattern.match(path) {
			continue
		}
		if c.accepts(method) {
			return c.route, Matched
		}
		found = NoMethod
	}
	return nil, found
}

// methods gives what the routes that have the path allow; all: any method.
func (s *space) methods(path []byte) (list []string, all bool) {
	l := s.find(path)
	if l == nil {
		return nil, false
	}
	for _, c := range l.candidates {
		if !c.pattern.match(path) {
			continue
		}
		if len(c.methods) == 0 {
			return nil, true
		}
		list = append(list, c.methods...)
	}
	return list, false
}

// doubt reports whether a parameter on the way to l may have been empty.
func (l *leaf) doubt(path []byte) bool { return l.gaps && bytes.Contains(path, slashes) }

// leafKey is where a handler leaves its leaf.
type leafKey struct{}

// find gives the leaf for a path, nil if no route has it.
//
// A tree gives a handler, and the one thing that a handler can be asked is to handle
// a request. Ours do nothing but note their leaf on the RequestCtx that they get. It
// has no request and no connection; it serves as a slip of paper, and is used again.
func (s *space) find(path []byte) *leaf {
	if s == nil || len(path) == 0 || path[0] != '/' {
		return nil
	}
	tree := s.plain
	if path[len(path)-1] == '/' {
		tree = s.slashed
	}
	// The tree keeps nothing of the path, and without a RequestCtx it passes no
	// parameters on. So it may see the caller's bytes as a string.
	handler, _ := tree.Get(unsafe.String(unsafe.SliceData(path), len(path)), nil)
	if handler == nil {
		return nil
	}
	slip := s.slips.Get().(*fasthttp.RequestCtx)
	handler(slip)
	l := slip.UserValue(leafKey{}).(*leaf)
	s.slips.Put(slip)
	return l
}

// newSpace builds the trees for routes without conflicts.
func newSpace(routes []*route) (*space, []*Conflict) {
	routes = slices.SortedFunc(slices.Values(routes), mostSpecificFirst)
	s := &space{slips: sync.Pool{New: func() any { return new(fasthttp.RequestCtx) }}}
	var wrong, more []*Conflict
	s.plain, wrong = newTree(routes, endPlain)
	s.slashed, more = newTree(routes, endSlash)
	return s, append(wrong, more...)
}

// newTree builds the tree for paths with an end. The routes are in order.
func newTree(routes []*route, end end) (*radix.Tree, []*Conflict) {
	routes = slices.DeleteFunc(slices.Clone(routes), func(r *route) bool { return r.end != end && r.end != endRest })
	tree := radix.New()
	for _, key := range keys(routes, end) {
		l := newLeaf(routes, shapeOf(key))
		if err := plant(tree, key, l); err != nil {
			return nil, []*Conflict{{
				Index: l.candidates[0].index, Other: -1, Field: "path",
				Text: fmt.Sprintf("%q is refused by the router: %v", l.candidates[0].path, err),
			}}
		}
	}
	return tree, nil
}

// newLeaf collects what may match a path that the tree leads to shape: nothing more
// specific, for the tree would have gone there.
func newLeaf(routes []*route, shape pattern) *leaf {
	l := &leaf{gaps: slices.ContainsFunc(shape.segments, func(s segment) bool { return s.parameter })}
	ranks, _ := shape.ranks()
	first, _ := slices.BinarySearchFunc(routes, ranks, func(r *route, ranks string) int { return cmp.Compare(r.ranks, ranks) })
	for _, r := range routes[first:] {
		if possible, certain := r.meets(&shape); possible {
			l.candidates = append(l.candidates, candidate{r, certain})
		}
	}
	return l
}

// plant adds a leaf to a tree. The router panics where it cannot hold two patterns.
// Shapes in the order of keys never make it do so; this barrier is for what a new
// version of it may dislike.
func plant(tree *radix.Tree, key string, l *leaf) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	tree.Add(key, func(slip *fasthttp.RequestCtx) { slip.SetUserValue(leafKey{}, l) })
	return nil
}

var slashes = []byte("//")
