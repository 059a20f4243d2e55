// Package archtest keeps the picture of who may use whom true. The picture is
// a table of rules, each with its reason; what departs from a rule on purpose
// is a row in a second table, with a reason of its own.
//
// It looks at the source of every package, for every system, test files left
// out: tests may use what they like. It sees imports, and the functions of os,
// syscall and time that read the environment or the clock, or wait. It does
// not see what a package gets at through values that it is handed.
package archtest

// rule says what some packages do not use. A pattern is an import path, or the
// name of a function as path.Name; "p/..." means p and all below it, "..."
// everything.
type rule struct {
	name   string
	of     []string // the packages that it binds,
	except []string // without these
	uses   []string // what they do not use,
	but    []string // without this
	reason string
}

// exception lets one package use one thing against a rule.
type exception struct {
	pkg, use string // patterns
	rule     string // its name
	reason   string
}

// The groups of packages in the picture.
var (
	core    = "sluice/gateway"
	outcome = "sluice/gateway/outcome"

	stages = []string{
		"sluice/gateway/routes", "sluice/gateway/deadline", "sluice/gateway/idempotency", "sluice/gateway/limits",
		"sluice/gateway/retry", "sluice/gateway/breaker", "sluice/gateway/upstream", "sluice/gateway/reconcile",
	}
	engines  = []string{"sluice/gateway/server/...", "sluice/gateway/loop/...", "sluice/internal/sim/..."}
	forTests = []string{"sluice/internal/...", "sluice/bench/..."}

	fasthttp    = []string{"github.com/valyala/fasthttp/..."}
	environment = []string{
		"flag", "os.Args", "os.Environ", "os.ExpandEnv", "os.Getenv", "os.LookupEnv", "syscall.Environ", "syscall.Getenv",
		"github.com/knadh/koanf/providers/env/...",
	}
	clockAndWaits = []string{
		"time.Now", "time.Since", "time.Until",
		"time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick",
	}
	// What opens files and sockets, starts programs, or logs by itself.
	world = []string{"log", "log/slog", "net", "net/http/...", "os", "os/exec"}
)

var rules = []rule{
	{
		name: "stages apart", of: stages,
		uses: []string{"sluice/..."}, but: []string{outcome},
		reason: "stages do not know each other, the core or the configuration: gateway introduces them, " +
			"and words they share live in outcome",
	},
	{
		name: "below idempotency", of: []string{"sluice/gateway/idempotency/..."}, except: []string{"sluice/gateway/idempotency"},
		uses: []string{"sluice/..."}, but: []string{"sluice/gateway/idempotency", outcome},
		reason: "what touches the world for a stage knows that stage alone; the core sees it through an interface",
	},
	{
		name: "below reconcile", of: []string{"sluice/gateway/reconcile/..."}, except: []string{"sluice/gateway/reconcile"},
		uses: []string{"sluice/..."}, but: []string{"sluice/gateway/reconcile", outcome},
		reason: "what touches the world for a stage knows that stage alone; the core sees it through an interface",
	},
	{
		name: "outcome alone", of: []string{outcome},
		uses: []string{"..."}, but: []string{"errors", "fmt", "strconv", "strings"},
		reason: "outcome is the vocabulary that everybody imports: enums and tables, no behaviour",
	},
	{
		name: "core", of: []string{core},
		uses: []string{"sluice/..."}, but: join(stages, outcome, "sluice/config", "sluice/gateway/edge", "sluice/gateway/telemetry"),
		reason: "the core knows no engine, store or admin page: engines know it, the rest is handed to it as interfaces",
	},
	{
		name: "engines unknown", of: []string{"sluice/..."}, except: join(engines, "sluice/cmd/...", "sluice/internal/gatewaytest"),
		uses:   engines,
		reason: "an engine is chosen at the top, so that the core runs on any of them",
	},
	{
		name: "nothing waits", of: join(stages, core, outcome),
		uses:   clockAndWaits,
		reason: "the core and the stages are handed the time and name what to wait for; engines read the clock and wait",
	},
	{
		name: "no world", of: join(stages, core, outcome),
		uses:   world,
		reason: "the core and the stages decide; what touches the world is the engines' or sits in sub-packages",
	},
	{
		name: "fasthttp", of: []string{"sluice/..."}, except: join(engines, core, "sluice/gateway/edge", "sluice/gateway/routes"),
		uses:   fasthttp,
		reason: "other packages take bytes, numbers and times, so that their tests are plain Go and an engine can be replaced",
	},
	{
		name: "router", of: []string{"sluice/..."}, except: []string{"sluice/gateway/routes"},
		uses:   []string{"github.com/fasthttp/router/..."},
		reason: "the router stands behind the API of routes, which makes up for what it does differently",
	},
	{
		name: "config", of: []string{"sluice/config"},
		uses: []string{"sluice/..."}, but: join(stages, outcome, "sluice/gateway/admin", "sluice/gateway/edge", "sluice/gateway/telemetry"),
		reason: "config composes the Config types of other packages and knows nothing that runs",
	},
	{
		name: "environment", of: []string{"sluice/..."}, except: []string{"sluice/cmd/...", "sluice/config"},
		uses:   environment,
		reason: "flags and environment are read in one place, where check and run see the same settings",
	},
	{
		name: "beside the core", of: []string{"sluice/gateway/admin/...", "sluice/gateway/edge/...", "sluice/gateway/telemetry/..."},
		uses: join(engines, core, "sluice/config", "sluice/cmd/..."),
		reason: "admin, edge and telemetry are used by the core or see it through small interfaces; " +
			"they do not know it",
	},
	{
		name: "tests stay outside", of: []string{"sluice/..."}, except: forTests,
		uses:   forTests,
		reason: "what serves tests and measurements is no part of the product",
	},
}

var exceptions = []exception{
	{
		pkg: "sluice/bench/...", use: "github.com/valyala/fasthttp/...", rule: "fasthttp",
		reason: "the simulated backend is a server of its own and no part of the product; it must be cheap beside the gateway",
	},
	{
		pkg: "sluice/bench/...", use: "github.com/fasthttp/router/...", rule: "router",
		reason: "the simulated backend has paths of its own",
	},
	{
		pkg: "sluice/bench/backend", use: "flag", rule: "environment",
		reason: "a program of its own, for the load recipes",
	},
	{
		pkg: "sluice/bench/backend", use: "os.Args", rule: "environment",
		reason: "a program of its own, for the load recipes",
	},
	{
		pkg: "sluice/cmd/gateway", use: "sluice/bench/paybackend", rule: "tests stay outside",
		reason: "the demo command runs the simulated backend",
	},
}
