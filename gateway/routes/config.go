package routes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Config is one route's matching part, as in the configuration file. The package
// comment says what it matches.
type Config struct {
	Name    string   `koanf:"name"`    // required: letters, digits, "-" and "_"
	Host    string   `koanf:"host"`    // without port; "": any
	Methods []string `koanf:"methods"` // empty: any
	Path    string   `koanf:"path"`    // required: a pattern
}

// DefaultConfig is a route for any host and method that still needs a name and a path.
func DefaultConfig() Config { return Config{} }

// The bounds. Names are metric labels and parts of environment variables, so they are
// short and plain. A longer pattern or method would be a mistake.
const (
	longestName   = 64
	longestHost   = 253 // RFC 1035, without the trailing dot
	longestLabel  = 63
	longestMethod = 32
	longestPath   = 1024
)

// Validate returns every fault of c, joined; each is a *Fault.
func (c Config) Validate() error {
	faults := c.faults()
	joined := make([]error, len(faults))
	for i, f := range faults {
		joined[i] = f
	}
	return errors.Join(joined...)
}

func (c Config) faults() []*Fault {
	var faults []*Fault
	add := func(field, text string) {
		if text != "" {
			faults = append(faults, &Fault{field, text})
		}
	}
	add("name", checkName(c.Name))
	add("host", checkHost(c.Host))
	for i, method := range c.Methods {
		field := fmt.Sprintf("methods[%d]", i)
		add(field, checkMethod(method))
		if first := slices.Index(c.Methods, method); first < i {
			add(field, fmt.Sprintf("%.40q is methods[%d] too, once is enough", method, first))
		}
	}
	_, wrong := parsePattern(c.Path)
	for _, text := range wrong {
		add("path", text)
	}
	return faults
}

// Fault is one thing wrong with a Config.
type Fault struct {
	Field string // the key, as in a file: methods[1]
	Text  string // the value, what is wrong with it and what is allowed
}

// Error gives the field and what is wrong with it.
func (f *Fault) Error() string { return f.Field + ": " + f.Text }

// The checks below give "" for what is right.

func checkName(name string) string {
	if name == "" {
		return "is required"
	}
	if len(name) > longestName {
		return fmt.Sprintf("%.40q is too long, at most %d characters", name, longestName)
	}
	for i, r := range name {
		if !isLetter(r) && !isDigit(r) && (i == 0 || r != '-' && r != '_') {
			return fmt.Sprintf("%q holds %q, letters and digits are allowed, and after the first - and _", name, r)
		}
	}
	return ""
}

// checkMethod allows fewer names than RFC 9110 does (any token): those of every
// registered method, so that "get" and "GET " are found out.
func checkMethod(method string) string {
	odd := strings.IndexFunc(method, func(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' })
	switch {
	case method == "" || odd >= 0:
		return fmt.Sprintf("%.40q is not a method, upper-case letters and - are allowed", method)
	case len(method) > longestMethod:
		return fmt.Sprintf("%.40q is too long, at most %d characters", method, longestMethod)
	case method == "CONNECT":
		return `"CONNECT" opens a tunnel and has no path, any other method is allowed`
	}
	return ""
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
func isDigit(r rune) bool  { return '0' <= r && r <= '9' }
