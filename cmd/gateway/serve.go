package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/admin"
	"sluice/gateway/server"
	"sluice/gateway/telemetry"
)

var runCommand = command{
	name:    "run",
	summary: "serve",
	usage: `gateway run --config FILE
gateway run --listen :8080 --upstream http://127.0.0.1:9000

Serves until SIGTERM or SIGINT: then it finishes what is in flight and exits 0, or 1
when drain.timeout was too short for it. A second signal ends it at once.

A changed configuration file is put in force while it runs, within two seconds, or at
once on SIGHUP. A faulty one changes nothing; the log says why.

` + settingsHelp,
	do: func(ctx context.Context, args arguments, w world) error {
		hangups := make(chan os.Signal, 1) // before anything else: a SIGHUP must not end a start
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		source := args.source(w.env)
		watch := config.NewWatch(source.File, watchTime)
		cfg, err := load(args, w)
		if err != nil {
			return err
		}
		p, err := newProcess(cfg, w)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(w.errors, p.serves())
		return p.run(ctx, func(ctx context.Context) {
			watch.Run(ctx, hangups, func() { p.reload(ctx, source) })
		})
	},
}

// process is a gateway with all that it needs, its listeners open.
type process struct {
	cfg    config.Config
	log    *telemetry.Log
	core   *gateway.Gateway
	engine *server.Engine
	public []net.Listener
	admin  *admin.Server
	adminL net.Listener // nil when admin.listen is off
	world  world
	reloads
}

// newProcess opens everything that can be in the way, so that a fault is one line
// before anything has begun.
func newProcess(cfg config.Config, w world) (*process, error) {
	if err := checkStateDir(cfg.StateDir); err != nil {
		return nil, err
	}
	p := &process{cfg: cfg, log: telemetry.NewLog(cfg.Log, w.out), world: w}
	metrics := telemetry.NewMetrics()
	metrics.WatchLog(p.log)
	metrics.Build(version)
	if err := checkFiles(cfg); err != nil {
		return nil, err
	}
	var err error
	if p.core, err = gateway.New(cfg, p.log, metrics, rand.Uint64); err != nil {
		return nil, err
	}
	if p.engine, err = server.New(p.core, cfg.Server, p.log.Logger()); err != nil {
		return nil, err
	}
	metrics.Counter("sluice_callers_refused_total", p.engine.Refused)
	metrics.Counter("sluice_callers_crowded_total", p.engine.Crowded)
	metrics.Counter("sluice_handshakes_failed_total", p.engine.HandshakesFailed)
	p.reloads.show(metrics)
	p.admin, err = admin.New(cfg.Admin, admin.Sources{
		Ready:    p.ready,
		State:    func() any { return p.core.State() },
		Metrics:  metrics.Write,
		Level:    p.log.Level,
		SetLevel: p.log.SetLevel,
		Warn:     func(text string) { p.log.Logger().Warn().Str("source", "admin").Msg(text) },
	})
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	if p.adminL, err = p.admin.Listen(); err != nil {
		return nil, oneLine("admin.listen", err)
	}
	if p.public, err = p.engine.Listen(); err != nil {
		if p.adminL != nil {
			_ = p.adminL.Close()
		}
		return nil, oneLine("server.listen", err)
	}
	return p, nil
}

// run serves until ctx ends and everything has stopped. watch runs beside it, and is
// told to end when nothing is served any more.
func (p *process) run(ctx context.Context, watch func(context.Context)) error {
	p.log.Logger().Info().Str("version", version).Str("serves", strings.TrimPrefix(p.serves(), "serving ")).Msg("started")
	var background sync.WaitGroup
	logging, stopLogging := context.WithCancel(context.Background())
	background.Go(func() {
		if err := p.log.Run(logging); err != nil {
			_, _ = fmt.Fprintln(p.world.errors, err)
		}
	})
	// Libraries that print through package log do so through ours.
	log.SetFlags(0)
	log.SetOutput(p.log.Logger())

	controlling, stopControlling := context.WithCancel(context.Background())
	var control sync.WaitGroup
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	control.Go(func() { watch(watching) })
	if p.adminL != nil {
		control.Go(func() {
			if err := p.admin.Serve(controlling, p.adminL); err != nil {
				p.log.Logger().Error().Err(err).Msg("the admin listener has stopped")
			}
		})
	}
	err := p.engine.Run(ctx, p.public)
	stopWatching()
	stopControlling()
	control.Wait()
	event := p.log.Logger().Info()
	if err != nil {
		event = p.log.Logger().Error().Err(err)
	}
	event.Msg("stopped")
	stopLogging()
	background.Wait()
	return err
}

