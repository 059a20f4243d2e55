package config

import (
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/gateway/upstream"
)

func TestLoad_LaterSourcesWin(t *testing.T) {
	text := `server:
  listen: ":1000"
  timeouts: {header: 1s, body: 2s, idle: 3s}
  trusted_proxies: [10.0.0.0/8, 192.168.0.0/16]
upstreams:
  - name: payments
    endpoints: ["http://a", "http://b", "http://c"]
    connections: {max: 10, idle: 20s}
routes:
  - name: all
    path: /{path:*}
    upstream: payments
`
	c, _ := mustLoad(t, text, Source{
		Env: []string{
			"GATEWAY_SERVER__TIMEOUTS__BODY=22s",
			"GATEWAY_SERVER__TIMEOUTS__IDLE=33s",
			"GATEWAY_SERVER__TRUSTED_PROXIES=172.16.0.0/12",
			"GATEWAY_UPSTREAMS__PAYMENTS__CONNECTIONS__MAX=20",
			"GATEWAY_UPSTREAMS__PAYMENTS__ENDPOINTS=http://d, http://e",
			"GATEWAY_CONFIG=ignored.yaml",
			"OTHER=ignored",
			"GATEWAY",
		},
		Flags: map[string]string{
			"server.timeouts.idle":               "333s",
			"upstreams.payments.connections.max": "30",
		},
		Listen: ":2000",
	})
	for _, test := range []struct{ got, want any }{
		{c.Server.Listen, []string{":2000"}},
		{c.Server.Timeouts, Timeouts{Header: time.Second, Body: 22 * time.Second, Idle: 333 * time.Second, Write: 30 * time.Second}},
		{c.Server.TrustedProxies, []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}},
		{c.Upstreams[0].Connections, upstream.Connections{Max: 30, Idle: 20 * time.Second, DialTimeout: 500 * time.Millisecond}},
		{c.Upstreams[0].Endpoints, []string{"http://d", "http://e"}},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("got %v, want %v", test.got, test.want)
		}
	}
}

func TestLoad_AbsentIsDefaultAndZeroIsZero(t *testing.T) {
	c, _ := mustLoad(t, `server: {limits: {body: 2MiB}, drain: {timeout: 0s}}
upstreams:
  - name: first
    endpoints: ["http://127.0.0.1:9001"]
    limit: {queue: {length: 0}}
  - name: second
    endpoints: http://127.0.0.1:9002
routes:
  - {name: a, path: /a, upstream: first}
  - {name: b, path: /b, upstream: second, max_body: 3KB, response: stream}
`, Source{})
	if got := c.Server.Drain.Timeout; got != 0 {
		t.Errorf("drain.timeout: got %v, want 0", got)
	}
	first, second := c.Upstreams[0].Limit.Queue, c.Upstreams[1].Limit.Queue
	if first.Length != 0 || first.Time != 100*time.Millisecond || second.Length != 100 {
		t.Errorf("got queues %+v and %+v, want 0 and 100 long", first, second)
	}
	if got := c.Upstreams[1].Endpoints; len(got) != 1 || got[0] != "http://127.0.0.1:9002" {
		t.Errorf("one endpoint alone: got %q", got)
	}
	a, b := c.Routes[0], c.Routes[1]
	if a.MaxBody != 2*MiB || a.Response != ResponseBounded || a.Deadline() != DefaultRoute().Deadline() {
		t.Errorf("got %+v, want the defaults and max_body of the server", a)
	}
	if b.MaxBody != 3000 || b.Response != ResponseStream || b.Timeout != 2500*time.Millisecond {
		t.Errorf("got %+v, want 3KB, stream and the default timeout", b)
	}
}

