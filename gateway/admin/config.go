package admin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Off as Config.Listen means that there is no admin listener.
const Off = "off"

// Config sets the admin listener. See DefaultConfig for the defaults.
type Config struct {
	Listen    string `koanf:"listen"`     // host:port, unix:/path or off
	TokenFile string `koanf:"token_file"` // holds the bearer token; required where listen is not loopback
}

// DefaultConfig listens on loopback without a token.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:9901"} }

// Fault is one wrong value in a Config.
type Fault struct {
	Field string // the key, as in a file
	Text  string // the value, what is wrong with it and what is allowed
}

// Error gives the field and what is wrong with it.
func (f *Fault) Error() string { return f.Field + ": " + f.Text }

// Validate reports every wrong value: errors.Join of one *Fault each. It does not
// look at the token file.
func (c Config) Validate() error {
	a, err := c.address()
	switch {
	case err != nil:
		return errors.Join(&Fault{"listen", err.Error()})
	case a.reach == anybody && c.TokenFile == "":
		return errors.Join(&Fault{"token_file", fmt.Sprintf(
			"is required because listen (%s) is not a loopback address; name a file with a token, or listen on 127.0.0.1", c.Listen)})
	}
	return nil
}

// CheckToken reads the token file, if one is named, and says what is wrong with it.
func (c Config) CheckToken() error {
	_, err := readToken(c.TokenFile)
	return err
}

// reach is who can connect to an address.
type reach uint8

const (
	nobody   reach = iota // off
	files                 // a Unix socket: whom the file's mode lets
	loopback              // processes on this host, and through a browser any site its user visits
	anybody
)

// address is what Config.Listen means.
type address struct {
	network, where string // for net.Listen
	host           string
	reach          reach
}

func (c Config) address() (address, error) {
	if c.Listen == Off {
		return address{}, nil
	}
	if path, ok := strings.CutPrefix(c.Listen, "unix:"); ok {
		// The bound is that of sun_path on Linux, with its terminating zero.
		if !filepath.IsAbs(path) || len(path) > 107 || strings.ContainsRune(path, 0) {
			return address{}, fmt.Errorf("%q must be unix: and an absolute path of at most 107 bytes", c.Listen)
		}
		return address{network: "unix", where: path, reach: files}, nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return address{}, fmt.Errorf("%q must be host:port, unix:/path or off", c.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return address{}, fmt.Errorf("%q must end in a port from 0 to 65535", c.Listen)
	}
	a := address{network: "tcp", where: c.Listen, host: host, reach: anybody}
	if isLoopback(host) {
		a.reach = loopback
	}
	return a, nil
}

// isLoopback tells names and addresses that can only mean this host.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