// serves says what is served where, in one line.
func (p *process) serves() string {
	var b strings.Builder
	b.WriteString("serving")
	for _, ln := range p.public {
		url := urlOf(ln)
		if p.cfg.Server.TLS.On() {
			url = strings.Replace(url, "http://", "https://", 1)
		}
		b.WriteString(" " + url)
	}
	for i, u := range p.cfg.Upstreams {
		sep := ","
		if i == 0 {
			sep = " ->"
		}
		fmt.Fprintf(&b, "%s %s (%s)", sep, u.Name, strings.Join(u.Endpoints, " "))
	}
	if p.adminL != nil {
		b.WriteString("; admin " + urlOf(p.adminL))
	}
	return b.String()
}

func urlOf(ln net.Listener) string {
	if ln.Addr().Network() == "unix" {
		return "unix:" + ln.Addr().String()
	}
	return "http://" + ln.Addr().String()
}

// ready tells the admin listener which upstreams can be sent to.
func (p *process) ready() admin.Readiness {
	s := p.core.State()
	r := admin.Readiness{Ready: s.Ready}
	if s.Draining {
		r.Reasons = append(r.Reasons, "draining")
	}
	for _, u := range s.Upstreams {
		state := admin.UpstreamReady{Name: u.Name, Ready: u.Ready && !s.Draining}
		switch {
		case s.Draining:
			state.Reason = "draining"
		case !u.Ready:
			state.Reason = "no address"
		}
		r.Upstreams = append(r.Upstreams, state)
	}
	if !s.Ready && !s.Draining {
		r.Reasons = append(r.Reasons, "no upstream has an address")
	}
	return r
}

// checkFiles reads every file that the configuration names, and reports all that
// cannot be used, one line each.
func checkFiles(cfg config.Config) error {
	var faults []error
	for i := range cfg.Upstreams {
		u := &cfg.Upstreams[i]
		for _, err := range server.CheckTLS(u.TLS) {
			faults = append(faults, fmt.Errorf("upstreams[%s].%w", u.Name, err))
		}
	}
	if err := server.CheckServerTLS(cfg.Server.TLS); err != nil {
		faults = append(faults, err)
	}
	if err := cfg.Admin.CheckToken(); err != nil {
		faults = append(faults, fmt.Errorf("admin.%w", err))
	}
	return errors.Join(faults...)
}

// checkStateDir makes the directory and proves that it can be written.
func checkStateDir(dir string) error {
	shown := dir
	if absolute, err := filepath.Abs(dir); err == nil {
		shown = absolute
	}
	setting := "state_dir: cannot write " + shown
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return oneLine(setting, err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return oneLine(setting, err)
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}

// oneLine says which setting is in the way, of what, and what to do.
func oneLine(setting string, err error) error {
	var op *net.OpError
	var path *os.PathError
	switch {
	case errors.As(err, &op) && errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %s is in use by another process; stop it or choose another address", setting, op.Addr)
	case errors.As(err, &op) && op.Addr != nil:
		return fmt.Errorf("%s: cannot listen on %s: %w", setting, op.Addr, op.Err)
	case errors.As(err, &path):
		return fmt.Errorf("%s: %w; choose a directory that this user may write", setting, path.Err)
	}
	return fmt.Errorf("%s: %w", setting, err)
}
