package routes_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"sluice/gateway/routes"
)

// table builds a table from lines: name, host or "*", methods or "*", path. A route's
// value is its name.
func table(t *testing.T, lines ...string) *routes.Table[string] {
	t.Helper()
	built, err := build(lines...)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func build(lines ...string) (*routes.Table[string], error) {
	var entries []routes.Entry[string]
	for _, line := range lines {
		f := strings.Fields(line)
		c := routes.Config{Name: f[0], Path: f[3]}
		if f[1] != "*" {
			c.Host = f[1]
		}
		if f[2] != "*" {
			c.Methods = strings.Split(f[2], ",")
		}
		entries = append(entries, routes.Entry[string]{Config: c, Value: c.Name})
	}
	return routes.New(entries)
}

// match gives the name of the route, or in brackets what was found.
func match(t *routes.Table[string], method, host, path string) string {
	value, found := t.Match([]byte(host), []byte(method), []byte(path))
	if found != routes.Matched {
		return "(" + found.String() + ")" + value
	}
	return value
}

func TestMatch_Path(t *testing.T) {
	for _, test := range []struct {
		about  string
		routes []string
		want   map[string]string // by path
	}{
		{
			"a slash at the end is another path",
			[]string{"plain * * /a", "slash * * /a/", "lone * * /b", "root * * /"},
			map[string]string{"/a": "plain", "/a/": "slash", "/a//": "(no path)", "/b": "lone", "/b/": "(no path)", "/": "root", "//": "(no path)", "/A": "(no path)"},
		},
		{
			"a literal below a catch-all hides nothing",
			[]string{"literal * * /a/b", "all * * /a/{x:*}"},
			map[string]string{"/a/b": "literal", "/a/b/": "all", "/a/b/c": "all", "/a/": "all", "/a": "(no path)", "/a/bc": "all", "/a//": "all"},
		},
		{
			"the common beginning of two literals is nothing special",
			[]string{"c * * /abc", "d * * /abd", "one * * /{x}", "all * * /{x:*}"},
			map[string]string{"/abc": "c", "/abd": "d", "/ab": "one", "/a": "one", "/ab/": "all", "/abc/": "all", "/": "all"},
		},
		{
			"a catch-all gives way to one above it where it does not match",
			[]string{"inner * * /a/{x:*}", "outer * * /{x:*}"},
			map[string]string{"/a/b": "inner", "/a/": "inner", "/a": "outer", "/ab": "outer", "/": "outer"},
		},
		{
			"literal, parameter, catch-all, looking back",
			[]string{"literal * * /a/b/c", "parameter * * /a/{x}/d", "all * * /a/{x:*}", "tenant * * /{t}/b/e"},
			map[string]string{"/a/b/c": "literal", "/a/b/d": "parameter", "/a/b/e": "all", "/z/b/e": "tenant", "/z/b/d": "(no path)"},
		},
		{
			"names of parameters do not matter",
			[]string{"x * * /a/{id}/x", "y * * /a/{name}/y", "z * * /a/{other}"},
			map[string]string{"/a/1/x": "x", "/a/1/y": "y", "/a/1": "z", "/a/1/z": "(no path)"},
		},
		{
			"a parameter is never empty",
			[]string{"end * * /a/{x}", "slash * * /a/{x}/", "middle * * /b/{x}/c", "any * * /c/{x:[0-9]*}", "all * * /d/{x}/{y:*}"},
			map[string]string{"/a/": "(no path)", "/a//": "(no path)", "/a/1/": "slash", "/b//c": "(no path)", "/b/1/c": "middle", "/c/": "(no path)", "/c/1": "any", "/d//y": "(no path)", "/d/x//y": "all"},
		},
		{
			"an expression matches a whole segment and comes before a parameter without one",
			[]string{"number * * /a/{x:[0-9]+}", "word * * /a/{x:[a-z]+|-}", "other * * /a/{x}", "verb * * /a/{x:[^/]+:close}/now"},
			map[string]string{"/a/12": "number", "/a/ab": "word", "/a/-": "word", "/a/12a": "other", "/a/a1": "other", "/a/9:close/now": "verb", "/a/:close/now": "(no path)"},
		},
		{
			"the raw path counts",
			[]string{"literal * * /a%20b", "dots * * /a/../b", "at * * /v1/x:y@(z)"},
			map[string]string{"/a%20b": "literal", "/a b": "(no path)", "/a%2520b": "(no path)", "/b": "(no path)", "/a/../b": "dots", "/v1/x:y@(z)": "at"},
		},
		{
			"what is no path matches nothing",
			[]string{"all * * /{x:*}"},
			map[string]string{"": "(no path)", "*": "(no path)", "a": "(no path)", "http://a/": "(no path)", "/": "all", "/{x:*}": "all", "/\x00\xff": "all"},
		},
		{
			"the router's own words are plain text in a request",
			[]string{"one * * /{x}/a", "all * * /b/{x:*}"},
			map[string]string{"/{p}/a": "one", "/b/{r:*}": "all", "/{r:*}": "(no path)", "/{p}": "(no path)"},
		},
	} {
		table := table(t, test.routes...)
		for path, want := range test.want {
			if got := match(table, "GET", "example.com", path); got != want {
				t.Errorf("%s: %q: got %s, want %s", test.about, path, got, want)
			}
		}
	}
}

func TestMatch_PathDecidesBeforeMethod(t *testing.T) {
	table := table(t,
		"any * * /v1/charges",
		"get-all * GET /{x:*}",
		"post * POST /v1/refunds",
		"own * GET,X-OWN /v1/both",
		"both * * /v1/both")
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/v1/charges", "any"},
		{"PURGE", "/v1/charges", "any"},
		{"GET", "/v1/refunds", "get-all"}, // no route of that path takes GET
		{"POST", "/v1/refunds", "post"},
		{"PUT", "/v1/refunds", "(no method)"},
		{"HEAD", "/v1/refunds", "(no method)"},    // does not follow from GET
		{"OPTIONS", "/v1/refunds", "(no method)"}, // nor is it answered
		{"get", "/v1/refunds", "(no method)"},
		{"GET", "/v1/both", "own"},
		{"X-OWN", "/v1/both", "own"},
		{"POST", "/v1/both", "both"},
		{"", "/v1/both", "both"},
		{"POST", "/else", "(no method)"},
	} {
		if got := match(table, test.method, "", test.path); got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.method, test.path, got, test.want)
		}
	}
}

