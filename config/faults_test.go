package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Every line that a faulty file gets, exactly. Files that have no upstreams or
// routes of their own stand above those of small.
func TestLoad_ReportsEveryFaultWithItsLine(t *testing.T) {
	const missing1, missing2 = "sluice.yaml: upstreams: is required, at least one", "sluice.yaml: routes: is required, at least one"
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"empty", "", []string{"sluice.yaml: is empty, upstreams and routes are required"}},
		{"comments alone", "# nothing\n\n", []string{"sluice.yaml: is empty, upstreams and routes are required"}},
		{"null", "null\n", []string{"sluice.yaml: is empty, upstreams and routes are required"}},
		{"nothing set", "{}\n", []string{missing1, missing2}},
		{"a list", "- a\n", []string{"sluice.yaml:1: a list is given, settings are wanted: known are server, admin, state_dir, log, upstreams, routes, tracing, idempotency, retry_budget"}},
		{"prose", "hello\n", []string{`sluice.yaml:1: "hello" is given, settings are wanted: known are server, admin, state_dir, log, upstreams, routes, tracing, idempotency, retry_budget`}},
		{"not closed", "log:\n  level: info\nserver: {listen: x\nroutes: {}\n", []string{"sluice.yaml:3: not YAML: did not find expected ',' or '}'"}},
		{"indentation", "server:\n  listen: x\n drain: {}\n", []string{"sluice.yaml:3: not YAML: did not find expected key"}},
		{"two values", "state_dir: a: b\n", []string{"sluice.yaml:1: not YAML: mapping values are not allowed in this context"}},
		{"tab", "server:\n\tlisten: \":8080\"\n", []string{"sluice.yaml:2: not YAML: a tab stands at the beginning of the line, indent with spaces"}},
		{"unclosed quote", "state_dir: \"x\n", []string{"sluice.yaml:2: not YAML: found unexpected end of stream"}},
		{"control character", "state_dir: \x01\n", []string{"sluice.yaml:1: not YAML: control characters are not allowed"}},
		{"not UTF-8", "state_dir: \xff\n", []string{"sluice.yaml:1: not YAML: invalid leading UTF-8 octet"}},
		{"unknown anchor", "a: 1\nstate_dir: *x\n", []string{"sluice.yaml:2: not YAML: unknown anchor 'x' referenced"}},
		{"second document", small + "---\nserver: {}\n", []string{"sluice.yaml:8: a second document begins here, a file holds one"}},
		{"second empty document", small + "---\n", []string{"sluice.yaml:8: a second document begins here, a file holds one"}},
		{"second broken document", small + "---\n{\n", []string{"sluice.yaml:10: not YAML: did not find expected node content"}},

		{"unknown keys", "sever: {listen: \":80\"}\nzebra: 1\n" + small, []string{
			`sluice.yaml:1: sever: unknown key, did you mean "server"?`,
			"sluice.yaml:2: zebra: unknown key, known are server, admin, state_dir, log, upstreams, routes, tracing, idempotency, retry_budget"}},
		{"what an unknown key seems to mean is checked", "server:\n  timeout: {header: 5, bdy: 1s}\n" + small, []string{
			`sluice.yaml:2: server.timeout: unknown key, did you mean "timeouts"?`,
			"sluice.yaml:2: server.timeouts.header: 5 has no unit, write for example 5ms or 5s",
			`sluice.yaml:2: server.timeouts.bdy: unknown key, did you mean "body"?`}},
		{"case", "server: {Listen: \":80\"}\n" + small, []string{`sluice.yaml:1: server.Listen: unknown key, did you mean "listen"?`}},
		{"unknown key where another has the place", "server: {drain: {delay: 1s, delays: 2s}}\n" + small, []string{
			`sluice.yaml:1: server.drain.delays: unknown key, did you mean "delay"?`}},
		{"keys that are odd", "1: x\n\"a\\nb\": x\n? [a]\n: x\n? {}\n" + small, []string{
			"sluice.yaml:1: [1]: unknown key, known are server, admin, state_dir, log, upstreams, routes, tracing, idempotency, retry_budget",
			`sluice.yaml:2: "a\nb": unknown key, known are server, admin, state_dir, log, upstreams, routes, tracing, idempotency, retry_budget`,
			"sluice.yaml:3: a key has to be a word",
			"sluice.yaml:5: a key has to be a word"}},
		{"key set twice", "server: {listen: \":80\"}\nstate_dir: a\nserver: {listen: 5}\n" + small, []string{
			"sluice.yaml:3: server: is set on line 1 already"}},

		{"bare durations", "server:\n  timeouts:\n    header: 250\n    body: 1.5\n    idle: \"75\"\n    write: 5 s\n" + small, []string{
			"sluice.yaml:3: server.timeouts.header: 250 has no unit, write for example 250ms or 250s",
			"sluice.yaml:4: server.timeouts.body: 1.5 has no unit, write for example 1.5ms or 1.5s",
			"sluice.yaml:5: server.timeouts.idle: 75 has no unit, write for example 75ms or 75s",
			`sluice.yaml:6: server.timeouts.write: "5 s" is not a duration, write for example 250ms, 5s or 1m30s`}},
		{"sizes", "server:\n  limits: {header_bytes: 16k, body: 1048576}\n" + small, []string{
			`sluice.yaml:2: server.limits.header_bytes: "16k" is not a size, write for example 512B, 16KiB or 1MiB`,
			"sluice.yaml:2: server.limits.body: 1048576 has no unit, write for example 1048576KiB or 1048576MiB"}},
		{"numbers", "server:\n  limits:\n    headers: \"100\"\n    connections: 010\n    in_flight: 1e3\n" + small, []string{
			`sluice.yaml:3: server.limits.headers: "100" is text, a whole number is wanted`,
			`sluice.yaml:4: server.limits.connections: "010" is not a whole decimal number`,
			`sluice.yaml:5: server.limits.in_flight: "1e3" is a number, a whole number is wanted`}},
		{"numbers that are large", "server:\n  limits: {headers: 99999999999999999999, connections: 2147483648, in_flight: -1}\n" + small, []string{
			`sluice.yaml:2: server.limits.headers: "99999999999999999999" is a number, a whole number is wanted`,
			"sluice.yaml:2: server.limits.connections: 2147483648 is too large, at most 10000000",
			"sluice.yaml:2: server.limits.in_flight: -1 is too small, at least 1"}},
		{"words", "log: {access: yes, sample: half}\nstate_dir: 2024-01-01\n" + small, []string{
			`sluice.yaml:1: log.access: "yes" is text, true or false is wanted`,
			`sluice.yaml:1: log.sample: "half" is text, a number is wanted`,
			`sluice.yaml:2: state_dir: 2024-01-01 is a date, write "2024-01-01" to make it text`}},
		{"shapes", "server: 5\nlog: [a]\nstate_dir: {a: b}\nadmin:\n  listen:\nupstreams: {a: b}\nroutes: x\n", []string{
			`sluice.yaml:1: server: "5" is given, keys are wanted: known are listen, reuse_port, tls, timeouts, limits, trusted_proxies, drain, http2, priority_header`,
			"sluice.yaml:2: log: a list is given, keys are wanted: known are level, format, access, sample",
			"sluice.yaml:3: state_dir: a mapping is given, text is wanted",
			"sluice.yaml:5: admin.listen: nothing is given, text is wanted",
			"sluice.yaml:6: upstreams: a mapping is given, a list is wanted: each entry begins with -",
			`sluice.yaml:7: routes: "x" is given, a list is wanted: each entry begins with -`}},
		{"types of its own", "state_dir: !secret x\nlog: {sample: !!float abc}\n" + small, []string{
			`sluice.yaml:1: state_dir: x is of the type !secret, write "x" to make it text`,
			`sluice.yaml:2: log.sample: "abc" is not a number`}},
		{"lists", "server:\n  listen: [8080, {a: b}, \"127.0.0.1:x\", \"unix:run\", \":80\", \":80\"]\n  trusted_proxies: [10.0.0.1, 10.0.0.1/8, \"::ffff:10.0.0.0/104\"]\n" + small, []string{
			`sluice.yaml:2: server.listen[0]: 8080 is a number, write "8080" to make it text`,
			"sluice.yaml:2: server.listen[1]: a mapping is given, text is wanted",
			`sluice.yaml:3: server.trusted_proxies[0]: "10.0.0.1" is not an address range, write for example 10.0.0.0/8`,
			"sluice.yaml:3: server.trusted_proxies[1]: 10.0.0.1/8 is an address within a range, write 10.0.0.0/8 for the range or 10.0.0.1/32 for the address",
			"sluice.yaml:3: server.trusted_proxies[2]: ::ffff:10.0.0.0/104 is IPv4 in IPv6, which no caller's address ever is, write it as IPv4"}},
		{"items on lines of their own", "server:\n  listen:\n  - \":80\"\n  - 127.0.0.1:x\n  - unix:run\n  - \":80\"\n  - \"a b:80\"\n  - \":65536\"\n" + small, []string{
			`sluice.yaml:4: server.listen[1]: "127.0.0.1:x" has no valid port (0 to 65535), write host:port, ":port" or "unix:/absolute/path"`,
			`sluice.yaml:5: server.listen[2]: "unix:run" has no absolute path, write host:port, ":port" or "unix:/absolute/path"`,
			`sluice.yaml:6: server.listen[3]: ":80" is listed before`,
			`sluice.yaml:7: server.listen[4]: "a b:80" is not an address, write host:port, ":port" or "unix:/absolute/path"`,
			`sluice.yaml:8: server.listen[5]: ":65536" has no valid port (0 to 65535), write host:port, ":port" or "unix:/absolute/path"`}},
		{"half a pair", "server:\n  tls:\n    cert: cert.pem\n" + small, []string{"sluice.yaml:2: server.tls.key: is required with tls.cert, the file with its private key"}},
		{"the other half", "server:\n  tls: {key: key.pem}\n" + small, []string{"sluice.yaml:2: server.tls.cert: is required with tls.key, the file with its certificate"}},
		{"connections per address", "server:\n  limits: {connections_per_address: -1}\n" + small, []string{"sluice.yaml:2: server.limits.connections_per_address: -1 is too small, at least 0"}},
		{"nothing to listen on", "server: {listen: []}\n" + small, []string{`sluice.yaml:1: server.listen: is required, for example ":8080"`}},
		{"admin where callers are", "server: {listen: \"127.0.0.1:80\"}\nadmin: {listen: \"127.0.0.1:80\"}\n" + small, []string{
			`sluice.yaml:2: admin.listen: "127.0.0.1:80" is in server.listen too, callers must not reach it`}},

		{"upstreams", `upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001", "https://b", "http://c/v1"]
    connections:
      max: 0
  - name: payments
    endpoints: ["http://b"]
    limit: {mode: on, shed_status: 500, queue: {time: 100}}
  - endpoints: []
  - x
  -
routes:
  - name: all
    path: /{path:*}
    upstream: payments
`, []string{
			`sluice.yaml:3: upstreams[payments].endpoints[1]: "https://b" differs from the endpoints before it in http or https, all have to be the same`,
			`sluice.yaml:3: upstreams[payments].endpoints[2]: "http://c/v1" holds a path (that of the request is sent), write http://host:port or https://host:port`,
			"sluice.yaml:5: upstreams[payments].connections.max: 0 is too small, at least 1",
			`sluice.yaml:6: upstreams[payments].name: "payments" is the name of an earlier upstream, each has its own`,
			`sluice.yaml:8: upstreams[payments].limit.mode: "on" is unknown, enforce or off`,
			"sluice.yaml:8: upstreams[payments].limit.queue.time: 100 has no unit, write for example 100ms or 100s",
			"sluice.yaml:8: upstreams[payments].limit.shed_status: 500 is not possible, 429 or 503",
			"sluice.yaml:9: upstreams[2].name: is required",
			`sluice.yaml:9: upstreams[2].endpoints: is required, for example ["http://127.0.0.1:9001"]`,
			`sluice.yaml:10: upstreams[3]: "x" is given, keys are wanted: known are name, endpoints, tls, connections, resolve, limit, dedupes, refused_statuses, retry, breaker, health, deadline`,
			"sluice.yaml:11: upstreams[4].name: is required",
			`sluice.yaml:11: upstreams[4].endpoints: is required, for example ["http://127.0.0.1:9001"]`}},
		{"routes", `upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
routes:
  - name: charges
    path: /v1/charges
    upstream: paymets
    timout: 2s
  - name: charges
    path: /v1/refunds
    upstream: ledger
    response: streamed
    max_body: 0
    stall: 2h
  - name: third
    path: /v1/third
`, []string{
			`sluice.yaml:7: routes[charges].upstream: "paymets" is not an upstream, did you mean "payments"?`,
			`sluice.yaml:8: routes[charges].timout: unknown key, did you mean "timeout"?`,
			`sluice.yaml:9: routes[charges].name: "charges" is the name of an earlier route, each has its own`,
			`sluice.yaml:11: routes[charges].upstream: "ledger" is not an upstream, known are payments`,
			`sluice.yaml:12: routes[charges].response: "streamed" is unknown, bounded or stream`,
			"sluice.yaml:13: routes[charges].max_body: 0B is too small, at least 1B",
			"sluice.yaml:14: routes[charges].stall: 2h0m0s is too large, at most 1h0m0s",
			"sluice.yaml:15: routes[third].upstream: is required, the name of an upstream"}},
		{"routes that cannot be told apart", `upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
routes:
  - {name: a, path: "/v1/{id}", upstream: payments}
  - {name: b, path: "/v1/{other}", upstream: payments}
  - name: c
    path: v1
    methods:
      - get
      - CONNECT
    upstream: payments
    host: "a b"
`, []string{
			`sluice.yaml:6: routes[b].path: "/v1/{other}" ...`,
			"sluice.yaml:8: routes[c].path: ...",
			"sluice.yaml:10: routes[c].methods[0]: ...",
			"sluice.yaml:11: routes[c].methods[1]: ...",
			"sluice.yaml:13: routes[c].host: ..."}},
		{"names that would mislead are not shown", `upstreams:
  - name: "a]: b"
    endpoints: ["http://127.0.0.1:9001"]
routes:
  - name: all
    path: /{path:*}
    upstream: "a]: b"
`, []string{`sluice.yaml:2: upstreams[0].name: "a]: b" holds ']', letters and digits are allowed, and after the first - and _`}},

		{"what this version cannot do", `server:
  tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem}
upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
    limit: {mode: observe}
routes:
  - name: all
    path: /{path:*}
    upstream: payments
    body: stream
    when_open: defer
`, []string{
			"sluice.yaml:2: server.tls.client_ca: this version cannot ask callers for a certificate, leave it out",
			`sluice.yaml:6: upstreams[payments].limit.mode: "observe" is not possible in this version, enforce or off`,
			`sluice.yaml:11: routes[all].body: "stream" is not possible in this version, only buffer`,
			`sluice.yaml:12: routes[all].when_open: "defer" is not possible in this version, only reject`}},
		{"the shape of what is not acted on", `retry_budget: {mode: on, ratio: ten}
upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
    breaker: {min_cals: 5, open: {for: 15}, half_open: {ramp: [0.1, x]}}
    retry: {on: [not-sent, never], backoff: 5ms}
routes:
  - name: all
    path: /{path:*}
    upstream: payments
    priority: highest
    deadline: {mod: off}
`, []string{
			`sluice.yaml:1: retry_budget.mode: "on" is unknown, one of enforce, observe, off`,
			`sluice.yaml:1: retry_budget.ratio: "ten" is text, a number is wanted`,
			`sluice.yaml:5: upstreams[payments].breaker.min_cals: unknown key, did you mean "min_calls"?`,
			"sluice.yaml:5: upstreams[payments].breaker.open.for: 15 has no unit, write for example 15ms or 15s",
			`sluice.yaml:5: upstreams[payments].breaker.half_open.ramp[1]: "x" is text, a number is wanted`,
			`sluice.yaml:6: upstreams[payments].retry.on[1]: "never" is unknown, one of not-sent, refused, reset, overloaded, failed, timed-out`,
			`sluice.yaml:6: upstreams[payments].retry.backoff: "5ms" is given, keys are wanted: known are base, max`,
			`sluice.yaml:11: routes[all].priority: "highest" is unknown, one of critical, high, normal, sheddable`,
			`sluice.yaml:12: routes[all].deadline.mod: unknown key, did you mean "mode"?`}},
		{"merges", "server: {<<: 5}\nlog: {<<: [{access: no}, x]}\n" + small, []string{
			`sluice.yaml:1: server: "5" is merged, << takes a mapping or a list of them`,
			`sluice.yaml:2: log: "x" is merged, << takes a mapping or a list of them`,
			`sluice.yaml:2: log.access: "no" is text, true or false is wanted`}},
		{"merge within itself", "server: &s {timeouts: {<<: *s}}\nlog: &l {<<: *l}\n" + small, []string{
			`sluice.yaml:1: server.timeouts.timeouts: unknown key, known are header, body, idle, write`,
			"sluice.yaml:2: log: merges too much within itself"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := loadText(t, test.text, Source{})
			wantLines(t, test.text, errorText(err), test.want...)
			var faults Faults
			if !errors.As(err, &faults) {
				t.Errorf("got %T, want Faults", err)
			}
		})
	}
}

