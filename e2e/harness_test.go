// Package e2e runs the built gateway, as a user would run it, between programs
// that none of its authors wrote: payment SDKs, curl, load tools, nginx, Python.
// It decides nothing about the gateway's inside: everything is said through its
// command line, its configuration file, its listeners and its output.
//
// Everything runs on loopback, is bounded in time and count, and is ended by
// process id. A program that is missing is a failure that says what to install.
package e2e

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// binDir holds what this run built; TestMain removes it.
var binDir string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-e2e-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	return m.Run()
}

// gatewayBinary is the program under test: SLUICE_BIN when set, else one built now.
var gatewayBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("SLUICE_BIN"); path != "" {
		return filepath.Abs(path)
	}
	return build("gateway", "..", "./cmd/gateway")
})

// Programs that this module's go.mod lists as tools.
var (
	stripeMockBinary = sync.OnceValues(func() (string, error) {
		return build("stripe-mock", ".", "github.com/stripe/stripe-mock")
	})
	heyBinary = sync.OnceValues(func() (string, error) {
		return build("hey", ".", "github.com/rakyll/hey")
	})
)

// build compiles pkg of the module in dir to a static binary in binDir.
func build(name, dir, pkg string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	path := filepath.Join(binDir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// must unwraps what one of the binaries above gives.
func must(t *testing.T, binary func() (string, error)) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// installed returns the path of a program of the machine's.
func installed(t *testing.T, program, hint string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is not installed: %s", program, hint)
	}
	return path
}

// output runs a program to its end and returns what it wrote to standard output.
// The test fails when it exits non-zero or does not end in time.
func output(t *testing.T, path string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	var stderr lines
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\nstdout:\n%s\nstderr:\n%s", filepath.Base(path), args, err, out, stderr.String())
	}
	return string(out)
}

// waitFor asks until done is true. What is waited for lies in other processes,
// so there is nothing to select on: it polls, and the time only bounds a failure.
func waitFor(t *testing.T, what string, within time.Duration, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
