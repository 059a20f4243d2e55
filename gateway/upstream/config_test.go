package upstream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func validConfig() Config {
	config := DefaultConfig()
	config.Name = "payments"
	config.Endpoints = []string{"http://127.0.0.1:9001"}
	return config
}

func TestConfig_DefaultNeedsNameAndEndpoints(t *testing.T) {
	if err := validConfig().Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
	want := `name: is required
endpoints: is required, for example ["http://127.0.0.1:9001"]`
	if err := DefaultConfig().Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestConfig_ReportsEveryFault(t *testing.T) {
	many := make([]string, mostEndpoints+1)
	for i := range many {
		many[i] = fmt.Sprintf("http://10.0.%d.%d", i/256, i%256)
	}
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"several endpoints", func(c *Config) { c.Endpoints = []string{"http://a", "http://a:81", "http://[::1]", "http://b.c"} }, nil},
		{"as many endpoints as allowed", func(c *Config) { c.Endpoints = many[1:] }, nil},
		{"tls", func(c *Config) {
			c.Endpoints = []string{"https://a"}
			c.TLS = TLS{CA: "ca", Cert: "c", Key: "k", ServerName: "b.c"}
		}, nil},
		{"name with a space", func(c *Config) { c.Name = "pay ments" }, []string{
			`name: "pay ments" holds ' ', letters and digits are allowed, and after the first - and _`}},
		{"name with a dash first", func(c *Config) { c.Name = "-a" }, []string{
			`name: "-a" holds '-', letters and digits are allowed, and after the first - and _`}},
		{"long name", func(c *Config) { c.Name = strings.Repeat("n", 65) }, []string{
			`name: "` + strings.Repeat("n", 40) + `" is too long, at most 64 characters`}},
		{"too many endpoints", func(c *Config) { c.Endpoints = many }, []string{"endpoints: 257 are too many, at most 256"}},
		{"mixed schemes", func(c *Config) { c.Endpoints = []string{"x", "https://a", "http://b"} }, []string{
			`endpoints[0]: "x" is neither http nor https, write http://host:port or https://host:port`,
			`endpoints[2]: "http://b" differs from the endpoints before it in http or https, all have to be the same`}},
		{"twice", func(c *Config) { c.Endpoints = []string{"http://a", "http://b", "http://A:80"} }, []string{
			`endpoints[2]: "http://A:80" is the same as endpoints[0]`}},
		{"tls for http", func(c *Config) { c.TLS.CA = "ca" }, []string{
			`tls: is set, but the endpoint "http://127.0.0.1:9001" is plain http`}},
		{"half a certificate", func(c *Config) { c.Endpoints, c.TLS = []string{"https://a"}, TLS{Key: "k", ServerName: "a b"} }, []string{
			"tls: cert and key belong together, but only one of them is set",
			`tls.server_name: "a b" is not a host name`}},
		{"zeros", func(c *Config) { c.Connections, c.Resolve = Connections{}, Resolve{} }, []string{
			"connections.max: 0 is too small, at least 1",
			"connections.idle: 0s is too small, at least 1ms",
			"connections.dial_timeout: 0s is too small, at least 1ms",
			"resolve.every: 0s is too small, at least 100ms",
			"resolve.timeout: 0s is too small, at least 1ms"}},
		{"too large", func(c *Config) {
			c.Connections = Connections{65536, time.Hour + 1, time.Minute + 1}
			c.Resolve = Resolve{24*time.Hour + 1, time.Minute + 1}
		}, []string{
			"connections.max: 65536 is too large, at most 65535",
			"connections.idle: 1h0m0.000000001s is too large, at most 1h0m0s",
			"connections.dial_timeout: 1m0.000000001s is too large, at most 1m0s",
			"resolve.every: 24h0m0.000000001s is too large, at most 24h0m0s",
			"resolve.timeout: 1m0.000000001s is too large, at most 1m0s"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := validConfig()
			test.change(&config)
			err := config.Validate()
			got, want := "", strings.Join(test.want, "\n")
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%+v:\ngot  %s\nwant %s", config, got, want)
			}
			var fault *Fault
			if err != nil && !errors.As(err, &fault) {
				t.Errorf("%+v: %T holds no *Fault", config, err)
			}
		})
	}
}

func TestParseEndpoint(t *testing.T) {
	tests := []struct {
		text string
		want Location
		err  string // part of it; "" when valid
	}{
		{"http://127.0.0.1:9001", Location{Host: "127.0.0.1", Port: 9001}, ""},
		{"http://Pay.Example", Location{Host: "pay.example", Port: 80}, ""},
		{"https://pay_1.example.", Location{HTTPS: true, Host: "pay_1.example.", Port: 443}, ""},
		{"https://[::1]", Location{HTTPS: true, Host: "::1", Port: 443}, ""},
		{"http://[fe80::1]:65535", Location{Host: "fe80::1", Port: 65535}, ""},
		{"", Location{}, "neither http nor https"},
		{"127.0.0.1:9001", Location{}, "not a URL"},
		{"pay:9001", Location{}, "neither http nor https"},
		{"http:pay:9001", Location{}, "neither http nor https"},
		{"ftp://pay", Location{}, "neither http nor https"},
		{"http://u:p@pay", Location{}, "holds a user"},
		{"http://@pay", Location{}, "holds a user"},
		{"http://pay?", Location{}, "holds a query"},
		{"http://pay?a=b", Location{}, "holds a query"},
		{"http://pay#", Location{}, "holds a fragment"},
		{"http://pay/", Location{}, "holds a path"},
		{"http://pay/v1", Location{}, "holds a path"},
		{"http://", Location{}, "no valid host"},
		{"http://:80", Location{}, "no valid host"},
		{"http://::1:80", Location{}, "not a URL"},
		{"http://a..b", Location{}, "no valid host"},
		{"http://-a", Location{}, "no valid host"},
		{"http://a%20b", Location{}, "not a URL"},
		{"http://a\r\nb", Location{}, "not a URL"},
		{"http://" + strings.Repeat("a", 64), Location{}, "no valid host"},
		{"http://" + strings.Repeat("a.", 127), Location{}, "no valid host"},
		{"http://pay:", Location{}, "no valid port"},
		{"http://pay:0", Location{}, "no valid port"},
		{"http://pay:65536", Location{}, "no valid port"},
		{"http://[::1]:", Location{}, "no valid port"},
		{"http://pay:http", Location{}, "not a URL"},
	}
	for _, test := range tests {
		got, err := ParseEndpoint(test.text)
		if got != test.want {
			t.Errorf("%q: got %+v, want %+v", test.text, got, test.want)
		}
		switch {
		case test.err == "" && err != nil:
			t.Errorf("%q: got %v, want no error", test.text, err)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%q: got %v, want %q", test.text, err, test.err)
		case err != nil && len(err.Error()) > 250:
			t.Errorf("%.40q: the error is %d bytes long", test.text, len(err.Error()))
		}
	}
}
