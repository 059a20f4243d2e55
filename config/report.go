package config

import (
	"strconv"
	"strings"
)

// report gathers what is found out while a configuration is read: what is wrong,
// and where each setting comes from. Settings are named by their path with dots and
// with numbers for the entries of lists (upstreams.0.connections.max).
type report struct {
	faults  []*Fault
	remarks []Remark
	places  map[string]Place
	names   map[string][]string // of the entries, by list: upstreams, routes
	wrong   map[string]bool     // settings that are reported: what follows from them is not
}

func newReport(source string) *report {
	return &report{
		places: map[string]Place{"": {Source: source}},
		names:  map[string][]string{},
		wrong:  map[string]bool{},
	}
}

// fault reports what is wrong with the value of the setting at path, which is then
// not known.
func (r *report) fault(place Place, path, text string) {
	r.say(place, path, text)
	r.wrong[path] = true
}

// say reports what is wrong at path besides its value.
func (r *report) say(place Place, path, text string) {
	const most = 1000 // a value as long as the file is no help
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	place.Path = show(path, r.names)
	r.faults = append(r.faults, &Fault{place, text})
}

func (r *report) remark(place Place, path, text string) {
	place.Path = show(path, r.names)
	r.remarks = append(r.remarks, Remark{place, text})
}

// later reports a key or value that is not acted on.
func (r *report) later(place Place, path string, l *later) {
	if l.fault {
		r.fault(place, path, l.text())
		return
	}
	r.remark(place, path, l.text())
}

// consequence reports what is wrong with settings that can be read, unless it
// follows from what is reported already.
func (r *report) consequence(path, text string) {
	for at := path; at != ""; at = parent(at) {
		if r.wrong[at] {
			return
		}
	}
	place, at := r.places[path], path
	for place == (Place{}) {
		at = parent(at)
		place = r.places[at]
	}
	r.fault(place, path, text)
}

// join gives the path of a part of what is at path.
func join(path, part string) string {
	if path == "" || part == "" {
		return path + part
	}
	return path + "." + part
}

func item(path string, i int) string { return join(path, strconv.Itoa(i)) }

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

var brackets = strings.NewReplacer("[", ".", "]", "")

// numbered turns the field of a stage's fault, endpoints[1], into a path.
func numbered(field string) string { return brackets.Replace(field) }

// shown is a name as faults are told by it; "" where it could mislead.
func shown(name string) string {
	if name == plain(name) {
		return name
	}
	return ""
}

// show writes a path for people: entries of lists by their name where they have
// one, items by their number.
func show(path string, names map[string][]string) string {
	var b strings.Builder
	list := "" // whose entry the next part is
	for i, part := range strings.Split(path, ".") {
		number, err := strconv.Atoi(part)
		switch {
		case err != nil && i > 0:
			b.WriteString("." + part)
		case err != nil:
			b.WriteString(part)
		case number >= 0 && number < len(names[list]) && names[list][number] != "":
			b.WriteString("[" + names[list][number] + "]")
		default:
			b.WriteString("[" + part + "]")
		}
		list = ""
		if i == 0 {
			list = part
		}
	}
	return b.String()
}
