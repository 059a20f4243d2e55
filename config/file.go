package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The bounds of a file. The second one counts what aliases expand to.
const (
	mostBytes = 1 << 20
	mostNodes = 1 << 18
	mostDepth = 32 // of aliases within aliases, by way of merge keys
)

// document reads one YAML file into a tree of settings. It walks the nodes itself,
// beside the format, since only there the line of each key is known, and it finds
// every fault instead of the first.
type document struct {
	*report
	file  string
	nodes int
}

// settings gives the file's settings as a tree of maps, with entries of lists by
// number, and without what is faulty or not acted on. False means that there is
// nothing to go on with.
func (d *document) settings(data []byte) (map[string]any, bool) {
	if len(data) > mostBytes {
		d.fault(d.at(nil), "", fmt.Sprintf("is larger than %v", Size(mostBytes)))
		return nil, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		d.fault(d.at(nil), "", "is empty, upstreams and routes are required")
		return nil, false
	case err != nil:
		d.broken(err, data)
		return nil, false
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		d.broken(err, data)
		return nil, false
	default:
		d.fault(d.at(&second), "", "a second document begins here, a file holds one")
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) != 1 || isNull(root.Content[0]) {
		d.fault(d.at(nil), "", "is empty, upstreams and routes are required")
		return nil, false
	}
	top := root.Content[0]
	if top.Kind != yaml.MappingNode {
		d.fault(d.at(top), "", fmt.Sprintf("%s is given, settings are wanted: known are %s", given(top), strings.Join(schema().order, ", ")))
		return nil, false
	}
	tree := d.mapping(top, schema(), "")
	if d.nodes > mostNodes {
		d.fault(d.at(nil), "", fmt.Sprintf("holds more than %d values, what aliases repeat included", mostNodes))
		return nil, false
	}
	return tree, true
}

func (d *document) at(n *yaml.Node) Place {
	if n == nil {
		return Place{Source: d.file}
	}
	return Place{Source: d.file, Line: n.Line}
}

func (d *document) broken(err error, data []byte) {
	line, text := syntax(err, data)
	d.fault(Place{Source: d.file, Line: line}, "", "not YAML: "+text)
}

// value reads whatever k allows. False means that it is faulty or not acted on.
func (d *document) value(n *yaml.Node, place Place, k *key, path string) (any, bool) {
	if d.nodes++; d.nodes > mostNodes {
		return nil, false
	}
	n = resolved(n)
	d.places[path] = place
	switch {
	case k.entry != nil:
		return d.entries(n, place, k.entry, path)
	case k.keys != nil && n.Kind != yaml.MappingNode && !isNull(n):
		d.fault(place, path, fmt.Sprintf("%s is given, keys are wanted: known are %s", given(n), strings.Join(k.order, ", ")))
		return nil, false
	case k.keys != nil:
		return d.mapping(n, k, path), true
	case k.list:
		return d.list(n, place, k, path)
	case k.loose:
		return nil, false
	}
	return d.scalar(n, place, k, path)
}

func (d *document) mapping(n *yaml.Node, k *key, path string) map[string]any {
	pairs := d.pairs(n, path, 0)
	set := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		set[resolved(p.key).Value] = true
	}
	tree := make(map[string]any, len(pairs))
	for _, p := range pairs {
		name, place := resolved(p.key).Value, d.at(p.key)
		if k.keys[name] == nil {
			d.say(place, join(path, plain(name)), "unknown key, "+known(name, k.order))
			// It is read as what it was meant to be, so that nothing seems to be
			// missing and what stands below it is checked too.
			name = nearest(name, k.order)
			if name == "" || set[name] {
				continue
			}
			set[name] = true
		}
		below, at := k.keys[name], join(path, name)
		if below.later != nil && k.later == nil && d.asks(p.value, below, 0) {
			d.later(place, at, below.later)
		}
		if value, ok := d.value(p.value, place, below, at); ok && below.later == nil {
			tree[name] = value
		}
	}
	return tree
}

func (d *document) entries(n *yaml.Node, place Place, k *key, path string) (any, bool) {
	if isNull(n) {
		return map[string]any{}, true
	}
	if n.Kind != yaml.SequenceNode {
		d.fault(place, path, fmt.Sprintf("%s is given, a list is wanted: each entry begins with -", given(n)))
		return nil, false
	}
	tree := map[string]any{}
	for i, entry := range n.Content {
		if d.nodes > mostNodes {
			break
		}
		d.names[path] = append(d.names[path], d.name(entry))
		if value, ok := d.value(entry, d.at(entry), k, item(path, i)); ok {
			tree[strconv.Itoa(i)] = value
		}
	}
	return tree, true
}

// name gives the name of an entry before anything else is read, so that faults can
// be told by it; "" where it has none or one that would mislead.
func (d *document) name(n *yaml.Node) string {
	n = resolved(n)
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		value := resolved(n.Content[i+1])
		if resolved(n.Content[i]).Value == "name" && value.Kind == yaml.ScalarNode && value.ShortTag() == tagText {
			return shown(value.Value)
		}
	}
	return ""
}

func (d *document) list(n *yaml.Node, place Place, k *key, path string) (any, bool) {
	values := []any{}
	if isNull(n) {
		return values, true
	}
	if n.Kind != yaml.SequenceNode {
		value, ok := d.scalar(n, place, k, path)
		d.places[item(path, 0)] = place
		return append(values, value), ok
	}
	complete := true
	for i, part := range n.Content {
		if d.nodes++; d.nodes > mostNodes {
			return nil, false
		}
		at := item(path, i)
		d.places[at] = d.at(part)
		value, ok := d.scalar(resolved(part), d.at(part), k, at)
		values = append(values, value)
		complete = complete && ok
	}
	if !complete {
		d.wrong[path] = true
	}
	return values, complete
}

func (d *document) scalar(n *yaml.Node, place Place, k *key, path string) (any, bool) {
	wrong := ""
	var value any
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode || tag == tagNull:
		wrong = fmt.Sprintf("%s is given, %s is wanted", given(n), k.kind.name)
	case k.values[n.Value] != nil && tag == tagText:
		d.later(place, path, k.values[n.Value])
		return nil, false
	case !k.kind.takes(tag) && k.kind.isText():
		wrong = fmt.Sprintf("%s is %s, write %s to make it text", plain(n.Value), nameOfTag(tag), quote(n.Value))
	case !k.kind.takes(tag):
		wrong = fmt.Sprintf("%s is %s, %s is wanted", quote(n.Value), nameOfTag(tag), k.kind.name)
	default:
		var err error
		if value, err = k.kind.read(n.Value); err != nil {
			wrong = err.Error()
		}
	}
	if wrong != "" {
		d.fault(place, path, wrong)
		return nil, false
	}
	return value, true
}