func TestLoad_AliasesAndMergesAreTheValuesTheyStandFor(t *testing.T) {
	c, _ := mustLoad(t, `upstreams:
  - &first
    name: first
    endpoints: &e ["http://127.0.0.1:9001"]
    connections: &c {max: 5, idle: 6s}
  - <<: *first
    name: second
    connections: {<<: [*c], idle: 7s}
  - {name: third, endpoints: *e, connections: *c}
routes:
  - {name: all, path: "/{path:*}", upstream: third}
`, Source{})
	for i, want := range []string{"first 5 6s", "second 5 7s", "third 5 6s"} {
		u := c.Upstreams[i]
		if got := u.Name + " " + strconv.Itoa(u.Connections.Max) + " " + u.Connections.Idle.String(); got != want || len(u.Endpoints) != 1 {
			t.Errorf("got %s with %q, want %s", got, u.Endpoints, want)
		}
	}
}

func TestLoad_UpstreamAloneIsAConfiguration(t *testing.T) {
	c, remarks, err := Load(Source{
		Listen: "127.0.0.1:0", Upstream: "http://127.0.0.1:9000",
		Env:   []string{"GATEWAY_UPSTREAMS__DEFAULT__CONNECTIONS__MAX=7", "GATEWAY_SERVER__LISTEN=:1"},
		Flags: map[string]string{"routes.all.timeout": "9s"},
	})
	if err != nil || len(remarks) != 0 {
		t.Fatalf("got %v, %v", remarks, err)
	}
	want := DefaultUpstream()
	want.Name, want.Endpoints, want.Connections.Max = "default", []string{"http://127.0.0.1:9000"}, 7
	if len(c.Upstreams) != 1 || !reflect.DeepEqual(c.Upstreams[0], want) {
		t.Errorf("got upstreams %+v, want %+v", c.Upstreams, want)
	}
	route := DefaultRoute()
	route.Name, route.Path, route.Upstream, route.Timeout = "all", "/{path:*}", "default", 9*time.Second
	if len(c.Routes) != 1 || !reflect.DeepEqual(c.Routes[0], route) {
		t.Errorf("got routes %+v, want %+v", c.Routes, route)
	}
	if !reflect.DeepEqual(c.Server.Listen, []string{"127.0.0.1:0"}) {
		t.Errorf("got %q, want what --listen says", c.Server.Listen)
	}
}

func TestLoad_ShortcutsThatDoNotFit(t *testing.T) {
	tests := []struct {
		name string
		src  Source
		want []string
	}{
		{"nothing", Source{}, []string{"no configuration is given: name a file with --config, or an upstream with --upstream"}},
		{"listen alone", Source{Listen: ":80"}, []string{"no configuration is given: name a file with --config, or an upstream with --upstream"}},
		{"bad values", Source{Listen: "80", Upstream: "127.0.0.1:9000"}, []string{
			`--listen: server.listen[0]: "80" is not an address, write host:port, ":port" or "unix:/absolute/path"`,
			`--upstream: upstreams[default].endpoints[0]: "127.0.0.1:9000" is not a URL, write http://host:port or https://host:port`}},
		{"twice", Source{Listen: ":80", Upstream: "http://a", Flags: map[string]string{"server.listen": ":81", "upstreams.default.endpoints": "http://b"}}, []string{
			"--server.listen: server.listen: is set by --listen too",
			"--upstreams.default.endpoints: upstreams[default].endpoints: is set by --upstream too"}},
		{"upstream beside a file", Source{File: "sluice.yaml", Upstream: "http://a"}, []string{
			"--upstream: stands for a whole configuration, it cannot be combined with a file"}},
	}
	inFolder(t, small)
	for _, test := range tests {
		_, _, err := Load(test.src)
		wantLines(t, test.name, errorText(err), test.want...)
	}
}