func TestMatch_Host(t *testing.T) {
	table := table(t,
		"api API.example.com. POST /v1/{x:*}",
		"four 127.0.0.1 * /v1/{x:*}",
		"six [2001:db8::A] * /v1/{x:*}",
		"any * GET /v1/{x:*}")
	for _, test := range []struct{ host, want string }{
		{"api.example.com", "api"},
		{"API.Example.COM", "api"},
		{"api.example.com:8443", "api"},
		{"api.example.com.", "api"},
		{"api.example.com.:8443", "api"},
		{"api.example.com:", "api"},
		{"127.0.0.1:80", "four"},
		{"[2001:DB8::a]", "six"},
		{"[2001:db8::a]:443", "six"},
		{"api.example.com..", "(no method)"},
		{"xapi.example.com", "(no method)"},
		{"example.com", "(no method)"},
		{"[2001:db8::a]x", "(no method)"},
		{"[2001:db8::a].", "(no method)"},
		{"[2001:db8::a", "(no method)"},
		{"[", "(no method)"},
		{"2001:db8::a", "(no method)"},
		{"", "(no method)"},
		{".", "(no method)"},
		{":80", "(no method)"},
		{"api.example.com" + strings.Repeat(".", 300), "(no method)"},
		{strings.Repeat("a", 1<<16), "(no method)"},
	} {
		if got := match(table, "POST", test.host, "/v1/charges"); got != test.want {
			t.Errorf("%.60q: got %s, want %s", test.host, got, test.want)
		}
	}
}

