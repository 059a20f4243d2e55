// Command backend runs the simulated payment backend by itself, for the load
// recipes: it says where it listens and serves until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"sluice/bench/paybackend"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	cfg := paybackend.DefaultConfig()
	flags := flag.NewFlagSet("backend", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "`address` to listen on; port 0 takes a free one")
	flags.DurationVar(&cfg.ServiceTime, "service-time", cfg.ServiceTime, "`time` that each request to /v1 takes")
	flags.IntVar(&cfg.Keep, "keep", cfg.Keep, "`number` of charges remembered")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("backend: %w", err)
	}
	fmt.Fprintf(out, "backend: listening on %s\n", ln.Addr())
	return paybackend.New(cfg).Serve(ctx, ln)
}
