// Command gateway is Sluice: a public HTTP ingress in front of payment backends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "development"

// The exit codes.
const (
	exitOK    = 0
	exitFault = 1 // what was asked for failed
	exitUsage = 2 // what was asked for is not understood
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads any more must not end traffic
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
	}()
	os.Exit(run(ctx, os.Args[1:], world{os.Environ(), os.Stdout, os.Stderr}))
}

// world is what a command may touch besides the network and files.
type world struct {
	env    []string
	out    io.Writer // results, and the log
	errors io.Writer // faults and notes for people
}

// command is one thing that the program does.
type command struct {
	name    string
	summary string
	usage   string
	do      func(ctx context.Context, args arguments, w world) error
}

var commands []command

func init() { // a variable initialised in place would refer to itself through help
	commands = []command{runCommand, checkCommand, demoCommand, healthCommand, versionCommand, helpCommand}
}

// run does what args say and returns the exit code.
func run(ctx context.Context, args []string, w world) int {
	if len(args) == 0 {
		_, _ = fmt.Fprint(w.errors, overview())
		return exitUsage
	}
	name := args[0]
	if name == "-h" || name == "--help" {
		name = "help"
	}
	if name == "--version" {
		name = "version"
	}
	cmd, ok := commandNamed(name)
	if !ok {
		_, _ = fmt.Fprintf(w.errors, "gateway: %v\n", unknown(name))
		return exitUsage
	}
	parsed, err := parse(cmd.name, args[1:])
	switch {
	case errors.Is(err, errHelp):
		_, _ = fmt.Fprint(w.out, cmd.usage)
		return exitOK
	case err != nil:
		_, _ = fmt.Fprintf(w.errors, "gateway %s: %v; `gateway %s --help` says more\n", cmd.name, err, cmd.name)
		return exitUsage
	}
	if err := cmd.do(ctx, parsed, w); err != nil {
		if errors.As(err, new(unknown)) {
			_, _ = fmt.Fprintf(w.errors, "gateway %s: %v\n", cmd.name, err)
			return exitUsage
		}
		if !errors.Is(err, errSaid) {
			_, _ = fmt.Fprintf(w.errors, "gateway %s: %v\n", cmd.name, err)
		}
		return exitFault
	}
	return exitOK
}

// errSaid ends a command that has already said what is wrong.
var errSaid = errors.New("said")

// unknown is the name of a command that there is not.
type unknown string

// Error says so, and which one may have been meant.
func (u unknown) Error() string {
	hint := ""
	for _, c := range commands {
		if oneSlip(string(u), c.name) {
			hint = fmt.Sprintf(", did you mean %q?", c.name)
		}
	}
	return fmt.Sprintf("there is no command %q%s; `gateway help` lists them", string(u), hint)
}

// oneSlip reports whether a and b differ by one character more, less, other or
// swapped with its neighbour.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	case len(b)-len(a) > 1:
		return false
	case len(b) > len(a):
		return a[i:] == b[i+1:]
	case i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]:
		return true
	}
	return i < len(a) && a[i+1:] == b[i+1:]
}

func commandNamed(name string) (command, bool) {
	for _, c := range commands {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}
