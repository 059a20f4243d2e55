package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhoUsesWhom holds this module against the rules.
func TestWhoUsesWhom(t *testing.T) {
	graph, err := readGraph(filepath.Join("..", ".."), "sluice")
	if err != nil {
		t.Fatal(err)
	}
	if len(graph[core]) == 0 { // it looked in the wrong place
		t.Fatalf("the core is not among the %d packages read", len(graph))
	}
	found, idle := check(graph, rules, exceptions)
	for _, v := range found {
		t.Error(v)
	}
	for _, e := range idle {
		t.Errorf("the exception for %s to use %s is not needed any more", e.pkg, e.use)
	}
}

// TestCheck_FindsEachViolation breaks every rule in a made-up graph.
func TestCheck_FindsEachViolation(t *testing.T) {
	broken := map[string][]struct{ pkg, use string }{
		"stages apart": {
			{"sluice/gateway/retry", "sluice/gateway/breaker"},
			{"sluice/gateway/limits", "sluice/gateway"},
			{"sluice/gateway/routes", "sluice/config"},
		},
		"below idempotency": {{"sluice/gateway/idempotency/redis", "sluice/gateway/retry"}},
		"below reconcile":   {{"sluice/gateway/reconcile/ship", "sluice/gateway/idempotency"}},
		"outcome alone": {
			{"sluice/gateway/outcome", "time"},
			{"sluice/gateway/outcome", "sluice/gateway/retry"},
		},
		"core": {
			{"sluice/gateway", "sluice/gateway/admin"},
			{"sluice/gateway", "sluice/gateway/idempotency/redis"},
		},
		"engines unknown": {
			{"sluice/gateway", "sluice/gateway/server"},
			{"sluice/gateway/admin", "sluice/gateway/server"},
		},
		"nothing waits": {
			{"sluice/gateway", "time.Sleep"},
			{"sluice/gateway/breaker", "time.Now"},
		},
		"no world": {
			{"sluice/gateway", "log"},
			{"sluice/gateway/upstream", "net"},
			{"sluice/gateway/retry", "net/http/httptrace"},
		},
		"fasthttp": {
			{"sluice/gateway/upstream", "github.com/valyala/fasthttp"},
			{"sluice/gateway/telemetry", "github.com/valyala/fasthttp/fasthttputil"},
		},
		"router": {{"sluice/gateway", "github.com/fasthttp/router"}},
		"config": {{"sluice/config", "sluice/gateway"}},
		"environment": {
			{"sluice/gateway/telemetry", "os.Getenv"},
			{"sluice/gateway/server", "flag"},
		},
		"beside the core":    {{"sluice/gateway/admin", "sluice/gateway"}},
		"tests stay outside": {{"sluice/gateway/server", "sluice/internal/gatewaytest"}},
	}
	for _, r := range rules {
		if len(broken[r.name]) == 0 {
			t.Errorf("no graph here breaks the rule %q", r.name)
		}
		for _, b := range broken[r.name] {
			found, _ := check(map[string][]string{b.pkg: {b.use}}, rules, exceptions)
			i := slices.IndexFunc(found, func(v violation) bool { return v.rule.name == r.name })
			if i < 0 {
				t.Errorf("%q does not find that %s uses %s; found %v", r.name, b.pkg, b.use, found)
				continue
			}
			if text := found[i].String(); !strings.Contains(text, r.reason) || !strings.Contains(text, b.use) {
				t.Errorf("%q says %q, which does not give the reason", r.name, text)
			}
		}
	}
}

func TestCheck_LetsTheDesignThrough(t *testing.T) {
	graph := map[string][]string{
		"sluice/gateway": {
			"github.com/valyala/fasthttp", "sluice/config", "sluice/gateway/edge", "sluice/gateway/outcome",
			"sluice/gateway/retry", "sluice/gateway/telemetry", "time", "time.Duration",
		},
		"sluice/gateway/retry":             {"sluice/gateway/outcome", "time", "time.Time"},
		"sluice/gateway/routes":            {"github.com/fasthttp/router", "github.com/valyala/fasthttp"},
		"sluice/gateway/idempotency/redis": {"net", "sluice/gateway/idempotency", "sluice/gateway/outcome", "time.Now"},
		"sluice/gateway/server":            {"github.com/valyala/fasthttp", "net", "sluice/gateway", "sluice/gateway/upstream", "time.Now"},
		"sluice/config":                    {"os.LookupEnv", "sluice/gateway/retry"},
		"sluice/cmd/gateway":               {"flag", "os.Args", "sluice/gateway", "sluice/gateway/admin", "sluice/gateway/server"},
	}
	found, _ := check(graph, rules, nil)
	for _, v := range found {
		t.Error(v)
	}
}

func TestCheck_ReportsIdleExceptions(t *testing.T) {
	r := []rule{{name: "r", of: []string{"a/..."}, uses: []string{"b"}}}
	e := []exception{
		{pkg: "a/needs", use: "b", rule: "r"},
		{pkg: "a/not", use: "b", rule: "r"},
		{pkg: "a/needs", use: "b", rule: "another"},
	}
	found, idle := check(map[string][]string{"a/needs": {"b"}, "a/not": {"c"}, "ab": {"b"}}, r, e)
	if len(found) != 0 || !slices.Equal(idle, e[1:]) {
		t.Errorf("found %v, idle %v; want none, and the last two", found, idle)
	}
}

func TestReadGraph_SeesWhatIsUsed(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module m\n",
		"a/a.go":            "package a\nimport (\"m/b\"; clock \"time\"; \"os\")\nvar _ = b.B\nvar now clock.Time = clock.Now()\nvar _ = os.Stdout\n",
		"a/a_windows.go":    "package a\nimport \"m/c\"\nvar _ = c.C\n",
		"a/a_test.go":       "package a\nimport \"m/d\"\nvar _ = d.D\n",
		"a/testdata/x.go":   "package x\nimport \"m/e\"\n",
		"another/go.mod":    "module another\n",
		"another/a.go":      "package another\nimport \"m/f\"\n",
		".hidden/hidden.go": "not Go at all",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	graph, err := readGraph(root, "m")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"m/b", "m/c", "os", "os.Stdout", "time", "time.Now", "time.Time"}
	if len(graph) != 1 || !slices.Equal(graph["m/a"], want) {
		t.Errorf("got %v, want m/a: %v alone", graph, want)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "dot.go"), []byte("package a\nimport . \"time\"\nvar x = Now()\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readGraph(root, "m"); err == nil || !strings.Contains(err.Error(), "dot import") {
		t.Errorf("a dot import is let through: %v", err)
	}
}
