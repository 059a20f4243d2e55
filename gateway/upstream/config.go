package upstream

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config describes one upstream. See DefaultConfig for the defaults.
type Config struct {
	Name        string      `koanf:"name"`      // required: letters, digits, "-" and "_"
	Endpoints   []string    `koanf:"endpoints"` // required: http://host[:port] or https://host[:port], all of one scheme
	TLS         TLS         `koanf:"tls"`       // for https
	Connections Connections `koanf:"connections"`
	Resolve     Resolve     `koanf:"resolve"`
}

// TLS says how https endpoints are trusted and which certificate they are shown.
// Files are read by whoever dials.
type TLS struct {
	CA         string `koanf:"ca"`          // file with the authorities to trust; "": those of the system
	Cert       string `koanf:"cert"`        // file with our certificate; "": none. Together with Key
	Key        string `koanf:"key"`         // file with its key
	ServerName string `koanf:"server_name"` // name that their certificate must carry; "": the endpoint's host
}

// Connections bounds the connections to each endpoint.
type Connections struct {
	Max         int           `koanf:"max"`          // per endpoint
	Idle        time.Duration `koanf:"idle"`         // how long an unused one is kept
	DialTimeout time.Duration `koanf:"dial_timeout"` // for connect and TLS handshake together
}

// Resolve says how endpoints that are names are looked up.
type Resolve struct {
	Every   time.Duration `koanf:"every"`   // how often a name is looked up again
	Timeout time.Duration `koanf:"timeout"` // of one look-up
}

// DefaultConfig is an upstream that still needs a name and endpoints: 1024
// connections each, kept for 60 s unused, dialled within 500 ms; names are looked
// up again every 10 s, within 2 s.
func DefaultConfig() Config {
	return Config{
		Connections: Connections{Max: 1024, Idle: time.Minute, DialTimeout: 500 * time.Millisecond},
		Resolve:     Resolve{Every: 10 * time.Second, Timeout: 2 * time.Second},
	}
}

// The bounds. Names are metric labels and parts of environment variables, so they
// are short and plain; connections are at most what one address has ports for.
const (
	longestName     = 64
	mostEndpoints   = 256
	mostConnections = 65535
)

// Validate returns every fault of c, joined; each is a *Fault.
func (c Config) Validate() error {
	return errors.Join(
		checkName(c.Name),
		c.checkEndpoints(),
		c.checkTLS(),
		within("connections.max", c.Connections.Max, 1, mostConnections),
		within("connections.idle", c.Connections.Idle, time.Millisecond, time.Hour),
		within("connections.dial_timeout", c.Connections.DialTimeout, time.Millisecond, time.Minute),
		within("resolve.every", c.Resolve.Every, 100*time.Millisecond, 24*time.Hour),
		within("resolve.timeout", c.Resolve.Timeout, time.Millisecond, time.Minute),
	)
}

// Fault is one thing wrong with a Config.
type Fault struct {
	Field string // path of the key, as in a file: connections.max, endpoints[1]
	Text  string // the value, what is wrong with it and what is allowed
}

// Error gives the field and what is wrong with it.
func (f *Fault) Error() string { return f.Field + ": " + f.Text }

func checkName(name string) error {
	if name == "" {
		return &Fault{"name", "is required"}
	}
	if len(name) > longestName {
		return &Fault{"name", fmt.Sprintf("%.40q is too long, at most %d characters", name, longestName)}
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '-' && r != '_') {
			return &Fault{"name", fmt.Sprintf("%q holds %q, letters and digits are allowed, and after the first - and _", name, r)}
		}
	}
	return nil
}

func (c Config) checkEndpoints() error {
	if len(c.Endpoints) == 0 {
		return &Fault{"endpoints", `is required, for example ["http://127.0.0.1:9001"]`}
	}
	if len(c.Endpoints) > mostEndpoints {
		return &Fault{"endpoints", fmt.Sprintf("%d are too many, at most %d", len(c.Endpoints), mostEndpoints)}
	}
	var faults []error
	var first *Location
	seen := make(map[Location]int, len(c.Endpoints))
	for i, text := range c.Endpoints {
		at, err := ParseEndpoint(text)
		if err == nil && first == nil {
			first = &at
		}
		before, again := seen[at]
		switch {
		case err != nil:
		case at.HTTPS != first.HTTPS:
			err = fmt.Errorf("%.80q differs from the endpoints before it in http or https, all have to be the same", text)
		case again:
			err = fmt.Errorf("%.80q is the same as endpoints[%d]", text, before)
		default:
			seen[at] = i
		}
		if err != nil {
			faults = append(faults, &Fault{fmt.Sprintf("endpoints[%d]", i), err.Error()})
		}
	}
	return errors.Join(faults...)
}

// Location is where an endpoint is, before its name is looked up.
type Location struct {
	HTTPS bool
	Host  string // an IP address without brackets, or a name in lower case
	Port  uint16 // 80 or 443 where the URL names none
}

// ParseEndpoint reads http://host[:port] or https://host[:port]; IPv6 addresses
// stand in brackets. Everything else that a URL can hold is refused, since it would
// be ignored. Errors begin with the text itself and say what is allowed.
func ParseEndpoint(text string) (Location, error) {
	refuse := func(what string) (Location, error) {
		return Location{}, fmt.Errorf("%.80q %s, write http://host:port or https://host:port", text, what)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return refuse("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "":
		return refuse("is neither http nor https")
	case u.User != nil:
		return refuse("holds a user")
	case u.RawQuery != "" || u.ForceQuery:
		return refuse("holds a query")
	case strings.Contains(text, "#"):
		return refuse("holds a fragment")
	case u.Path != "":
		return refuse("holds a path (that of the request is sent)")
	case !isHost(u.Hostname()):
		return refuse("has no valid host")
	}
	at := Location{HTTPS: u.Scheme == "https", Host: strings.ToLower(u.Hostname()), Port: 80}
	if at.HTTPS {
		at.Port = 443
	}
	if colon := strings.LastIndexByte(u.Host, ':'); colon > strings.LastIndexByte(u.Host, ']') {
		port, err := strconv.ParseUint(u.Host[colon+1:], 10, 16)
		if err != nil || port == 0 {
			return refuse("has no valid port (1 to 65535)")
		}
		at.Port = uint16(port)
	}
	return at, nil
}

// isHost reports whether host is an IP address or can be a name in DNS.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return isName(host)
}

func isName(host string) bool {
	if len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, b := range []byte(label) {
			if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_') {
				return false
			}
		}
	}
	return true
}

func (c Config) checkTLS() error {
	var faults []error
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		faults = append(faults, &Fault{"tls", "cert and key belong together, but only one of them is set"})
	}
	if c.TLS.ServerName != "" && !isHost(c.TLS.ServerName) {
		faults = append(faults, &Fault{"tls.server_name", fmt.Sprintf("%.80q is not a host name", c.TLS.ServerName)})
	}
	if c.TLS != (TLS{}) {
		for _, text := range c.Endpoints {
			if at, err := ParseEndpoint(text); err == nil && !at.HTTPS {
				faults = append(faults, &Fault{"tls", fmt.Sprintf("is set, but the endpoint %.80q is plain http", text)})
				break
			}
		}
	}
	return errors.Join(faults...)
}

func within[T int | time.Duration](field string, value, low, high T) error {
	switch {
	case value < low:
		return &Fault{field, fmt.Sprintf("%v is too small, at least %v", value, low)}
	case value > high:
		return &Fault{field, fmt.Sprintf("%v is too large, at most %v", value, high)}
	}
	return nil
}
