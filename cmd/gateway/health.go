package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// healthTime bounds the question.
const healthTime = 2 * time.Second

var healthCommand = command{
	name:    "health",
	summary: "ask a running gateway on this host whether it lives",
	usage: `gateway health [--config FILE] [--admin.listen ADDRESS]

Asks /healthz on the admin listener that the configuration names. Exit status 0 when
it answers, 1 when not: for the health check of a container.

`,
	do: func(ctx context.Context, args arguments, w world) error {
		if args.source(w.env).File == "" && args.upstream == "" {
			args.upstream = "http://127.0.0.1:1" // nothing is sent there; a configuration needs one
		}
		cfg, err := load(args, world{w.env, w.out, io.Discard})
		if err != nil {
			return errors.New("the configuration is faulty; `gateway check` says where")
		}
		network, address := "tcp", cfg.Admin.Listen
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			network, address = "unix", path
		}
		if address == "off" {
			return errors.New("admin.listen is off, so there is nobody to ask")
		}
		client := http.Client{Timeout: healthTime, Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			},
		}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/healthz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("no answer from %s: %w", cfg.Admin.Listen, errors.Unwrap(err))
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answered %d", cfg.Admin.Listen, response.StatusCode)
		}
		_, err = fmt.Fprintln(w.out, "ok")
		return err
	},
}
