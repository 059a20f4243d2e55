package main

import (
	"context"
	"fmt"

	"sluice/config"
)

var checkCommand = command{
	name:    "check",
	summary: "say what is wrong with a configuration",
	usage: `gateway check --config FILE

Reads the configuration as ` + "`gateway run`" + ` would and reports every fault at once, one
line each: where it is, what is wrong, what is allowed. Then it reads the files that
the configuration names. Exit status 1 when there is a fault. Whether addresses are
free and state_dir can be written shows when it runs.

` + settingsHelp,
	do: func(_ context.Context, args arguments, w world) error {
		cfg, err := load(args, w)
		if err != nil {
			return err
		}
		if err := checkFiles(cfg); err != nil {
			_, _ = fmt.Fprintln(w.errors, err)
			return errSaid
		}
		_, err = fmt.Fprintf(w.out, "ok: upstreams %d, routes %d\n", len(cfg.Upstreams), len(cfg.Routes))
		return err
	},
}

// load reads the configuration. Faults and remarks go to w.errors, one line each.
func load(args arguments, w world) (config.Config, error) {
	cfg, remarks, err := config.Load(args.source(w.env))
	if err != nil {
		_, _ = fmt.Fprintln(w.errors, err)
		return cfg, errSaid
	}
	for _, r := range remarks {
		_, _ = fmt.Fprintln(w.errors, r)
	}
	return cfg, nil
}
