package routes_test

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/gateway/routes"
)

// model decides as the package comment says, one request against every route: the
// path as one regular expression, the order as a list of numbers.
type model []modelRoute

type modelRoute struct {
	routes.Config
	path      *regexp.Regexp
	coarse    []int // by segment: literal, parameter, catch-all
	fine      []int // the same, with expressions
	anyMethod int
}

func newModelRoute(c routes.Config) modelRoute {
	m := modelRoute{Config: c}
	if len(c.Methods) == 0 {
		m.anyMethod = 1
	}
	var whole strings.Builder
	for _, s := range strings.Split(c.Path, "/")[1:] { // no expression here has a slash
		whole.WriteString("/")
		coarse, fine := 0, 0
		switch {
		case strings.HasSuffix(s, ":*}"):
			coarse, fine = 2, 3
			whole.WriteString("(?s:.*)")
		case strings.Contains(s, ":"):
			coarse, fine = 1, 1
			whole.WriteString("(?:" + strings.TrimSuffix(s[strings.Index(s, ":")+1:], "}") + ")")
		case strings.HasPrefix(s, "{"):
			coarse, fine = 1, 2
			whole.WriteString("[^/]+")
		default:
			whole.WriteString(regexp.QuoteMeta(s))
		}
		m.coarse, m.fine = append(m.coarse, coarse), append(m.fine, fine)
	}
	m.path = regexp.MustCompile(`\A` + whole.String() + `\z`)
	return m
}

func (m *modelRoute) compare(other *modelRoute) int {
	return cmp.Or(
		slices.Compare(m.coarse, other.coarse),
		slices.Compare(m.fine, other.fine),
		cmp.Compare(m.anyMethod, other.anyMethod),
	)
}

// match gives the name of the best route, all that are as good, and the value of
// Allow.
func (m model) match(host, method, path string) (best []string, found routes.Found, allow string) {
	var methods []string
	for _, h := range []string{host, ""} {
		var candidates []*modelRoute
		for i := range m {
			r := &m[i]
			if r.Host != h || !r.path.MatchString(path) {
				continue
			}
			methods = append(methods, r.Methods...)
			if len(r.Methods) == 0 || slices.Contains(r.Methods, method) {
				candidates = append(candidates, r)
			}
		}
		slices.SortStableFunc(candidates, (*modelRoute).compare)
		for _, c := range candidates {
			if c.compare(candidates[0]) == 0 {
				best = append(best, c.Name)
			}
		}
		if best != nil {
			return best, routes.Matched, ""
		}
		if h == "" {
			break
		}
	}
	slices.Sort(methods)
	if len(methods) > 0 {
		found = routes.NoMethod
	}
	return nil, found, strings.Join(slices.Compact(methods), ", ")
}

// Few words, with common beginnings, so that patterns and paths meet.
var (
	literals    = []string{"a", "b", "ab", "ac", "abc", "abd", "1", "12", "a%20"}
	expressions = []string{"[0-9]+", "[ab]+", `a\w*`, "(?:a|ab)", "1|a", "12", "[0-9%]{2,4}"}
	segments    = append([]string{"", "", "x", "a1", "{p}", "{r:*}", "a%2", "a%21", "\xff"}, literals...)
	hosts       = []string{"", "a.test", "b.test"}
	methods     = []string{"GET", "POST", "X-Y"}
)

func drawPath(t *rapid.T) string {
	var b strings.Builder
	for i := range rapid.IntRange(0, 4).Draw(t, "segments") {
		b.WriteByte('/')
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			fmt.Fprintf(&b, "{p%d}", i)
		case 2:
			fmt.Fprintf(&b, "{p%d:%s}", i, rapid.SampledFrom(expressions).Draw(t, "expression"))
		default:
			b.WriteString(rapid.SampledFrom(literals).Draw(t, "literal"))
		}
	}
	ends := []string{"", "", "/", "/{rest:*}"}
	if b.Len() == 0 {
		ends = ends[2:]
	}
	b.WriteString(rapid.SampledFrom(ends).Draw(t, "end"))
	return b.String()
}