func TestLoad_ReportsFaultsOfEnvironmentAndFlags(t *testing.T) {
	text := `server: {timeouts: {header: 0s}, limits: {headers: x}}
upstreams:
  - name: payments
    endpoints: ["http://127.0.0.1:9001"]
  - {name: pay-a, endpoints: ["http://127.0.0.1:9001"]}
  - {name: pay_a, endpoints: ["http://127.0.0.1:9001"]}
routes:
  - {name: all, path: "/{path:*}", upstream: payments}
`
	_, _, err := loadText(t, text, Source{
		Env: []string{
			"GATEWAY_SERVER__TIMEOUT__HEADER=5s",
			"GATEWAY_SERVER__TIMEOUTS=5s",
			"GATEWAY_SERVER__TIMEOUTS__IDLE__MAX=5s",
			"GATEWAY_SERVER__TIMEOUTS__BODY=250",
			"GATEWAY_SERVER__TIMEOUTS__WRITE=2h",
			"GATEWAY_SERVER__LIMITS__BODY=1024",
			"GATEWAY_SERVER__LIMITS__IN_FLIGHT=many",
			"GATEWAY_SERVER__TRUSTED_PROXIES=10.0.0.0/8,10.0.0.1",
			"GATEWAY_SERVER__TLS__CLIENT_CA=ca.pem",
			"GATEWAY_LOG__ACCESS=yes",
			"GATEWAY_LOG__SAMPLE=NaN",
			"GATEWAY_UPSTREAMS=x",
			"GATEWAY_UPSTREAMS__PAYMENT__LIMIT__MAX=1",
			"GATEWAY_UPSTREAMS__PAY_A__LIMIT__MAX=1",
			"GATEWAY_UPSTREAMS__PAYMENTS__ENDPOINTS=http://a,http://b/",
			"GATEWAY_UPSTREAMS__PAYMENTS__LIMIT__MODE=observe",
			"GATEWAY_UPSTREAMS__PAYMENTS__REFUSED_STATUSES=503",
			"GATEWAY_ROUTES__ALL__BODY=stream",
			"GATEWAY_ROUTES__ALL__IDEMPOTENCY__MODE=always",
			"GATEWAY_LISTEN=:80",
			"GATEWAY_=",
			"GATEWAY_state_dir=a",
			"GATEWAY_STATE_DIR=b",
		},
		Flags: map[string]string{
			"server.limits.headers":            "0",
			"server.Listen":                    ":80",
			"server.limits":                    "",
			"upstreams.pay-a.limit.max":        "0",
			"upstreams.PAYMENTS.limit.max":     "-5",
			"routes.al.timeout":                "5s",
			"upstreams.payments.name":          "pay ments",
			"upstreams.payments.endpoints.0.x": "a",
			"upstreams":                        "",
			"a\nb":                             "",
		},
	})
	wantLines(t, "faults", errorText(err),
		"sluice.yaml:1: server.limits.headers: \"x\" is text, a whole number is wanted",
		"sluice.yaml:1: server.timeouts.header: 0s is too small, at least 1ms",
		`sluice.yaml:8: routes[all].upstream: "payments" is not an upstream, did you mean "pay ments"?`,
		"GATEWAY_: \"\": unknown key, known are server, admin, state_dir, log, upstreams, routes, tracing, idempotency, retry_budget",
		"GATEWAY_LISTEN: listen: unknown key, known are server, admin, state_dir, log, upstreams, routes, tracing, idempotency, retry_budget",
		`GATEWAY_LOG__ACCESS: log.access: "yes" is neither true nor false`,
		`GATEWAY_LOG__SAMPLE: log.sample: "NaN" is not a number`,
		`GATEWAY_ROUTES__ALL__BODY: routes[all].body: "stream" is not possible in this version, only buffer`,
		`GATEWAY_ROUTES__ALL__IDEMPOTENCY__MODE: routes[all].idempotency.mode: "always" is unknown, one of enforce, observe, off`,
		`GATEWAY_SERVER__LIMITS__BODY: server.limits.body: 1024 has no unit, write for example 1024KiB or 1024MiB`,
		`GATEWAY_SERVER__LIMITS__IN_FLIGHT: server.limits.in_flight: "many" is not a whole decimal number`,
		"GATEWAY_SERVER__TIMEOUTS: server.timeouts: is set key by key: known are header, body, idle, write",
		"GATEWAY_SERVER__TIMEOUTS__BODY: server.timeouts.body: 250 has no unit, write for example 250ms or 250s",
		"GATEWAY_SERVER__TIMEOUTS__IDLE__MAX: server.timeouts.idle: has no keys below it, there is no max",
		"GATEWAY_SERVER__TIMEOUTS__WRITE: server.timeouts.write: 2h0m0s is too large, at most 1h0m0s",
		`GATEWAY_SERVER__TIMEOUT__HEADER: server.timeout: unknown key, did you mean "timeouts"?`,
		"GATEWAY_SERVER__TLS__CLIENT_CA: server.tls.client_ca: this version cannot ask callers for a certificate, leave it out",
		`GATEWAY_SERVER__TRUSTED_PROXIES: server.trusted_proxies: "10.0.0.1" is not an address range, write for example 10.0.0.0/8`,
		"GATEWAY_STATE_DIR: state_dir: is set by GATEWAY_state_dir too",
		"GATEWAY_UPSTREAMS: upstreams: is set entry by entry, by name: known are payments, pay-a, pay_a",
		`GATEWAY_UPSTREAMS__PAYMENTS__ENDPOINTS: upstreams[payments].endpoints[1]: "http://b/" holds a path (that of the request is sent), write http://host:port or https://host:port`,
		`GATEWAY_UPSTREAMS__PAYMENTS__LIMIT__MODE: upstreams[payments].limit.mode: "observe" is not possible in this version, enforce or off`,
		"GATEWAY_UPSTREAMS__PAYMENTS__REFUSED_STATUSES: upstreams[payments].refused_statuses: can be set in a file only",
		`GATEWAY_UPSTREAMS__PAYMENT__LIMIT__MAX: upstreams[PAYMENT]: unknown name, did you mean "payments"?`,
		"GATEWAY_UPSTREAMS__PAY_A__LIMIT__MAX: upstreams[PAY_A]: can be pay-a and pay_a, names that differ in case, - and _ alone cannot be told apart",
		`--"a\nb": "a\nb": unknown key, known are server, admin, state_dir, log, upstreams, routes, tracing, idempotency, retry_budget`,
		`--routes.al.timeout: routes[al]: unknown name, did you mean "all"?`,
		`--server.Listen: server.Listen: unknown key, did you mean "listen"?`,
		"--server.limits: server.limits: is set key by key: known are header_bytes, headers, body, connections, in_flight, buffered, connections_per_address, soft_share",
		"--server.limits.headers: server.limits.headers: 0 is too small, at least 1",
		"--upstreams: upstreams: is set entry by entry, by name: known are payments, pay-a, pay_a",
		"--upstreams.PAYMENTS.limit.max: upstreams[payments].limit.max: -5 is too small, at least 1",
		"--upstreams.pay-a.limit.max: upstreams[pay-a].limit.max: 0 is too small, at least 1",
		"--upstreams.payments.endpoints.0.x: upstreams[payments].endpoints: has no keys below it, there is no 0",
		`--upstreams.payments.name: upstreams[payments].name: "pay ments" holds ' ', letters and digits are allowed, and after the first - and _`,
	)
}

