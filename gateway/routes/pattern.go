package routes

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// segment is what stands between two slashes of a pattern.
type segment struct {
	parameter  bool
	text       string         // the literal, or the source of the expression
	expression *regexp.Regexp // anchored; nil: every parameter of at least one byte
}

// end is how a pattern ends, after its segments.
type end uint8

const (
	endPlain end = iota // "/a": no slash after the last segment
	endSlash            // "/a/", and "/", which has no segments
	endRest             // "/a/{rest:*}"
)

// pattern is a parsed path.
type pattern struct {
	segments []segment
	end      end
}

// match compares p with a path that begins with a slash, segment by segment.
func (p *pattern) match(path []byte) bool {
	path = path[1:]
	for i := range p.segments {
		this, rest, more := bytes.Cut(path, slash)
		if !p.segments[i].match(this) {
			return false
		}
		if !more {
			return i == len(p.segments)-1 && p.end == endPlain
		}
		path = rest
	}
	return p.end == endRest || p.end == endSlash && len(path) == 0
}

func (s *segment) match(text []byte) bool {
	if !s.parameter {
		return string(text) == s.text
	}
	return len(text) > 0 && (s.expression == nil || s.expression.Match(text))
}

// ranks orders patterns by how specific they are, as strings: one character for each
// segment and one for the end, the least for the most specific. finer tells
// parameters with an expression from those without.
func (p *pattern) ranks() (ranks, finer string) {
	const literal, expression, parameter, rest = '0', '1', '2', '3'
	var coarse, fine []byte
	for _, s := range p.segments {
		switch {
		case !s.parameter:
			coarse, fine = append(coarse, literal), append(fine, literal)
		case s.expression != nil:
			coarse, fine = append(coarse, parameter), append(fine, expression)
		default:
			coarse, fine = append(coarse, parameter), append(fine, parameter)
		}
	}
	last := byte(literal)
	if p.end == endRest {
		last = rest
	}
	return string(append(coarse, last)), string(append(fine, last))
}

// parsePattern reads a path as it stands in a configuration. wrong says everything
// that is wrong with it.
func parsePattern(path string) (p pattern, wrong []string) {
	if path == "" {
		return p, []string{"is required"}
	}
	if len(path) > longestPath {
		return p, []string{fmt.Sprintf("%.40q is too long, at most %d characters", path, longestPath)}
	}
	if path[0] != '/' {
		return p, []string{fmt.Sprintf("%q must begin with a slash", path)}
	}
	var names []string
	for rest, more := path[1:], true; more; {
		if p.end == endRest {
			return p, append(wrong, fmt.Sprintf("%q goes on after its catch-all, which is allowed at the end only", path))
		}
		var this string
		if this, rest, more = cutSegment(rest); this == "" {
			if more {
				wrong = append(wrong, fmt.Sprintf("%q has two slashes in a row, one is allowed", path))
			} else {
				p.end = endSlash
			}
			continue
		}
		s, name, err := parseSegment(this)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%q: %s", path, err))
			continue
		case s.parameter && slices.Contains(names, name):
			wrong = append(wrong, fmt.Sprintf("%q has two parameters {%s}, each has a name of its own", path, name))
		case s.parameter && s.text == "*":
			p.end = endRest
		default:
			p.segments = append(p.segments, s)
		}
		if s.parameter {
			names = append(names, name)
		}
	}
	return p, wrong
}

// cutSegment cuts at the first slash that is not inside braces.
func cutSegment(path string) (this, rest string, more bool) {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '{':
			i = closing(path, i)
		case '/':
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

// closing gives the place of the brace that closes the one at open, len(text) if none
// does. Braces inside, those of an expression, pair up or stand behind a backslash.
func closing(text string, open int) int {
	depth := 0
	for i := open; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// parseSegment reads what cutSegment gave. A catch-all has "*" for its text.
func parseSegment(text string) (s segment, name string, err error) {
	if text[0] != '{' {
		return segment{text: text}, "", checkText(text)
	}
	if closing(text, 0) != len(text)-1 {
		return s, "", fmt.Errorf("%s is not one parameter, which is a whole segment whose braces pair up; {name:regexp} can match a part of one", text)
	}
	name, expression, has := strings.Cut(text[1:len(text)-1], ":")
	switch {
	case strings.HasSuffix(name, "?"):
		return s, "", fmt.Errorf("%s is optional, which is not supported, write a route for each path", text)
	case !isName(name):
		return s, "", fmt.Errorf("%s has %q for a name, letters, digits and _ are allowed, a letter or _ first", text, name)
	case has && expression == "":
		return s, "", fmt.Errorf("%s has no expression, {%s} is a parameter without one", text, name)
	case !has || expression == "*":
		return segment{parameter: true, text: expression}, name, nil
	}
	s = segment{parameter: true, text: expression}
	if s.expression, err = whole(expression); err != nil {
		return s, "", fmt.Errorf("%s: %w, RE2 syntax is allowed", text, err)
	}
	return s, name, nil
}

// whole compiles an expression so that it matches a whole text only. It is parsed
// alone first and written anew: "a)(b" is wrong, and "\Qa" would swallow what follows.
func whole(expression string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + tree.String() + `)\z`)
}

// checkText wants a literal to be what RFC 3986 allows between slashes: nothing else
// could match a request.
func checkText(text string) error {
	for i, r := range text {
		switch {
		case r == '{' || r == '}':
			return fmt.Errorf("%s has a brace in it, a parameter is a whole segment; {name:regexp} can match a part of one", text)
		case r == '%':
			if len(text) < i+3 || !isHex(text[i+1]) || !isHex(text[i+2]) {
				return fmt.Errorf("%s has a %% without two hexadecimal digits", text)
			}
		case !isLetter(r) && !isDigit(r) && !strings.ContainsRune("-._~!$&'()*+,;=:@", r):
			return fmt.Errorf("%s holds %q, which a path has only percent-encoded", text, r)
		}
	}
	return nil
}

func isName(name string) bool {
	for i, r := range name {
		if !isLetter(r) && r != '_' && (i == 0 || !isDigit(r)) {
			return false
		}
	}
	return name != ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

var slash = []byte("/")
