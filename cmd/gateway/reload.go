package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"sluice/config"
	"sluice/gateway/server"
	"sluice/gateway/telemetry"
)

// watchTime is how often the configuration file is looked at.
const watchTime = time.Second

// faultsLogged bounds the events of one refused configuration.
const faultsLogged = 20

// reloads counts them.
type reloads struct {
	ok, refused atomic.Uint64
	loaded      atomic.Int64 // when the configuration in force was, as Unix time
}

func (r *reloads) show(m *telemetry.Metrics) {
	r.loaded.Store(time.Now().Unix())
	m.Counter(telemetry.Name("sluice_reloads_total", "result", "ok"), r.ok.Load)
	m.Counter(telemetry.Name("sluice_reloads_total", "result", "refused"), r.refused.Load)
	m.Gauge("sluice_config_loaded_seconds", func() float64 { return float64(r.loaded.Load()) })
}

// reload reads the configuration again, as it was read at the start, and puts it in
// force if there is nothing wrong with it.
func (p *process) reload(ctx context.Context, source config.Source) {
	cfg, remarks, err := config.Load(source)
	if err == nil {
		err = checkFiles(cfg)
	}
	if err == nil {
		err = p.engine.Reconfigure(ctx, cfg)
	}
	log := p.log.Logger()
	switch {
	case ctx.Err() != nil:
		return // stopping
	case err != nil:
		p.refused.Add(1)
		say(err.Error(), func(fault string) {
			log.Warn().Str("fault", fault).Msg("the changed configuration is refused, the old one stays in force")
		})
		return
	}
	p.log.Configure(cfg.Log)
	p.ok.Add(1)
	p.loaded.Store(time.Now().Unix())
	lines := make([]string, len(remarks))
	for i := range remarks {
		lines[i] = remarks[i].String()
	}
	say(strings.Join(lines, "\n"), func(remark string) { log.Warn().Str("remark", remark).Msg("configuration") })
	if names := p.fixed(&cfg); len(names) > 0 {
		log.Warn().Strs("settings", names).Msg("settings that only a restart changes keep their old values")
	}
	log.Info().Int("upstreams", len(cfg.Upstreams)).Int("routes", len(cfg.Routes)).Msg("the changed configuration is in force")
}

// say hands on the lines of text, as many as are useful.
func say(text string, line func(string)) {
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if i == faultsLogged {
			line(fmt.Sprintf("%d more follow, `gateway check` lists all", len(lines)-i))
			return
		}
		line(l)
	}
}

// fixed names the settings that differ from those of the start and that the process
// cannot change while it runs.
func (p *process) fixed(cfg *config.Config) []string {
	names := server.Fixed(p.cfg.Server, cfg.Server)
	for _, f := range []struct {
		name   string
		differ bool
	}{
		{"admin", !reflect.DeepEqual(p.cfg.Admin, cfg.Admin)},
		{"state_dir", p.cfg.StateDir != cfg.StateDir},
		{"log.format", p.cfg.Log.Format != cfg.Log.Format},
	} {
		if f.differ {
			names = append(names, f.name)
		}
	}
	return names
}