// Kubernetes puts these into every container of a namespace that has a service
// called gateway; they must not keep the gateway from starting.
func TestLoad_ServiceLinksAreNoSettings(t *testing.T) {
	_, _, err := loadText(t, small, Source{Env: []string{
		"GATEWAY_SERVICE_HOST=10.0.0.1", "GATEWAY_SERVICE_PORT=8080", "GATEWAY_SERVICE_PORT_HTTP=8080",
		"GATEWAY_PORT=tcp://10.0.0.1:8080", "GATEWAY_PORT_8080_TCP=tcp://10.0.0.1:8080",
		"GATEWAY_PORT_8080_TCP_PROTO=tcp", "GATEWAY_PORT_8080_TCP_PORT=8080", "GATEWAY_PORT_8080_TCP_ADDR=10.0.0.1",
		"GATEWAY_ADMIN_SERVICE_HOST=10.0.0.2", "GATEWAY_ADMIN_PORT=tcp://10.0.0.2:9901",
	}})
	wantLines(t, "links", errorText(err))
	_, _, err = loadText(t, small, Source{Env: []string{"GATEWAY_PORT=8080", "GATEWAY_SERVER__SERVICE_HOST=a"}})
	if got := errorText(err); !strings.HasPrefix(got, "GATEWAY_PORT: port: unknown key") || !strings.Contains(got, "\nGATEWAY_SERVER__SERVICE_HOST: ") {
		t.Errorf("got %s, want faults for both", got)
	}
}
