package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Place is where a setting comes from.
type Place struct {
	Source string // the file's name as it was given, GATEWAY_X, or --x
	Line   int    // in the file, from 1; 0: no line in particular
	Path   string // the setting, as in upstreams[payments].connections.max; "": the whole

	origin origin
}

// origin is the kind of a source; where two set the same, the later one counts.
type origin uint8

const (
	fromFile origin = iota
	fromEnvironment
	fromFlag
)

// String gives "file:line: path", without what is not known.
func (p Place) String() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line))
	}
	if p.Path != "" {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(p.Path)
	}
	return b.String()
}

// Fault is one thing wrong with a configuration.
type Fault struct {
	Place
	Text string // the value, what is wrong with it and what is allowed
}

// Error gives the fault in one line: "file:line: path: text".
func (f *Fault) Error() string { return line(f.Place, f.Text) }

// Faults is everything wrong with a configuration, in the order of file,
// environment and flags, by line in the file.
type Faults []*Fault

// Error gives one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the faults one by one.
func (f Faults) Unwrap() []error {
	list := make([]error, len(f))
	for i, fault := range f {
		list[i] = fault
	}
	return list
}

// Remark is something that is no fault but that an operator should know, such as a
// setting that this version does not act on.
type Remark struct {
	Place
	Text string
}

// String gives the remark in one line: "file:line: path: text".
func (r Remark) String() string { return line(r.Place, r.Text) }

func line(p Place, text string) string {
	if place := p.String(); place != "" {
		return place + ": " + text
	}
	return text
}

// before orders places as they are reported.
func before(a, b Place) int {
	return cmp.Or(
		cmp.Compare(a.origin, b.origin),
		cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Source, b.Source),
	)
}

func inOrder(faults []*Fault, remarks []Remark) {
	slices.SortStableFunc(faults, func(a, b *Fault) int { return before(a.Place, b.Place) })
	slices.SortStableFunc(remarks, func(a, b Remark) int { return before(a.Place, b.Place) })
}

// quote gives text from outside for a message: quoted, without control characters
// and cut short.
func quote(text string) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}

// plain gives text from outside as it is where that can mislead nobody.
func plain(text string) string {
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`"'[]:,`, r)
	}
	if text == "" || len(text) > 60 || strings.ContainsFunc(text, odd) {
		return quote(text)
	}
	return text
}

// known says which words are allowed in place of text: the one that was probably
// meant, or all of them.
func known(text string, words []string) string {
	if word := nearest(text, words); word != "" {
		return "did you mean " + quote(word) + "?"
	}
	const most = 40
	safe := make([]string, 0, min(len(words), most+1))
	for _, word := range words[:min(len(words), most)] {
		safe = append(safe, plain(word))
	}
	switch {
	case len(words) == 0:
		return "there are none"
	case len(words) > most:
		safe = append(safe, "and others")
	}
	return "known are " + strings.Join(safe, ", ")
}

// nearest gives the word that text was probably meant to be: at most one letter in
// three is wrong. It gives "" when there is none.
func nearest(text string, words []string) string {
	if text == "" {
		return ""
	}
	best, least := "", max(1, min(len(text)/3, 3))+1
	for _, word := range words {
		if strings.EqualFold(text, word) {
			return word
		}
		if far := distance(strings.ToLower(text), strings.ToLower(word), least); far < least {
			best, least = word, far
		}
	}
	return best
}

// distance counts the letters to add, drop, change or swap with their neighbour to
// make b of a (Damerau-Levenshtein, optimal string alignment). Above bound it only
// says that it is above.
func distance(a, b string, bound int) int {
	if len(a) > len(b)+bound || len(b) > len(a)+bound {
		return bound + 1
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := old[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, old[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}