// drawTable draws routes and takes those out that conflict with earlier ones.
func drawTable(t *rapid.T) (*routes.Table[string], model) {
	var entries []routes.Entry[string]
	for i := range rapid.IntRange(1, 12).Draw(t, "routes") {
		c := routes.Config{
			Name:    fmt.Sprintf("r%d", i),
			Host:    rapid.SampledFrom(hosts).Draw(t, "host"),
			Methods: rapid.SliceOfNDistinct(rapid.SampledFrom(methods), 0, 2, rapid.ID).Draw(t, "methods"),
			Path:    drawPath(t),
		}
		entries = append(entries, routes.Entry[string]{Config: c, Value: c.Name})
	}
	table, err := routes.New(entries)
	for _, c := range slices.Backward(conflictsOf(t, err)) {
		if c.Other < 0 {
			t.Fatalf("%+v: %v", entries[c.Index].Config, c)
		}
		entries = slices.Delete(entries, c.Index, c.Index+1)
	}
	if err != nil {
		if table, err = routes.New(entries); err != nil {
			t.Fatalf("what does not conflict still does: %v", err)
		}
	}
	var m model
	for _, e := range entries {
		m = append(m, newModelRoute(e.Config))
	}
	return table, m
}

func conflictsOf(t interface{ Fatalf(string, ...any) }, err error) []*routes.Conflict {
	if err == nil {
		return nil
	}
	var list []*routes.Conflict
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var c *routes.Conflict
		if !errors.As(e, &c) {
			t.Fatalf("%v is no Conflict", e)
		}
		list = append(list, c)
	}
	return list
}

func TestMatch_AgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, m := drawTable(t)
		for range 40 {
			var b strings.Builder
			for range rapid.IntRange(1, 5).Draw(t, "segments") {
				b.WriteString("/" + rapid.SampledFrom(segments).Draw(t, "segment"))
			}
			host := rapid.SampledFrom(hosts).Draw(t, "host")
			method := rapid.SampledFrom(append([]string{"PUT"}, methods...)).Draw(t, "method")
			check(t, table, m, host, method, b.String())
		}
	})
}

func check(t interface{ Fatalf(string, ...any) }, table *routes.Table[string], m model, host, method, path string) {
	best, want, allow := m.match(host, method, path)
	got, found := table.Match([]byte(host), []byte(method), []byte(path))
	if found != want {
		t.Fatalf("%s %q %q: got %v (%q), want %v (%q)", method, host, path, found, got, want, best)
	}
	if len(best) > 1 {
		t.Fatalf("%s %q %q: routes %q match with the same right and do not conflict", method, host, path, best)
	}
	if want == routes.Matched && got != best[0] {
		t.Fatalf("%s %q %q: got %q, want %q", method, host, path, got, best[0])
	}
	if want == routes.Matched {
		return
	}
	if got := table.Allow([]byte(host), []byte(path)); got != allow {
		t.Fatalf("%q %q: got Allow %q, want %q", host, path, got, allow)
	}
}

// A pair is refused only if some path could be meant for both.
func TestNew_RefusesOnlyWhatMayMeet(t *testing.T) {
	texts := []string{"a", "b", "ab", "ba", "aab", "1", "12", "0", "x", "aX", "xa", "11"}
	rapid.Check(t, func(t *rapid.T) {
		pair := []string{
			rapid.SampledFrom(expressions).Draw(t, "one"),
			rapid.SampledFrom(expressions).Draw(t, "other"),
		}
		var entries []routes.Entry[int]
		for i, e := range pair {
			c := routes.Config{Name: fmt.Sprint("r", i), Path: "/{p:" + e + "}"}
			entries = append(entries, routes.Entry[int]{Config: c})
		}
		_, err := routes.New(entries)
		one, other := regexp.MustCompile(`\A(?:`+pair[0]+`)\z`), regexp.MustCompile(`\A(?:`+pair[1]+`)\z`)
		meet := slices.ContainsFunc(texts, func(s string) bool { return one.MatchString(s) && other.MatchString(s) })
		if refused := err != nil; refused != meet {
			t.Fatalf("%q: got refused %v, want %v", pair, refused, meet)
		}
	})
}
