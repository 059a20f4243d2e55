package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

var helpCommand = command{
	name:    "help",
	summary: "say what the commands are, or what one of them does",
	usage:   "gateway help [COMMAND]\n",
	do: func(_ context.Context, args arguments, w world) error {
		if len(args.rest) == 0 {
			_, err := fmt.Fprint(w.out, overview())
			return err
		}
		c, ok := commandNamed(args.rest[0])
		if !ok {
			return unknown(args.rest[0])
		}
		_, err := fmt.Fprint(w.out, c.usage)
		return err
	},
}

func overview() string {
	var b strings.Builder
	b.WriteString("Sluice, an HTTP ingress for payment backends.\n\nUsage: gateway COMMAND [FLAGS]\n\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-9s %s\n", c.name, c.summary)
	}
	b.WriteString("\n`gateway COMMAND --help` says what a command takes. To begin: gateway demo\n")
	return b.String()
}

var versionCommand = command{
	name:    "version",
	summary: "say which build this is",
	usage:   "gateway version\n",
	do: func(_ context.Context, _ arguments, w world) error {
		revision := ""
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					revision = " " + s.Value
				}
			}
		}
		_, err := fmt.Fprintf(w.out, "sluice %s%s %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	},
}