func TestLoad_FileThatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"none.yaml": "none.yaml: cannot be read: no such file or directory",
		"folder":    "folder: cannot be read: is a directory",
		"/dev/zero": "/dev/zero: is larger than 1MiB",
	} {
		_, _, err := Load(Source{File: name})
		wantLines(t, name, errorText(err), want)
	}
}

func TestLoad_BoundsWhatAFileCosts(t *testing.T) {
	laughs := "x: &a0 [{access: true}]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("x%d: &a%d [%s]\n", i, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	laughs += "log: {<<: *a9}\n"
	merges := "log: &m0 {access: true}\n"
	for i := range 9 {
		merges += fmt.Sprintf("admin%d: &m%d {<<: [%s]}\n", i, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*m%d, ", i), 10), ", "))
	}
	merges += "admin: {<<: *m9}\n"
	routes := "log: &l [" + strings.Repeat("GET, ", 20_000) + "GET]\nroutes: [" + strings.Repeat("{methods: *l}, ", 20_000) + "]\n"
	for name, text := range map[string]string{"aliases": laughs, "merges": merges, "entries": routes} {
		_, _, err := loadText(t, text+small, Source{})
		const want = "holds more than 262144 values, what aliases repeat included"
		if !strings.Contains(errorText(err), want) {
			t.Errorf("%s: got %.300q..., want %q in it", name, errorText(err), want)
		}
	}
}

func TestLoad_BoundsWhatItSays(t *testing.T) {
	_, _, err := loadText(t, strings.Repeat("x: 1\n", 5000)+strings.Repeat("y", 1000)+": 1\n"+small, Source{})
	text := errorText(err)
	if n := strings.Count(text, "\n") + 1; n != mostFaults+1 || len(text) > 100_000 {
		t.Errorf("got %d lines, %d bytes, want %d lines", n, len(text), mostFaults+1)
	}
	if want := "sluice.yaml:201: x: 4801 more faults follow"; !strings.HasSuffix(text, want) {
		t.Errorf("got %q at the end, want %q", text[len(text)-100:], want)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"timeout", "timeouts", "max", "idle", "endpoints"}
	for text, want := range map[string]string{
		"timout": "timeout", "tiemout": "timeout", "Timeout": "timeout", "timeoutss": "timeouts", "mx": "max",
		"idel": "idle", "endpoint": "endpoints", "": "", "x": "", "zebra": "", "min": "", strings.Repeat("max", 1000): "",
	} {
		if got := nearest(text, words); got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}
