package config

import (
	"strings"
	"testing"
)

// FuzzLoad holds every input to: no panic, the same answer twice, one printable line
// for each fault, and what loads is valid.
func FuzzLoad(f *testing.F) {
	// The seeds are short, since finding a shorter one for each takes most of the time.
	f.Add("server: {limits: {body: 1MiB, headers: 5}, trusted_proxies: [10.0.0.0/8]}\n"+small, "GATEWAY_SERVER__LISTEN=:1,:2", "routes.all.timeout=5s")
	f.Add("upstreams:\n- {name: a, endpoints: http://a, limit: {mode: off}, breaker: {open: {for: 1s}}}\n", "GATEWAY_UPSTREAMS__A__LIMIT__MAX=5", "")
	f.Add(small, "GATEWAY_ROUTES__ALL__METHODS=a,b", "upstreams.payments=x")
	f.Add("server: &s {timeouts: {<<: *s}, limits: 5}\nlog: {<<: [*s, {level: off}]}\n? {a: b}\n: c\n", "", "log.level=info")
	f.Add("upstreams: [{name: ~, tls: !x {}}, [], *a]\n---\n...\n", "GATEWAY_A__B=", "=")
	f.Add("routes:\n\t- a\n", "GATEWAY_=", "a.b.c")
	f.Add("\xef\xbb\xbfserver: {listen: [\"unix:/x\", 5, !!int 6, 0x7]}\n", "", "")
	f.Fuzz(func(t *testing.T, file, env, flags string) {
		src := Source{File: "sluice.yaml", Env: strings.Split(env, "\n"), Flags: map[string]string{}}
		for flag := range strings.SplitSeq(flags, "\n") {
			if name, value, ok := strings.Cut(flag, "="); ok {
				src.Flags[name] = value
			}
		}
		c, remarks, err := load(src, []byte(file))
		_, again, errAgain := load(src, []byte(file))
		if got, want := errorText(errAgain)+remarkText(again), errorText(err)+remarkText(remarks); got != want {
			t.Errorf("got %q, then %q", want, got)
		}
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("loads, but is not valid: %v", err)
			}
			return
		}
		for _, fault := range err.(Faults) {
			line := fault.Error()
			if strings.ContainsAny(line, "\r\n\x00\x1b") || len(line) > 2000 || fault.Text == "" {
				t.Errorf("not a line: %q", line)
			}
		}
	})
}
