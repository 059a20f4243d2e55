package routes_test

import (
	"errors"
	"strings"
	"testing"

	"sluice/gateway/routes"
)

func TestConfig_DefaultNeedsNameAndPath(t *testing.T) {
	want := "name: is required\npath: is required"
	if err := routes.DefaultConfig().Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestConfig_Valid(t *testing.T) {
	for _, host := range []string{"", "a", "a.b-c.d_e", "A.TEST", "a.test.", "127.0.0.1", "[::1]", "[2001:DB8::1]", "xn--bcher-kva.example", strings.Repeat("a", 63) + ".b"} {
		if err := (routes.Config{Name: "x", Host: host, Path: "/"}).Validate(); err != nil {
			t.Errorf("host %q: got %v", host, err)
		}
	}
	for _, path := range []string{"/", "/a", "/a/", "/a/{x}", "/a/{x}/", "/{x:*}", "/a/{_x1:*}", "/{x}/{y}/{z:*}", "/a-._~!$&'()*+,;=:@", "/%aF",
		"/{x:[^/]+}", `/{x:\d{2,3}}`, `/{x:[\{\}]}/{y:a/b}`, `/{x:\Qa}`, "/{x:(?i)a:b}", "/{x:é}"} {
		if err := (routes.Config{Name: "x", Methods: []string{"GET", "M-SEARCH"}, Path: path}).Validate(); err != nil {
			t.Errorf("path %q: got %v", path, err)
		}
	}
}

func TestConfig_Faults(t *testing.T) {
	const whole = "which is a whole segment whose braces pair up; {name:regexp} can match a part of one"
	for _, test := range []struct {
		about  string
		config routes.Config
		want   []string
	}{
		{"long name", routes.Config{Name: strings.Repeat("n", 65)}, []string{
			`name: "` + strings.Repeat("n", 40) + `" is too long, at most 64 characters`}},
		{"odd name", routes.Config{Name: "a.b"}, []string{
			`name: "a.b" holds '.', letters and digits are allowed, and after the first - and _`}},
		{"name with a dash first", routes.Config{Name: "-a"}, []string{
			`name: "-a" holds '-', letters and digits are allowed, and after the first - and _`}},

		{"port", routes.Config{Host: "a.test:80"}, []string{
			`host: "a.test:80" has a colon, a host stands without port, an IPv6 address in brackets`}},
		{"wildcard", routes.Config{Host: "*.a.test"}, []string{
			`host: "*.a.test" has a wildcard, a host is exact, or "" for any`}},
		{"odd host", routes.Config{Host: "a b"}, []string{
			`host: "a b" holds ' ', letters, digits, - and _ are allowed, and dots between`}},
		{"host in another script", routes.Config{Host: "bücher.example"}, []string{
			`host: "bücher.example" holds 'ü', letters, digits, - and _ are allowed, and dots between`}},
		{"empty label", routes.Config{Host: "a..b"}, []string{
			`host: "a..b" has a label of 0 characters, 1 to 63 are allowed between dots`}},
		{"only a dot", routes.Config{Host: "."}, []string{
			`host: "." has a label of 0 characters, 1 to 63 are allowed between dots`}},
		{"long host", routes.Config{Host: strings.Repeat("a.", 127)}, nil},
		{"too long a host", routes.Config{Host: strings.Repeat("a.", 127) + "b"}, []string{
			`host: "` + strings.Repeat("a.", 20) + `" is too long, at most 253 characters`}},
		{"brackets", routes.Config{Host: "[::1"}, []string{
			`host: "[::1" is not an IPv6 address in brackets, such as [2001:db8::1]`}},
		{"IPv4 in brackets", routes.Config{Host: "[127.0.0.1]"}, []string{
			`host: "[127.0.0.1]" is not an IPv6 address in brackets, such as [2001:db8::1]`}},
		{"zone", routes.Config{Host: "[fe80::1%eth0]"}, []string{
			`host: "[fe80::1%eth0]" is not an IPv6 address in brackets, such as [2001:db8::1]`}},
		{"long form", routes.Config{Host: "[0:0::1]"}, []string{
			`host: "[0:0::1]" is not how the address is commonly written, [::1]`}},

		{"methods", routes.Config{Methods: []string{"get", "GET", "", "GET", "CONNECT", "G T", "*"}}, []string{
			`methods[0]: "get" is not a method, upper-case letters and - are allowed`,
			`methods[2]: "" is not a method, upper-case letters and - are allowed`,
			`methods[3]: "GET" is methods[1] too, once is enough`,
			`methods[4]: "CONNECT" opens a tunnel and has no path, any other method is allowed`,
			`methods[5]: "G T" is not a method, upper-case letters and - are allowed`,
			`methods[6]: "*" is not a method, upper-case letters and - are allowed`}},
		{"long method", routes.Config{Methods: []string{strings.Repeat("M", 33)}}, []string{
			`methods[0]: "` + strings.Repeat("M", 33) + `" is too long, at most 32 characters`}},

		{"no slash", routes.Config{Path: "a"}, []string{`path: "a" must begin with a slash`}},
		{"long path", routes.Config{Path: "/" + strings.Repeat("a", 1024)}, []string{
			`path: "/` + strings.Repeat("a", 39) + `" is too long, at most 1024 characters`}},
		{"two slashes", routes.Config{Path: "/a//b"}, []string{`path: "/a//b" has two slashes in a row, one is allowed`}},
		{"two slashes at the end", routes.Config{Path: "/a//"}, []string{`path: "/a//" has two slashes in a row, one is allowed`}},
		{"query", routes.Config{Path: "/a?b"}, []string{`path: "/a?b": a?b holds '?', which a path has only percent-encoded`}},
		{"space", routes.Config{Path: "/a b"}, []string{`path: "/a b": a b holds ' ', which a path has only percent-encoded`}},
		{"another script", routes.Config{Path: "/é"}, []string{`path: "/é": é holds 'é', which a path has only percent-encoded`}},
		{"percent", routes.Config{Path: "/%2"}, []string{`path: "/%2": %2 has a % without two hexadecimal digits`}},
		{"not hexadecimal", routes.Config{Path: "/%2G"}, []string{`path: "/%2G": %2G has a % without two hexadecimal digits`}},
		{"several", routes.Config{Path: "/%/ //{}"}, []string{
			`path: "/%/ //{}": % has a % without two hexadecimal digits`,
			`path: "/%/ //{}":   holds ' ', which a path has only percent-encoded`,
			`path: "/%/ //{}" has two slashes in a row, one is allowed`,
			`path: "/%/ //{}": {} has "" for a name, letters, digits and _ are allowed, a letter or _ first`}},
		{"optional", routes.Config{Path: "/a/{x?}"}, []string{
			`path: "/a/{x?}": {x?} is optional, which is not supported, write a route for each path`}},
		{"optional with an expression", routes.Config{Path: "/a/{x?:b}"}, []string{
			`path: "/a/{x?:b}": {x?:b} is optional, which is not supported, write a route for each path`}},
		{"part of a segment", routes.Config{Path: "/v{x}"}, []string{
			`path: "/v{x}": v{x} has a brace in it, a parameter is a whole segment; {name:regexp} can match a part of one`}},
		{"beginning of a segment", routes.Config{Path: "/{x}.json"}, []string{
			`path: "/{x}.json": {x}.json is not one parameter, ` + whole}},
		{"two in a segment", routes.Config{Path: "/{x:a}-{y}"}, []string{
			`path: "/{x:a}-{y}": {x:a}-{y} is not one parameter, ` + whole}},
		{"open", routes.Config{Path: "/{x/a"}, []string{`path: "/{x/a": {x/a is not one parameter, ` + whole}},
		{"braces that do not pair up", routes.Config{Path: "/{x:[}]}"}, []string{
			`path: "/{x:[}]}": {x:[}]} is not one parameter, ` + whole}},
		{"odd name of a parameter", routes.Config{Path: "/{1x}"}, []string{
			`path: "/{1x}": {1x} has "1x" for a name, letters, digits and _ are allowed, a letter or _ first`}},
		{"same name twice", routes.Config{Path: "/{x}/{x:*}"}, []string{
			`path: "/{x}/{x:*}" has two parameters {x}, each has a name of its own`}},
		{"no expression", routes.Config{Path: "/{x:}"}, []string{
			`path: "/{x:}": {x:} has no expression, {x} is a parameter without one`}},
		{"bad expression", routes.Config{Path: "/{x:a(}"}, []string{
			"path: \"/{x:a(}\": {x:a(}: error parsing regexp: missing closing ): `a(`, RE2 syntax is allowed"}},
		{"expression that leaves its place", routes.Config{Path: "/{x:a)(b}"}, []string{
			"path: \"/{x:a)(b}\": {x:a)(b}: error parsing regexp: unexpected ): `a)(b`, RE2 syntax is allowed"}},
		{"catch-all in the middle", routes.Config{Path: "/{x:*}/a"}, []string{
			`path: "/{x:*}/a" goes on after its catch-all, which is allowed at the end only`}},
		{"catch-all with a slash", routes.Config{Path: "/{x:*}/"}, []string{
			`path: "/{x:*}/" goes on after its catch-all, which is allowed at the end only`}},
	} {
		c := test.config
		if c.Name == "" {
			c.Name = "x"
		}
		if c.Path == "" {
			c.Path = "/"
		}
		err := c.Validate()
		got := ""
		if err != nil {
			got = err.Error()
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				var f *routes.Fault
				if !errors.As(e, &f) {
					t.Errorf("%s: %v is no Fault", test.about, e)
				}
			}
		}
		if want := strings.Join(test.want, "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.about, got, want)
		}
	}
}
