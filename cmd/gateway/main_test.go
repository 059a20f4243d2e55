package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// output can be written and read at once.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// gatewayRun runs a command to its end.
func gatewayRun(t *testing.T, env []string, args ...string) (code int, out, errors string) {
	t.Helper()
	var o, e output
	code = run(t.Context(), args, world{env, &o, &e})
	return code, o.String(), e.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCommands(t *testing.T) {
	good := file(t, "upstreams: [{name: p, endpoints: ['http://127.0.0.1:9']}]\nroutes: [{name: r, path: '/{x:*}', upstream: p}]\n")
	bad := file(t, "upstreams: [{name: p, endpoints: ['http://127.0.0.1:9']}]\nroutes:\n  - {name: r, path: /, upstream: q, timout: 1s}\n  - {name: s, path: '/s', upstream: p, timeout: 250}\n")
	plain := file(t, "not a directory")
	for name, c := range map[string]struct {
		args   []string
		env    []string
		code   int
		out    string // regular expressions
		errors string
	}{
		"nothing":            {nil, nil, exitUsage, `^$`, `Usage: gateway COMMAND`},
		"help":               {[]string{"help"}, nil, exitOK, `demo .*\n`, `^$`},
		"help of one":        {[]string{"help", "run"}, nil, exitOK, `gateway run --config FILE`, `^$`},
		"--help of one":      {[]string{"run", "--help"}, nil, exitOK, `gateway run --config FILE`, `^$`},
		"version":            {[]string{"version"}, nil, exitOK, `^sluice \S+ .*go1\.`, `^$`},
		"unknown command":    {[]string{"rum"}, nil, exitUsage, `^$`, `^gateway: there is no command "rum", did you mean "run"\?[^\n]*\n$`},
		"unknown flag":       {[]string{"run", "--verbose", "x"}, nil, exitUsage, `^$`, `^gateway run: there is no flag --verbose[^\n]*\n$`},
		"flag without value": {[]string{"run", "--config"}, nil, exitUsage, `^$`, `^gateway run: --config needs a value[^\n]*\n$`},
		"flag twice":         {[]string{"run", "--listen", ":1", "--listen=:2"}, nil, exitUsage, `^$`, `given twice`},
		"short flag":         {[]string{"run", "-c", "x"}, nil, exitUsage, `^$`, `flags begin with --`},
		"check, good":        {[]string{"check", "--config", good}, nil, exitOK, `^ok: upstreams 1, routes 1\n$`, `^$`},
		"check, from env":    {[]string{"check"}, []string{"GATEWAY_CONFIG=" + good}, exitOK, `^ok`, `^$`},
		"check, every fault": {[]string{"check", "--config", bad}, nil, exitFault, `^$`,
			`^\S+sluice.yaml:3: routes\[r\].timout: [^\n]*did you mean "timeout"\?\n\S+:3: routes\[r\].upstream: "q" is not an upstream[^\n]+\n\S+:4: routes\[s\].timeout: [^\n]+\n$`},
		"check, bad flag":    {[]string{"check", "--config", good, "--server.timeouts.idle", "5"}, nil, exitFault, `^$`, `^--server.timeouts.idle: server.timeouts.idle: 5 has no unit[^\n]*\n$`},
		"check, bad env":     {[]string{"check", "--config", good}, []string{"GATEWAY_SERVER__LISTN=:1"}, exitFault, `^$`, `^GATEWAY_SERVER__LISTN: [^\n]*listen[^\n]*\n$`},
		"check, no file":     {[]string{"check", "--config", "/nowhere.yaml"}, nil, exitFault, `^$`, `^[^\n]*/nowhere.yaml[^\n]*\n$`},
		"run, nothing to do": {[]string{"run"}, nil, exitFault, `^$`, `^[^\n]*upstream[^\n]*\n`},
		"run, state_dir":     {[]string{"run", "--config", good, "--admin.listen", "off", "--state_dir", plain + "/state"}, nil, exitFault, `^$`, `^gateway run: state_dir: cannot write /[^\n]*/state: not a directory; choose [^\n]*\n$`},
		"run, ca missing":    {[]string{"run", "--upstream", "https://127.0.0.1:9", "--admin.listen", "off", "--state_dir", t.TempDir(), "--upstreams.default.tls.ca", "/nowhere.pem"}, nil, exitFault, `^$`, `^gateway run: upstreams\[default\].tls.ca: [^\n]*/nowhere.pem[^\n]*\n$`},
		"check, files": {[]string{"check", "--upstream", "https://127.0.0.1:9", "--upstreams.default.tls.ca", "/nowhere.pem", "--upstreams.default.tls.cert", "/c", "--upstreams.default.tls.key", "/k", "--admin.token_file", "/nope"}, nil, exitFault, `^$`,
			`^upstreams\[default\].tls.ca: [^\n]+\nupstreams\[default\].tls.cert[^\n]+\nadmin.token_file: [^\n]+\n$`},
		"demo, upstream":      {[]string{"demo", "--upstream", "http://127.0.0.1:9"}, nil, exitUsage, `^$`, `^gateway demo: --upstream[^\n]*\n$`},
		"unknown dotted flag": {[]string{"demo", "--foo"}, nil, exitUsage, `^$`, `there is no flag --foo`},
		"help, unknown":       {[]string{"help", "rum"}, nil, exitUsage, `^$`, `did you mean "run"`},
		"health, nobody":      {[]string{"health", "--admin.listen", "127.0.0.1:1"}, nil, exitFault, `^$`, `^gateway health: no answer from 127.0.0.1:1[^\n]*\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errors := gatewayRun(t, c.env, c.args...)
			if code != c.code || !regexp.MustCompile(c.out).MatchString(out) || !regexp.MustCompile(c.errors).MatchString(errors) {
				t.Errorf("exit %d, out %q, errors %q\nwant %d, %s, %s", code, out, errors, c.code, c.out, c.errors)
			}
		})
	}
}

func TestRun_AddressInUseIsOneLine(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	for _, setting := range []string{"server.listen", "admin.listen"} {
		args := []string{"run", "--upstream", "http://127.0.0.1:9", "--state_dir", t.TempDir(), "--" + setting, ln.Addr().String()}
		other := map[string]string{"server.listen": "admin.listen", "admin.listen": "server.listen"}[setting]
		code, out, errors := gatewayRun(t, nil, append(args, "--"+other, "127.0.0.1:0")...)
		want := "gateway run: " + setting + ": " + ln.Addr().String() + " is in use by another process; stop it or choose another address\n"
		if code != exitFault || out != "" || errors != want {
			t.Errorf("exit %d, out %q, errors %q; want 1 and %q", code, out, errors, want)
		}
	}
}

// started runs a command until the test ends and waits for what it says.
func started(t *testing.T, pattern string, args ...string) (match []string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errors output
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, world{nil, &out, &errors}) }()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(20 * time.Second); ; {
		if match = re.FindStringSubmatch(errors.String()); match != nil {
			break
		}
		select {
		case code := <-done:
			t.Fatalf("exit %d: %s%s", code, out.String(), errors.String())
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("it never said %s: %s", pattern, errors.String())
		}
	}
	stop = sync.OnceValue(func() int {
		cancel()
		return <-done
	})
	t.Cleanup(func() { stop() })
	return match, stop
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url) //nolint:noctx
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestDemo_ServesWhatItSays(t *testing.T) {
	said, stop := started(t, `gateway (http://\S+) -> .*\nAdmin: (http://\S+) `, "demo", "--listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0")
	gateway, admin := said[1], said[2]
	res, err := http.Post(gateway+"/v1/charges", "application/json", strings.NewReader(`{"amount":1250,"currency":"eur"}`)) //nolint:noctx
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 || !strings.Contains(string(body), `1250`) {
		t.Errorf("a charge: %d %s", res.StatusCode, body)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": `"ready":true`, "/state": `"upstreams"`, "/metrics": "sluice_requests_total"} {
		if status, text := get(t, admin+path); status != 200 || !strings.Contains(strings.ReplaceAll(text, " ", ""), want) {
			t.Errorf("%s: %d %s, want %s", path, status, text, want)
		}
	}
	if code, out, errors := gatewayRun(t, nil, "health", "--admin.listen", strings.TrimPrefix(admin, "http://")); code != 0 || out != "ok\n" {
		t.Errorf("health: exit %d, %q, %q", code, out, errors)
	}
	if code := stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestRun_SaysWhatItServesWhere(t *testing.T) {
	said, stop := started(t, `^serving (http://\S+) -> default \(http://127.0.0.1:9\); admin http://127\.0\.0\.1:\d+\n$`,
		"run", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9", "--admin.listen", "127.0.0.1:0", "--state_dir", t.TempDir())
	if status, body := get(t, said[1]+"/x"); status != 502 || !strings.Contains(body, `"connect_failed"`) {
		t.Errorf("with nobody behind it: %d %s", status, body)
	}
	if code := stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}
