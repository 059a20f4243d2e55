package routes_test

import (
	"bytes"
	"fmt"
	"testing"

	"sluice/gateway/routes"
)

// manyRoutes gives n routes as they stand before a payment backend, and a catch-all.
func manyRoutes(n int) []routes.Entry[int] {
	forms := []string{"/v1/object%d", "/v1/object%d/{id}", "/v1/object%d/{id}/lines/{line}", "/v2/object%d/{rest:*}"}
	entries := []routes.Entry[int]{{Config: routes.Config{Name: "rest", Path: "/{rest:*}"}}}
	for i := range n - 1 {
		c := routes.Config{Name: fmt.Sprintf("r%d", i), Path: fmt.Sprintf(forms[i%len(forms)], i/len(forms))}
		if i%len(forms) < 3 {
			c.Methods = []string{"GET", "POST"}
		}
		entries = append(entries, routes.Entry[int]{Config: c, Value: i + 1})
	}
	return entries
}

var benchmarks = []struct {
	name, host, method, path string
}{
	{"static", "", "GET", "/v1/object7"},
	{"static with host", "API.example.com:443", "POST", "/v1/charges"},
	{"one parameter", "", "GET", "/v1/object7/12345"},
	{"two parameters", "", "GET", "/v1/object7/12345/lines/3"},
	{"expression", "api.example.com", "GET", "/v1/charges/12345"},
	{"catch-all", "", "GET", "/v2/object7/any/thing"},
	{"catch-all of all", "", "GET", "/static/app.js"},
}

func benchmarkTable(b testing.TB, n int) *routes.Table[int] {
	entries := append(manyRoutes(n),
		routes.Entry[int]{Config: routes.Config{Name: "charges", Host: "api.example.com", Methods: []string{"POST"}, Path: "/v1/charges"}},
		routes.Entry[int]{Config: routes.Config{Name: "charge", Host: "api.example.com", Path: "/v1/charges/{id:[0-9]+}"}})
	table, err := routes.New(entries)
	if err != nil {
		b.Fatal(err)
	}
	return table
}

func BenchmarkMatch(b *testing.B) {
	table := benchmarkTable(b, 500)
	for _, m := range benchmarks {
		b.Run(m.name, func(b *testing.B) {
			host, method, path := []byte(m.host), []byte(m.method), []byte(m.path)
			b.ReportAllocs()
			for b.Loop() {
				if _, found := table.Match(host, method, path); found != routes.Matched {
					b.Fatalf("got %v", found)
				}
			}
		})
	}
}

// One catch-all and nothing else: the smallest gateway there is.
func BenchmarkMatch_OnlyCatchAll(b *testing.B) {
	table, err := routes.New(manyRoutes(1))
	if err != nil {
		b.Fatal(err)
	}
	host, method, path := []byte("localhost:8080"), []byte("GET"), []byte("/v1/charges")
	b.ReportAllocs()
	for b.Loop() {
		table.Match(host, method, path)
	}
}

func BenchmarkMatch_Parallel(b *testing.B) {
	table := benchmarkTable(b, 500)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		host, method, path := []byte("localhost"), []byte("GET"), []byte("/static/app.js")
		for pb.Next() {
			table.Match(host, method, path)
		}
	})
}

// A miss needs a table without a catch-all for everything.
func BenchmarkMatch_Miss(b *testing.B) {
	table, err := routes.New(manyRoutes(500)[1:])
	if err != nil {
		b.Fatal(err)
	}
	paths := map[string][]byte{
		"early": []byte("/nothing/here"),
		"late":  []byte("/v1/object7/12345/lines/3/more"),
	}
	for name, path := range paths {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, found := table.Match(nil, []byte("GET"), path); found != routes.NoPath {
					b.Fatalf("got %v", found)
				}
			}
		})
	}
}

// What a hostile caller may send, in a table whose literals and parameters overlap at
// every segment. Time must grow with the length, no more.
func BenchmarkMatch_Hostile(b *testing.B) {
	var entries []routes.Entry[int]
	for depth := range 10 { // every mix of "a" and "{p}", then "b": all of them nearly match
		for mix := range 1 << min(depth, 6) {
			path := ""
			for i := range depth {
				if mix>>i&1 == 0 {
					path += "/a"
				} else {
					path += fmt.Sprintf("/{p%d}", i)
				}
			}
			entries = append(entries, routes.Entry[int]{Config: routes.Config{Name: fmt.Sprintf("r%d_%d", depth, mix), Path: path + "/b"}})
		}
	}
	table, err := routes.New(entries)
	if err != nil {
		b.Fatal(err)
	}
	const kib = 1 << 10
	for _, size := range []int{4 * kib, 8 * kib, 16 * kib} {
		for name, part := range map[string]string{"slashes": "/", "segments": "/a", "one segment": "a"} {
			path := append([]byte("/"), bytes.Repeat([]byte(part), size/len(part))...)
			b.Run(fmt.Sprintf("%s/%dKiB", name, size/kib), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					table.Match(nil, []byte("GET"), path)
				}
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{10, 500, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			entries := manyRoutes(n)
			for b.Loop() {
				if _, err := routes.New(entries); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
