package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"sluice/bench/paybackend"
	"sluice/config"
)

var demoCommand = command{
	name:    "demo",
	summary: "run a simulated payment backend and the gateway before it, to try",
	usage: `gateway demo [--listen 127.0.0.1:8080] [--PATH VALUE]

Everything is in this one process, and on loopback unless you say otherwise; it takes
a free port where the usual one is in use, leaves nothing behind, and ends with
Ctrl-C.
`,
	do: demo,
}

// demoServiceTime is what a payment takes in the simulated backend.
const demoServiceTime = 5 * time.Millisecond

func demo(ctx context.Context, args arguments, w world) error {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		_ = backend.Close()
		return err
	}
	defer func() { _ = os.RemoveAll(state) }()

	p, err := demoProcess(args, w, backend.Addr().String(), state)
	if err != nil {
		_ = backend.Close()
		return err
	}
	_, _ = fmt.Fprint(w.errors, demoText(p, backend.Addr().String()))

	// The backend outlives the gateway, which may still be finishing requests.
	serving, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var failed error
	running.Go(func() {
		cfg := paybackend.DefaultConfig()
		cfg.ServiceTime = demoServiceTime
		failed = paybackend.New(cfg).Serve(serving, backend)
	})
	err = p.run(ctx, func(context.Context) {}) // it has no file that could change
	stop()
	running.Wait()
	return errors.Join(err, failed)
}

// demoProcess is a gateway before backend. It moves to a free port where the usual
// one is taken, unless the user named one.
func demoProcess(args arguments, w world, backend, state string) (*process, error) {
	args.config = ""
	args.upstream = "http://" + backend
	named := args.listen != "" || args.settings["server.listen"] != ""
	if !named {
		args.listen = freeOr("127.0.0.1:8080")
	}
	for setting, value := range map[string]string{
		"state_dir":    state,
		"log.format":   "console",
		"log.sample":   "0.01", // a load of thousands a second is meant to be run
		"admin.listen": freeOr("127.0.0.1:9901"),
	} {
		if args.settings[setting] == "" {
			args.settings[setting] = value
		}
	}
	source := args.source(w.env)
	source.File = "" // the demo has its own backend, whatever GATEWAY_CONFIG says
	cfg, _, err := config.Load(source)
	if err != nil {
		return nil, err
	}
	return newProcess(cfg, w)
}

// freeOr is the address, or one with a free port where it is in use.
func freeOr(address string) string {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = ln.Close()
	return address
}

func demoText(p *process, backend string) string {
	url := urlOf(p.public[0])
	admin := "off"
	if p.adminL != nil {
		admin = urlOf(p.adminL)
	}
	return fmt.Sprintf(`Sluice demo: callers -> gateway %[1]s -> simulated payment backend http://%[2]s
Admin: %[3]s (/healthz /readyz /metrics /state)

Try, in another terminal:
  curl -i %[1]s/v1/charges -H 'Content-Type: application/json' -d '{"amount":1250,"currency":"eur"}'
  curl -i '%[1]s/v1/charges?limit=3'
  curl -i '%[1]s/slow?ms=5000'          # longer than the route's 2.5 s: a 504 that says the outcome is unknown
  curl -i %[1]s/status/503              # the backend's own errors pass unchanged
  wrk -t1 -c32 -d5s %[1]s/v1/charges
  hey -n 2048 -c 32 -m POST -T application/json -d '{"amount":1250,"currency":"eur"}' %[1]s/v1/charges
  curl -s %[3]s/state

Ctrl-C ends it. One request of a hundred is logged here (--log.sample 1 for all), and
every error that the gateway answers itself.

`, url, backend, admin)
}