func TestMatch_HostFallsThrough(t *testing.T) {
	table := table(t,
		"api api.test POST /v1/charges",
		"any * GET /v1/charges",
		"rest * * /v1/refunds/{x:*}")
	for _, test := range []struct{ method, host, path, want string }{
		{"POST", "api.test", "/v1/charges", "api"},
		{"GET", "api.test", "/v1/charges", "any"},         // for the method
		{"POST", "api.test", "/v1/refunds/1", "rest"},     // for the path
		{"PUT", "api.test", "/v1/charges", "(no method)"}, // neither takes it
		{"POST", "other.test", "/v1/charges", "(no method)"},
		{"GET", "api.test", "/v2", "(no path)"},
	} {
		if got := match(table, test.method, test.host, test.path); got != test.want {
			t.Errorf("%s %s%s: got %s, want %s", test.method, test.host, test.path, got, test.want)
		}
	}
}

// A route for one host beats one for any, however specific their paths are.
func TestMatch_HostBeforePath(t *testing.T) {
	table := table(t, "host api.test * /{x:*}", "any * GET /v1/charges")
	if got := match(table, "GET", "api.test", "/v1/charges"); got != "host" {
		t.Errorf("got %s, want host", got)
	}
}

func TestMatch_NothingIsMatchedByAnEmptyTable(t *testing.T) {
	empty := table(t)
	if got := match(empty, "GET", "a", "/"); got != "(no path)" {
		t.Errorf("got %s, want (no path)", got)
	}
	if got := empty.Allow([]byte("a"), []byte("/")); got != "" {
		t.Errorf("got Allow %q, want none", got)
	}
	elsewhere := table(t, "x x.test * /")
	if got := match(elsewhere, "GET", "a", "/"); got != "(no path)" {
		t.Errorf("with routes for another host: got %s, want (no path)", got)
	}
}

func TestAllow(t *testing.T) {
	table := table(t,
		"write api.test POST,DELETE /a",
		"read * GET /a",
		"one * PUT /{x}",
		"number * POST /b/{x:[0-9]+}",
		"any * * /c",
		"get * GET /c/{x:*}",
		"post * POST /c/{x}")
	for _, test := range []struct{ host, path, want string }{
		{"api.test:1", "/a", "DELETE, GET, POST, PUT"},
		{"other.test", "/a", "GET, PUT"},
		{"api.test", "/z", "PUT"},
		{"", "/b/1", "POST"},
		{"", "/b/x", ""},
		{"", "/c", ""}, // everything is allowed
		{"", "/c/1", "GET, POST"},
		{"", "/c/1/2", "GET"},
		{"", "/d/1", ""},
		{"", "", ""},
	} {
		if got := table.Allow([]byte(test.host), []byte(test.path)); got != test.want {
			t.Errorf("%s%s: got %q, want %q", test.host, test.path, got, test.want)
		}
	}
}

// The values come back whatever the order of configuration.
func TestMatch_OrderOfConfigurationDoesNotMatter(t *testing.T) {
	lines := []string{
		"a * * /{x:*}", "b * * /a/{x:*}", "c * * /a/{x}", "d * * /a/b", "e * * /a", "f * * /a/", "g * * /{x}/b", "h * * /a/{x:[0-9]+}", "i * GET /a/b",
	}
	want := map[string]string{"/": "a", "/a": "e", "/a/": "f", "/a/b": "i", "/a/1": "h", "/a/x": "c", "/a/x/": "b", "/z/b": "g", "/z/c": "a"}
	for turn := range lines {
		table := table(t, append(lines[turn:len(lines):len(lines)], lines[:turn]...)...)
		for path, want := range want {
			if got := match(table, "GET", "", path); got != want {
				t.Errorf("turned by %d: %s: got %s, want %s", turn, path, got, want)
			}
		}
	}
}

func TestMatch_Concurrent(t *testing.T) {
	table := benchmarkTable(t, 100)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 2000 {
				n := i % 20
				path := fmt.Sprintf("/v1/object%d/{id}", n)
				value, found := table.Match([]byte("x"), []byte("GET"), []byte(path))
				if want := 4*n + 2; found != routes.Matched || value != want {
					t.Errorf("%s: got %d, %v, want %d", path, value, found, want)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestFound_HasWords(t *testing.T) {
	for f, want := range map[routes.Found]string{
		routes.NoPath: "no path", routes.NoMethod: "no method", routes.Matched: "matched", 9: "unknown",
	} {
		if got := f.String(); got != want {
			t.Errorf("%d: got %q, want %q", f, got, want)
		}
	}
}
