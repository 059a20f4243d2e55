package config

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The example says of every key that it shows the default, and shows every key.
func TestDocs_ExampleIsTheDefaults(t *testing.T) {
	text := page(t)
	_, rest, _ := strings.Cut(text, "```yaml\n")
	example, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the page holds no example")
	}
	c, remarks, err := load(Source{File: "example.yaml"}, []byte(example))
	if err != nil || len(remarks) != 0 {
		t.Fatalf("got %v\n%v", remarks, err)
	}
	want := Default()
	u, r, other := DefaultUpstream(), DefaultRoute(), DefaultRoute()
	u.Name, u.Endpoints = "payments", []string{"http://127.0.0.1:9001"}
	r.Name, r.Path, r.Methods, r.Upstream = "charges", "/v1/charges", []string{"POST"}, "payments"
	other.Name, other.Path, other.Upstream = "everything-else", "/{path:*}", "payments"
	want.Upstreams, want.Routes = []Upstream{u}, []Route{r, other}
	want.Server.TrustedProxies = c.Server.TrustedProxies // an empty list and none are the same
	if len(c.Server.TrustedProxies) != 0 || !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	for _, l := range leaves(reflect.ValueOf(c), "") {
		if key := l.path[strings.LastIndexByte(l.path, '.')+1:]; !strings.Contains(example, key+":") {
			t.Errorf("%s is not in the example", l.path)
		}
	}
}

func TestDocs_NameWhatIsNotActedOn(t *testing.T) {
	text := page(t)
	lists := []string{"upstreams", "routes"}
	for _, row := range notYet {
		// The key that gives the remark is the first that is not acted on.
		k, shown := schema(), []string{}
		for part := range strings.SplitSeq(row.path, ".") {
			if k.entry != nil {
				k = k.entry
			}
			k = k.keys[part]
			if slices.Contains(lists, part) {
				part += "[]"
			}
			if shown = append(shown, part); k.later != nil {
				break
			}
		}
		path := strings.Join(shown, ".")
		if row.value != "" {
			path += ": " + row.value
		}
		if !strings.Contains(text, "`"+path) {
			t.Errorf("%s is not in docs/configuration.md", path)
		}
	}
}
