package routes_test

import (
	"slices"
	"testing"

	"sluice/gateway/routes"
)

func TestNew_Conflicts(t *testing.T) {
	const exclude = "and neither is more specific; expressions in the same place must exclude each other"
	for _, test := range []struct {
		about  string
		routes []string
		want   []routes.Conflict
	}{
		{"same path", []string{"a * * /x", "b * * /x"}, []routes.Conflict{
			{1, 0, "path", `"/x" for any method is taken by route "a", one of them can go`}}},
		{"same path, one method in common", []string{"a * GET,POST /x", "b * PUT,POST /x"}, []routes.Conflict{
			{1, 0, "path", `"/x" for POST is taken by route "a", one of them can go`}}},
		{"same path, other methods", []string{"a * GET /x", "b * POST /x", "c * * /x"}, nil},
		{"same path, other names", []string{"a * * /x/{id}", "b * * /x/{name}"}, []routes.Conflict{
			{1, 0, "path", `"/x/{name}" for any method is taken by route "a", one of them can go`}}},
		{"same catch-all", []string{"a * * /x/{id:*}", "b * * /x/{name:*}"}, []routes.Conflict{
			{1, 0, "path", `"/x/{name:*}" for any method is taken by route "a", one of them can go`}}},
		{"same path, other end", []string{"a * * /x", "b * * /x/", "c * * /x/{r:*}", "d * * /{x}", "e * * /{x}/"}, nil},
		{"same host, otherwise written", []string{"a A.test * /x", "b a.test. * /x"}, []routes.Conflict{
			{1, 0, "path", `"/x" for any method is taken by route "a", one of them can go`}}},
		{"other hosts", []string{"a a.test * /x", "b b.test * /x", "c * * /x"}, nil},
		{"same expression", []string{"a * * /{id:[0-9]+}", "b * * /{number:[0-9]+}"}, []routes.Conflict{
			{1, 0, "path", `"/{number:[0-9]+}" for any method is taken by route "a", one of them can go`}}},
		{"expressions that meet", []string{"a * GET /{x:[a-f]+}", "b * GET /{x:[f-z]+}"}, []routes.Conflict{
			{1, 0, "path", `"/{x:[f-z]+}" and "/{x:[a-f]+}" of route "a" can match the same path for GET, ` + exclude}}},
		{"expressions that meet, other methods", []string{"a * GET /{x:[a-f]+}", "b * POST /{x:[f-z]+}", "c * * /{x:f}"}, nil},
		{"expressions that exclude each other", []string{"a * * /{x:[a-f]+}", "b * * /{x:[g-z]+}", "c * * /{x}"}, nil},
		{"expressions that meet in nothing, which no parameter is", []string{"a * * /{x:a*}", "b * * /{x:b*}"}, nil},
		{"expressions that meet in another case", []string{"a * * /{x:(?i)k}", "b * * /{x:[a-z]}"}, []routes.Conflict{
			{1, 0, "path", `"/{x:[a-z]}" and "/{x:(?i)k}" of route "a" can match the same path for any method, ` + exclude}}},
		{"expressions with anchors", []string{"a * * /{x:^a$}", `b * * /{x:\bb\b}`}, nil},
		{"expressions too large to compare", []string{"a * * /{x:a{1000}b{1000}}", "b * * /{x:c{1000}d{1000}}"}, []routes.Conflict{
			{1, 0, "path", `"/{x:c{1000}d{1000}}" and "/{x:a{1000}b{1000}}" of route "a" can match the same path for any method, ` + exclude}}},
		{"one of two places excludes", []string{"a * * /{x:1}/{y:a+}", "b * * /{x:1}/{y:b+}", "c * * /{x:2}/{y:a+}"}, nil},
		{"expressions in other places", []string{"a * * /{x:1}/{y}", "b * * /{x}/{y:1}"}, nil},
		{"everything at once", []string{"a * * /x", "b * get x", "c * * /x", "d h: * /{x:(}", "e * * /x"}, []routes.Conflict{
			{1, -1, "methods[0]", `"get" is not a method, upper-case letters and - are allowed`},
			{1, -1, "path", `"x" must begin with a slash`},
			{2, 0, "path", `"/x" for any method is taken by route "a", one of them can go`},
			{3, -1, "host", `"h:" has a colon, a host stands without port, an IPv6 address in brackets`},
			{3, -1, "path", "\"/{x:(}\": {x:(}: error parsing regexp: missing closing ): `(`, RE2 syntax is allowed"},
			{4, 0, "path", `"/x" for any method is taken by route "a", one of them can go`}}},
	} {
		built, err := build(test.routes...)
		if (built == nil) != (err != nil) {
			t.Errorf("%s: got table %v with error %v", test.about, built, err)
		}
		var got []routes.Conflict
		for _, c := range conflictsOf(t, err) {
			got = append(got, *c)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", test.about, got, test.want)
		}
	}
}

func TestConflict_NamesItsPlace(t *testing.T) {
	c := routes.Conflict{Index: 3, Other: 1, Field: "path", Text: "is bad"}
	if got, want := c.Error(), "routes[3].path: is bad"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
