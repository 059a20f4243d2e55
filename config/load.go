package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

// Source is where settings come from. The later of file, environment and flags
// wins over the earlier, setting by setting; a list is one setting.
type Source struct {
	File  string            // "": no file
	Env   []string          // NAME=value; variables that do not begin with GATEWAY_ are left alone
	Flags map[string]string // by path: upstreams.payments.connections.max

	// Listen and Upstream are the shortcuts --listen and --upstream. Upstream is a
	// whole configuration, one upstream "default" and one route "all", and takes the
	// place of a file.
	Listen   string
	Upstream string
}

// Load reads a configuration and checks it. The error is of type Faults and holds
// everything that is wrong; Config then is not usable.
func Load(src Source) (Config, []Remark, error) {
	if src.File == "" {
		return load(src, nil)
	}
	data, err := readFile(src.File)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return Config{}, nil, Faults{{Place{Source: src.File}, fmt.Sprintf("cannot be read: %v", err)}}
	}
	return load(src, data)
}

// readFile reads a little more than a file may hold, so that what is too large is
// known to be.
func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, mostBytes+1))
}

// load is Load once the file is read.
func load(src Source, data []byte) (Config, []Remark, error) {
	r := newReport(src.File)
	tree, ok := r.base(src, data)
	if !ok {
		return Config{}, nil, r.err()
	}
	k := koanf.New(".")
	r.load(k, confmap.Provider(tree, ""))
	r.load(k, env.Provider(".", env.Opt{
		Prefix:        prefix,
		EnvironFunc:   func() []string { return src.Env },
		TransformFunc: r.variable,
	}))
	r.load(k, confmap.Provider(r.flags(src), "."))
	c := r.decode(k)
	for _, p := range c.problems() {
		r.consequence(p.path, p.text)
	}
	if err := r.err(); err != nil {
		return Config{}, nil, err
	}
	return c, r.remarks, nil
}

// load puts one more source over those before.
func (r *report) load(k *koanf.Koanf, source koanf.Provider) {
	if err := k.Load(source, nil); err != nil {
		r.fault(r.places[""], "", err.Error())
	}
}

// mostFaults bounds what one look at a configuration reports.
const mostFaults = 200

// err gives the faults in order, nil when there are none, and orders the remarks.
func (r *report) err() error {
	inOrder(r.faults, r.remarks)
	if len(r.faults) == 0 {
		return nil
	}
	if more := len(r.faults) - mostFaults; more > 0 {
		last := &Fault{r.faults[mostFaults].Place, fmt.Sprintf("%d more faults follow", more)}
		return append(Faults(r.faults[:mostFaults:mostFaults]), last)
	}
	return Faults(r.faults)
}

// base is the layer that says which upstreams and routes there are: the file, or
// what --upstream stands for.
func (r *report) base(src Source, data []byte) (map[string]any, bool) {
	switch {
	case src.File != "" && src.Upstream != "":
		r.fault(Place{Source: "--upstream", origin: fromFlag}, "", "stands for a whole configuration, it cannot be combined with a file")
		fallthrough
	case src.File != "":
		d := &document{report: r, file: src.File}
		return d.settings(data)
	case src.Upstream == "":
		r.fault(Place{}, "", "no configuration is given: name a file with --config, or an upstream with --upstream")
		return nil, false
	}
	r.places[""] = Place{Source: "--upstream", origin: fromFlag}
	r.names["upstreams"], r.names["routes"] = []string{"default"}, []string{"all"}
	return map[string]any{
		"upstreams": map[string]any{"0": map[string]any{"name": "default"}},
		"routes":    map[string]any{"0": map[string]any{"name": "all", "path": "/{path:*}", "upstream": "default"}},
	}, true
}

// variable reads one environment variable, for the provider: "" leaves it out.
func (r *report) variable(name, value string) (string, any) {
	if name == fileVariable || isLink(name, value) {
		return "", nil
	}
	return r.set(variable(name, value))
}

// flags reads the flags, shortcuts first.
func (r *report) flags(src Source) map[string]any {
	list := []setting{}
	if src.Listen != "" {
		list = append(list, flag("listen", "server.listen", src.Listen))
	}
	if src.Upstream != "" && src.File == "" {
		list = append(list, flag("upstream", "upstreams.default.endpoints", src.Upstream))
	}
	for _, path := range slices.Sorted(maps.Keys(src.Flags)) {
		list = append(list, flag(path, path, src.Flags[path]))
	}
	values := map[string]any{}
	for _, s := range list {
		if path, value := r.set(s); path != "" {
			values[path] = value
		}
	}
	return values
}

// decode puts the settings over the defaults, entry by entry, so that a zero that
// was written differs from a key that was not.
func (r *report) decode(k *koanf.Koanf) Config {
	c := Default()
	for i := range r.names["upstreams"] {
		u := DefaultUpstream()
		r.into(k, item("upstreams", i), &u)
		c.Upstreams = append(c.Upstreams, u)
	}
	r.into(k, "server", &c.Server)
	for i := range r.names["routes"] {
		route := DefaultRoute()
		route.MaxBody = c.Server.Limits.Body
		r.into(k, item("routes", i), &route)
		c.Routes = append(c.Routes, route)
	}
	k.Delete("upstreams")
	k.Delete("routes")
	r.into(k, "", &c)
	return c
}

// into decodes strictly. Everything was read by its kind before, so an error means
// that format and types disagree.
func (r *report) into(k *koanf.Koanf, path string, target any) {
	if path != "" && !k.Exists(path) {
		return
	}
	err := k.UnmarshalWithConf(path, target, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName:     "koanf",
		ErrorUnused: true,
		ZeroFields:  true, // a list replaces its default
		DecodeHook:  mapstructure.TextUnmarshallerHookFunc(),
	}})
	if err != nil {
		r.fault(r.places[path], path, strings.ReplaceAll(err.Error(), "\n", " "))
	}
}
