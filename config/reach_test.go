package config

import (
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

const full = `upstreams:
  - name: first-one
    endpoints: ["https://127.0.0.1:9001"]
routes:
  - name: all
    path: /{path:*}
    upstream: first-one
`

// different are values for the fields whose type does not say enough. Each differs
// from the default and from full.
var different = map[string]string{
	"server.listen":               "127.0.0.1:8081,unix:/run/sluice.sock",
	"server.tls.cert":             "server.pem",
	"server.tls.key":              "server-key.pem",
	"admin.listen":                "127.0.0.1:9999",
	"admin.token_file":            "token",
	"state_dir":                   "elsewhere",
	"log.level":                   "debug",
	"log.format":                  "console",
	"upstreams.name":              "renamed",
	"upstreams.endpoints":         "https://127.0.0.1:9002,https://127.0.0.1:9003",
	"upstreams.tls.ca":            "ca.pem",
	"upstreams.tls.cert":          "cert.pem",
	"upstreams.tls.key":           "key.pem",
	"upstreams.tls.server_name":   "pay.example",
	"upstreams.limit.mode":        "off",
	"upstreams.limit.shed_status": "503",
	"routes.name":                 "charges",
	"routes.host":                 "api.example",
	"routes.methods":              "PUT,POST",
	"routes.path":                 "/v1/charges",
	"routes.upstream":             "renamed",
	"routes.response":             "stream",
}

func differentByType(path string, t reflect.Type) string {
	if text, ok := different[path]; ok {
		return text
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "1234ms"
	case reflect.TypeFor[Size]():
		return "77KiB"
	case reflect.TypeFor[[]netip.Prefix]():
		return "10.0.0.0/8,fd00::/8"
	case reflect.TypeFor[int]():
		return "77"
	case reflect.TypeFor[float64]():
		return "0.25"
	case reflect.TypeFor[bool]():
		return strconv.FormatBool(path == "routes.raw_paths" || path == "server.reuse_port") // the others are true by default
	}
	return ""
}

// leaf is one field that can be set.
type leaf struct {
	path  string // as in different
	value reflect.Value
}

// leaves walks a configuration by its types alone, so that it cannot share a
// mistake with the format that is derived from them.
func leaves(v reflect.Value, path string) []leaf {
	var list []leaf
	for i := range v.NumField() {
		tag, squash := strings.CutSuffix(v.Type().Field(i).Tag.Get("koanf"), ",squash")
		at, field := join(path, tag), v.Field(i)
		switch {
		case tag == "" && !squash:
			panic(path + ": " + v.Type().Field(i).Name + " has no name in a file")
		case squash, field.Kind() == reflect.Struct:
			list = append(list, leaves(field, at)...)
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct && field.Type() != reflect.TypeFor[[]netip.Prefix]():
			list = append(list, leaves(field.Index(0), at)...)
		default:
			list = append(list, leaf{at, field})
		}
	}
	return list
}

func TestLoad_EveryFieldCanBeSetOutsideTheFile(t *testing.T) {
	before, _ := mustLoad(t, full, Source{})
	settings := map[string]string{}
	for _, l := range leaves(reflect.ValueOf(before), "") {
		text := differentByType(l.path, l.value.Type())
		if text == "" {
			t.Fatalf("%s: needs a value in this test", l.path)
		}
		settings[l.path] = text
	}
	if len(settings) < 45 {
		t.Fatalf("got %d fields, want all of them", len(settings))
	}
	var env []string
	flags := map[string]string{}
	for path, text := range settings {
		// Both sources say the entry's name in their own way.
		byName := strings.NewReplacer("upstreams.", "upstreams.first-one.", "routes.", "routes.all.").Replace(path)
		flags[byName] = text
		variable := strings.ReplaceAll(strings.ReplaceAll(byName, "first-one", "first_one"), ".", "__")
		env = append(env, "GATEWAY_"+strings.ToUpper(variable)+"="+text)
	}
	for name, src := range map[string]Source{"environment": {Env: env}, "flags": {Flags: flags}} {
		t.Run(name, func(t *testing.T) {
			after, remarks := mustLoad(t, full, src)
			if len(remarks) != 0 {
				t.Errorf("got remarks %v, want none", remarks)
			}
			old := leaves(reflect.ValueOf(before), "")
			for i, l := range leaves(reflect.ValueOf(after), "") {
				if reflect.DeepEqual(l.value.Interface(), old[i].value.Interface()) {
					t.Errorf("%s: still %v, want %s", l.path, l.value, settings[l.path])
				}
			}
		})
	}
}
