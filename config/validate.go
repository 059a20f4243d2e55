package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/gateway/admin"
	"sluice/gateway/deadline"
	"sluice/gateway/limits"
	"sluice/gateway/routes"
	"sluice/gateway/telemetry"
	"sluice/gateway/upstream"
)

// The bounds of a configuration. Every name is a label of metrics.
const (
	mostUpstreams = 1000
	mostRoutes    = 2000
)

// Validate returns every fault of c, joined; each is a *Fault. Load does the same
// and knows where each setting comes from.
func (c Config) Validate() error {
	names := map[string][]string{}
	for _, u := range c.Upstreams {
		names["upstreams"] = append(names["upstreams"], shown(u.Name))
	}
	for _, route := range c.Routes {
		names["routes"] = append(names["routes"], shown(route.Name))
	}
	var faults []error
	for _, p := range c.problems() {
		faults = append(faults, fault(show(p.path, names), p.text))
	}
	return errors.Join(faults...)
}

// problem is what is wrong with the setting at a path with numbers.
type problem struct{ path, text string }

// problems asks every package about its part, then checks what spans them.
func (c Config) problems() []problem {
	list := problemsOf("server", c.Server.Validate())
	list = append(list, problemsOf("admin", c.Admin.Validate())...)
	list = append(list, problemsOf("log", c.Log.Validate())...)
	if c.StateDir == "" || strings.ContainsRune(c.StateDir, 0) {
		list = append(list, problem{"state_dir", quote(c.StateDir) + " is not the name of a folder"})
	}
	if slices.Contains(c.Server.Listen, c.Admin.Listen) && !strings.HasSuffix(c.Admin.Listen, ":0") {
		list = append(list, problem{"admin.listen", quote(c.Admin.Listen) + " is in server.listen too, callers must not reach it"})
	}
	list = append(list, c.upstreamProblems()...)
	return append(list, c.routeProblems()...)
}

func (c Config) upstreamProblems() []problem {
	var list []problem
	switch n := len(c.Upstreams); {
	case n == 0:
		return []problem{{"upstreams", "is required, at least one"}}
	case n > mostUpstreams:
		list = append(list, problem{"upstreams", fmt.Sprintf("%d are too many, at most %d", n, mostUpstreams)})
	}
	seen := map[string]bool{}
	for i, u := range c.Upstreams {
		at := item("upstreams", i)
		list = append(list, problemsOf(at, u.Config.Validate())...)
		list = append(list, problemsOf(join(at, "limit"), u.Limit.Validate())...)
		list = append(list, again(at, u.Name, "upstream", seen)...)
	}
	return list
}

func (c Config) routeProblems() []problem {
	var list []problem
	switch n := len(c.Routes); {
	case n == 0:
		return []problem{{"routes", "is required, at least one"}}
	case n > mostRoutes:
		list = append(list, problem{"routes", fmt.Sprintf("%d are too many, at most %d", n, mostRoutes)})
	}
	seen := map[string]bool{}
	names := make([]string, len(c.Upstreams))
	for i, u := range c.Upstreams {
		names[i] = u.Name
	}
	slices.Sort(names)
	entries := make([]routes.Entry[struct{}], len(c.Routes))
	for i, route := range c.Routes {
		at := item("routes", i)
		entries[i].Config = route.Config
		list = append(list, problemsOf(at, route.Times.Validate())...)
		list = append(list, problemsOf(at, route.validate())...)
		list = append(list, again(at, route.Name, "route", seen)...)
		list = append(list, unknownUpstream(at, route.Upstream, names)...)
	}
	// The table finds the faults of single routes too.
	_, err := routes.New(entries)
	return append(list, problemsOf("routes", err)...)
}

// validate checks what is of r alone, beside its routes.Config and its Times.
func (r Route) validate() error {
	faults := []error{
		within("max_body", r.MaxBody, Byte, largestBody),
		within("stall", r.Stall, shortest, longest),
	}
	if int(r.Response) >= len(responseNames) {
		faults = append(faults, fault("response", fmt.Sprintf("%v is unknown, bounded or stream", r.Response)))
	}
	return errors.Join(faults...)
}

// again reports a name that is taken.
func again(at, name, what string, seen map[string]bool) []problem {
	if name != "" && seen[name] {
		return []problem{{join(at, "name"), fmt.Sprintf("%s is the name of an earlier %s, each has its own", quote(name), what)}}
	}
	seen[name] = true
	return nil
}

// unknownUpstream reports a name that is none of names, which are in order.
func unknownUpstream(at, name string, names []string) []problem {
	at = join(at, "upstream")
	_, found := slices.BinarySearch(names, name)
	switch {
	case name == "":
		return []problem{{at, "is required, the name of an upstream"}}
	case found:
		return nil
	case len(names) == 0 || names[0] == "": // that is reported; this may follow from it
		return nil
	}
	return []problem{{at, quote(name) + " is not an upstream, " + known(name, names)}}
}

// problemsOf takes joined faults apart. Below path each stands at its own field.
func problemsOf(path string, err error) []problem {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var list []problem
		for _, err := range joined.Unwrap() {
			list = append(list, problemsOf(path, err)...)
		}
		return list
	}
	field, text := partsOf(err)
	return []problem{{join(path, numbered(field)), text}}
}

// partsOf reads a stage's fault. Stages do not know each other, so each has a type
// of its own.
func partsOf(err error) (field, text string) {
	switch f := err.(type) {
	case *Fault:
		return f.Path, f.Text
	case *admin.Fault:
		return f.Field, f.Text
	case *deadline.Fault:
		return f.Field, f.Text
	case *limits.Fault:
		return f.Field, f.Text
	case *routes.Conflict:
		return item("", f.Index) + "." + f.Field, f.Text
	case *telemetry.Fault:
		return f.Field, f.Text
	case *upstream.Fault:
		return f.Field, f.Text
	}
	return "", err.Error()
}
