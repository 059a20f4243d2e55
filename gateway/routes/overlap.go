package routes

import (
	"regexp/syntax"
	"unicode"
)

// mostPairs bounds the search below: expressions too large for it are taken to
// overlap.
const mostPairs = 1 << 20

// overlap reports whether some text of at least one character may match both
// expressions as a whole. It walks both programs at once. Anchors and word boundaries
// are taken to hold everywhere, so the answer may be a cautious true, never a wrong
// false.
func overlap(a, b string) bool {
	p, q := program(a), program(b)
	if p == nil || q == nil || len(p.Inst)*len(q.Inst) > mostPairs {
		return true
	}
	type state struct {
		p, q uint32
		read bool // at least one character
	}
	begin := state{uint32(p.Start), uint32(q.Start), false}
	seen, todo := map[state]bool{begin: true}, []state{begin}
	visit := func(s state) {
		if !seen[s] {
			seen[s] = true
			todo = append(todo, s)
		}
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x, y := &p.Inst[s.p], &q.Inst[s.q]
		switch {
		case !reads(x) && x.Op != syntax.InstMatch:
			for _, next := range without(x) {
				visit(state{next, s.q, s.read})
			}
		case !reads(y) && y.Op != syntax.InstMatch:
			for _, next := range without(y) {
				visit(state{s.p, next, s.read})
			}
		case x.Op == syntax.InstMatch && y.Op == syntax.InstMatch:
			if s.read {
				return true
			}
		case reads(x) && reads(y) && common(x, y):
			visit(state{x.Out, y.Out, true})
		}
	}
	return false
}

func program(expression string) *syntax.Prog {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	p, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil
	}
	return p
}

// reads reports whether i consumes a character.
func reads(i *syntax.Inst) bool {
	switch i.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// without gives where i leads without consuming a character.
func without(i *syntax.Inst) []uint32 {
	switch i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return []uint32{i.Out, i.Arg}
	case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
		return []uint32{i.Out}
	}
	return nil
}

// common reports whether some character is accepted by both. If two sets of ranges
// meet, then at the lower end of a range of one of them.
func common(x, y *syntax.Inst) bool {
	for _, i := range []*syntax.Inst{x, y} {
		for at := 0; at < len(i.Rune); at += 2 {
			low := i.Rune[at]
			if x.MatchRune(low) && y.MatchRune(low) {
				return true
			}
			// A single character may stand for its other cases too.
			for r := unicode.SimpleFold(low); r != low; r = unicode.SimpleFold(r) {
				if x.MatchRune(r) && y.MatchRune(r) {
					return true
				}
			}
		}
	}
	return false
}
