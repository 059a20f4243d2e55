//go:build !race

package routes_test

import (
	"testing"

	"sluice/gateway/routes"
)

// Under the race detector pools forget on purpose, so this is not built there.
func TestMatch_DoesNotAllocate(t *testing.T) {
	table := benchmarkTable(t, 500)
	for _, m := range benchmarks {
		switch m.name {
		case "one parameter", "two parameters", "expression":
			continue // the router copies what it matches with a parameter
		}
		host, method, path := []byte(m.host), []byte(m.method), []byte(m.path)
		got := testing.AllocsPerRun(200, func() {
			if _, found := table.Match(host, method, path); found != routes.Matched {
				t.Errorf("%s: got %v", m.name, found)
			}
		})
		if got != 0 {
			t.Errorf("%s: got %v allocations, want 0", m.name, got)
		}
	}
	// Not found for its method, past a route for one host.
	post, err := routes.New([]routes.Entry[int]{
		{Config: routes.Config{Name: "a", Host: "a.test", Methods: []string{"POST"}, Path: "/a"}},
		{Config: routes.Config{Name: "b", Methods: []string{"PUT"}, Path: "/{x:*}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	host, method, path := []byte("A.test:80"), []byte("GET"), []byte("/a")
	if got := testing.AllocsPerRun(200, func() { post.Match(host, method, path) }); got != 0 {
		t.Errorf("no method: got %v allocations, want 0", got)
	}
}
