package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/config"
)

// arguments is what stands after a command's name.
type arguments struct {
	config   string
	listen   string
	upstream string
	settings map[string]string // any setting by its path, as server.timeouts.header
	rest     []string          // what is no flag
}

var errHelp = errors.New("help")

// takesSettings are the commands that work on a configuration.
var takesSettings = []string{"run", "check", "demo", "health"}

// parse reads --name value and --name=value. A name with a dot, or that of a
// setting on the top level, is a setting.
func parse(command string, args []string) (arguments, error) {
	a := arguments{settings: map[string]string{}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "-h" || arg == "--help" {
			return a, errHelp
		}
		name, isFlag := strings.CutPrefix(arg, "--")
		if !isFlag {
			if strings.HasPrefix(arg, "-") {
				return a, fmt.Errorf("%s is not understood, flags begin with --", arg)
			}
			a.rest = append(a.rest, arg)
			continue
		}
		if !slices.Contains(takesSettings, command) {
			return a, fmt.Errorf("--%s: this command takes no flags", name)
		}
		name, value, given := strings.Cut(name, "=")
		if err := a.known(command, name); err != nil {
			return a, err
		}
		if !given {
			if len(args) == 0 || strings.HasPrefix(args[0], "--") {
				return a, fmt.Errorf("--%s needs a value", name)
			}
			value, args = args[0], args[1:]
		}
		if err := a.set(name, value); err != nil {
			return a, err
		}
	}
	if len(a.rest) > 0 && command != "help" {
		return a, fmt.Errorf("%q is too much", a.rest[0])
	}
	return a, nil
}

// known reports whether a command takes a flag. Which settings there are, package
// config knows.
func (a *arguments) known(command, name string) error {
	switch {
	case command == "demo" && (name == "config" || name == "upstream"):
		return fmt.Errorf("--%s: the demo has a backend and a configuration of its own", name)
	case name == "config", name == "listen", name == "upstream", name == "state_dir", strings.Contains(name, "."):
		return nil
	}
	return fmt.Errorf("there is no flag --%s; settings are named by their path, as --server.listen", name)
}

func (a *arguments) set(name, value string) error {
	shortcuts := map[string]*string{"config": &a.config, "listen": &a.listen, "upstream": &a.upstream}
	if p := shortcuts[name]; p != nil {
		if *p != "" {
			return fmt.Errorf("--%s is given twice", name)
		}
		*p = value
		return nil
	}
	if _, twice := a.settings[name]; twice {
		return fmt.Errorf("--%s is given twice", name)
	}
	a.settings[name] = value
	return nil
}

// source is where the configuration comes from.
func (a *arguments) source(env []string) config.Source {
	s := config.Source{File: a.config, Env: env, Flags: a.settings, Listen: a.listen, Upstream: a.upstream}
	if s.File == "" {
		for _, v := range env {
			if file, ok := strings.CutPrefix(v, "GATEWAY_CONFIG="); ok {
				s.File = file
			}
		}
	}
	return s
}

// settingsHelp is what the commands that work on a configuration say of it.
const settingsHelp = `  --config FILE     the configuration; GATEWAY_CONFIG names it too
  --listen ADDRESS  where callers come, as :8080
  --upstream URL    where requests go, as http://127.0.0.1:9000; with it no file is needed
  --PATH VALUE      any setting, as --server.timeouts.header 5s
                    or --upstreams.payments.connections.max 100

Settings come from the file, then from the environment
(GATEWAY_SERVER__TIMEOUTS__HEADER=5s, GATEWAY_UPSTREAMS__PAYMENTS__CONNECTIONS__MAX=100),
then from flags; the later wins.
`
