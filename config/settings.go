package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// prefix begins the names of the environment variables that are settings.
const prefix = "GATEWAY_"

// fileVariable names the configuration file. It is read by the command.
const fileVariable = prefix + "CONFIG"

// linkVariable matches what Kubernetes puts into the environment of every container
// for a service called gateway, or gateway-something. None of it is a setting.
var linkVariable = regexp.MustCompile(`^GATEWAY(_[A-Z0-9]+)*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9]+)*|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// linkValue is the value of GATEWAY_PORT when it comes from there.
var linkValue = regexp.MustCompile(`^(tcp|udp|sctp)://`)

func isLink(name, value string) bool {
	return linkVariable.MatchString(name) || strings.HasSuffix(name, "_PORT") && !strings.Contains(name, "__") && linkValue.MatchString(value)
}

// setting is one value from the environment or from a flag.
type setting struct {
	place Place
	parts []string // of the path as it was written
	value string
	exact bool // keys as they stand in a file; otherwise in any case
}

func variable(name, value string) setting {
	return setting{
		place: Place{Source: source(name), origin: fromEnvironment},
		parts: strings.Split(strings.TrimPrefix(name, prefix), "__"),
		value: value,
	}
}

func flag(name, path, value string) setting {
	return setting{
		place: Place{Source: "--" + source(name), origin: fromFlag},
		parts: strings.Split(path, "."),
		value: value,
		exact: true,
	}
}

// source is the name of a variable or a flag as faults give it.
func source(name string) string {
	const most = 300
	if len(name) > most || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
		return quote(name)
	}
	return name
}

// set finds what s sets and reads its value. It returns the path, or "" where s is
// faulty or not acted on; that is reported.
func (r *report) set(s setting) (path string, value any) {
	path, k, ok := r.find(s)
	if !ok {
		return "", nil
	}
	if before := r.places[path]; before.origin == s.place.origin && before.Source != s.place.Source {
		r.fault(s.place, path, "is set by "+before.Source+" too")
		return "", nil
	}
	r.places[path] = s.place
	for i := 0; r.places[item(path, i)] != (Place{}); i++ {
		delete(r.places, item(path, i)) // the items that an earlier source listed
	}
	if row := k.values[s.value]; row != nil {
		r.later(s.place, path, row)
		return "", nil
	}
	value, asks, err := read(k, s.value)
	if err != nil {
		r.fault(s.place, path, err.Error())
		return "", nil
	}
	if k.later != nil {
		if asks {
			r.later(s.place, path, r.words(s.parts, k.later))
		}
		return "", nil
	}
	// What an earlier source said wrong stays a fault, but this value is another.
	delete(r.wrong, path)
	return path, value
}

// words gives a later key the words of the group around it where it has none.
func (r *report) words(parts []string, l *later) *later {
	if l.words != "" || len(parts) == 0 {
		return l
	}
	for i := range notYet {
		if notYet[i].group && strings.HasPrefix(l.path, notYet[i].path+".") {
			return &notYet[i]
		}
	}
	return l
}

// find walks the format along the parts of s, and the entries of lists by name.
func (r *report) find(s setting) (path string, k *key, ok bool) {
	k = schema()
	for _, part := range s.parts {
		if k.loose {
			break
		}
		if k.entry != nil {
			i, wrong := r.entry(path, part, s.exact)
			if wrong != "" {
				s.place.Path = show(path, r.names) + "[" + plain(part) + "]"
				r.faults = append(r.faults, &Fault{s.place, wrong})
				return "", nil, false
			}
			path, k = item(path, i), k.entry
			continue
		}
		name := part
		if !s.exact {
			name = strings.ToLower(part)
		}
		below := k.keys[name]
		switch {
		case k.keys == nil:
			r.say(s.place, path, "has no keys below it, there is no "+plain(name))
			return "", nil, false
		case below == nil:
			r.say(s.place, join(path, plain(name)), "unknown key, "+known(name, k.order))
			return "", nil, false
		}
		path, k = join(path, name), below
	}
	switch {
	case k.entry != nil:
		r.say(s.place, path, "is set entry by entry, by name: "+known("", r.entryNames(path)))
	case k.keys != nil:
		r.say(s.place, path, "is set key by key: known are "+strings.Join(k.order, ", "))
	case k.loose && k.later.fault:
		r.say(s.place, path, k.later.text())
	case k.loose:
		r.say(s.place, path, "can be set in a file only")
	default:
		return path, k, true
	}
	return "", nil, false
}

// entry finds the entry of a list by its name, as it is or as it is written in a
// variable.
func (r *report) entry(list, part string, exact bool) (i int, wrong string) {
	names := r.names[list]
	if i := slices.Index(names, part); exact && i >= 0 {
		return i, ""
	}
	found := -1
	for i, name := range names {
		if name == "" || inVariable(name) != inVariable(part) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Sprintf("can be %s and %s, names that differ in case, - and _ alone cannot be told apart", names[found], name)
		}
		found = i
	}
	if found < 0 {
		return 0, "unknown name, " + known(part, r.entryNames(list))
	}
	return found, ""
}

func (r *report) entryNames(list string) []string {
	return slices.DeleteFunc(slices.Clone(r.names[list]), func(name string) bool { return name == "" })
}

// inVariable writes a name as it stands within an environment variable.
func inVariable(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// read gives the value of a setting; lists are separated by commas. asks reports
// whether it asks for anything.
func read(k *key, text string) (value any, asks bool, err error) {
	if !k.list {
		value, err = k.kind.read(text)
		return value, err == nil && (k.later == nil || k.later.asks(value)), err
	}
	values := []any{}
	if strings.TrimSpace(text) == "" {
		return values, false, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		value, err := k.kind.read(strings.TrimSpace(part))
		if err != nil {
			return nil, false, err
		}
		values = append(values, value)
	}
	return values, true, nil
}
