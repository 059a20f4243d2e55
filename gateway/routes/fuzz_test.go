package routes_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sluice/gateway/routes"
)

// Whatever is asked, the table answers as the model does.
func FuzzMatch(f *testing.F) {
	var entries []routes.Entry[string]
	var m model
	for i, line := range []string{
		" * /", " * /{r:*}", " GET /ab", " * /abc", " POST /abd", " * /ab/", " GET /ab/{x}", " POST /ab/{x:[0-9]+}", " * /ab/{x}/c", " PUT /ab/{x}/{r:*}",
		" POST /{t}/ab", " GET /{t}/{x}/c/", " * /a/b/c", " * /a/b/d/{r:*}",
		"a.test * /ab", "a.test POST /{x}/", "a.test GET /ab/{r:*}", "[::1] * /{x:[a-z0-9]+}",
	} {
		field := strings.Split(line, " ")
		c := routes.Config{Name: fmt.Sprintf("r%d", i), Host: field[0], Path: field[2]}
		if field[1] != "*" {
			c.Methods = []string{field[1]}
		}
		entries = append(entries, routes.Entry[string]{Config: c, Value: c.Name})
		m = append(m, newModelRoute(c))
	}
	table, err := routes.New(entries)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a.test", "GET", "/ab/1/c")
	f.Add("[::1]", "POST", "/ab//")
	f.Add("", "", "")
	f.Add("x", "GET", "/a/b/d/e//f/")
	f.Add("a.test", "PUT", strings.Repeat("/ab", 3000))
	f.Add("[::1]", "DELETE", "/"+strings.Repeat("a", 9000))
	f.Fuzz(func(t *testing.T, host, method, path string) {
		name := strings.ToLower(host)
		switch {
		case name == "a.test" || name == "[::1]":
		case strings.ContainsAny(host, ":[."):
			table.Match([]byte(host), []byte(method), []byte(path)) // forms that the model does not know; must not fail
			return
		}
		best, want, allow := m.match(name, method, path)
		got, found := table.Match([]byte(host), []byte(method), []byte(path))
		if found != want || want == routes.Matched && got != best[0] {
			t.Errorf("%s %q %q: got %v %q, want %v %q", method, host, path, found, got, want, best)
		}
		if found == routes.Matched {
			return
		}
		if got := table.Allow([]byte(host), []byte(path)); got != allow {
			t.Errorf("%q %q: got Allow %q, want %q", host, path, got, allow)
		}
	})
}

// Whatever is configured, New builds a table or says why not, and does not panic; what
// a single route is refused for is what Validate says.
func FuzzNew(f *testing.F) {
	f.Add("", "", "/a\n/a/\n/{x}\n/{x:*}\n/a/{x:*}", "/a")
	f.Add("a.test:80", "get", "//\n/{\n/}\n/{x}{y}\n/{x:{}}\n/{:*}\n/{x:(}", "/")
	f.Add("[::1]", "GET", "/{x:[0-9]{1,3}}\n/{y:[a-z]+}/\n/{x:a/b}/{x?}\n/{r:*}/", "/12")
	f.Add("a.", "X-Y", "/ab{x}\n/%2f\n/a%\n/{x:\\}\n/{x:\\Q}", "/%2f")
	f.Add("é", "\x00", "/\xff\n/{\xff}\n/{x:\xff}\n/{x:(?i)\u212a}", "/\xff")
	f.Fuzz(func(t *testing.T, host, method, paths, path string) {
		lines := strings.Split(paths, "\n")
		if len(lines) > 12 {
			return
		}
		var entries []routes.Entry[string]
		for i, line := range lines {
			c := routes.Config{Name: fmt.Sprintf("r%d", i), Path: line}
			if i%2 == 1 {
				c.Host = host
			}
			if method != "" && i%3 == 1 {
				c.Methods = []string{method}
			}
			e := routes.Entry[string]{Config: c, Value: c.Name}
			entries = append(entries, e)

			_, err := routes.New([]routes.Entry[string]{e})
			valid := c.Validate()
			if (err == nil) != (valid == nil) {
				t.Errorf("%+v: Validate says %v, New %v", c, valid, err)
			}
		}
		table, err := routes.New(entries)
		if err != nil {
			for _, c := range conflictsOf(t, err) {
				if c.Index < 0 || c.Index >= len(lines) || c.Other >= c.Index || c.Field == "" || c.Text == "" {
					t.Errorf("%q: odd conflict %+v", lines, c)
				}
			}
			return
		}
		if value, found := table.Match([]byte(host), []byte(method), []byte(path)); (found == routes.Matched) != (value != "") {
			t.Errorf("%q: got %q and %v", path, value, found)
		}
		table.Allow([]byte(host), []byte(path))
	})
}

// An expression matches a segment exactly if it matches as a whole, and two that match
// the same segment cannot be in the same place.
func FuzzNew_Expressions(f *testing.F) {
	f.Add("[0-9]+", "[a-f0-9]{2,3}", "12")
	f.Add("a|ab", "ab?c?", "ab")
	f.Add(`\Qa`, `(?i)A\b`, "a")
	f.Add("^a$", `\x{61}`, "a")
	f.Add("(?i)k", "\u212a", "K")
	f.Add(`[^/{}]*\{`, `.\{`, "a{")
	f.Add("(?s).", "[^a]", "\n")
	f.Add("(?m)a$^b", "(?U)a+", "aa")
	f.Fuzz(func(t *testing.T, one, other, segment string) {
		if one == "*" || other == "*" || segment == "" || strings.Contains(segment, "/") {
			return
		}
		build := func(expressions ...string) (*routes.Table[string], error) {
			var entries []routes.Entry[string]
			for i, e := range expressions {
				c := routes.Config{Name: fmt.Sprintf("r%d", i), Path: "/{p:" + e + "}"}
				entries = append(entries, routes.Entry[string]{Config: c, Value: c.Name})
			}
			return routes.New(entries)
		}
		both := true
		for _, e := range []string{one, other} {
			table, err := build(e)
			if err != nil {
				var c *routes.Conflict
				if !errors.As(err, &c) {
					t.Errorf("%q: %v is no Conflict", e, err)
				}
				return
			}
			_, found := table.Match(nil, []byte("GET"), []byte("/"+segment))
			longest := regexp.MustCompile(e)
			longest.Longest()
			at := longest.FindStringIndex(segment)
			want := at != nil && at[0] == 0 && at[1] == len(segment)
			if got := found == routes.Matched; got != want {
				t.Errorf("%q and %q: got %v, want %v", e, segment, got, want)
			}
			both = both && want
		}
		if _, err := build(one, other); err == nil && both {
			t.Errorf("%q and %q both match %q and do not conflict", one, other, segment)
		}
	})
}
