package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// pair is a key and its value in a mapping.
type pair struct{ key, value *yaml.Node }

// pairs gives the keys of a mapping once each: its own, then those that it merges.
func (d *document) pairs(n *yaml.Node, path string, depth int) []pair {
	var own, merged []pair
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := resolved(n.Content[i]), n.Content[i+1]
		if d.nodes++; d.nodes > mostNodes {
			return own
		}
		place := d.at(n.Content[i])
		switch {
		case name.ShortTag() == tagMerge:
			merged = append(merged, d.merged(value, place, path, depth)...)
			continue
		case name.Kind != yaml.ScalarNode:
			d.say(place, path, "a key has to be a word")
			continue
		}
		if line, again := lines[name.Value]; again {
			d.say(place, join(path, plain(name.Value)), fmt.Sprintf("is set on line %d already", line))
			continue
		}
		lines[name.Value] = place.Line
		own = append(own, pair{n.Content[i], value})
	}
	for _, p := range merged {
		name := resolved(p.key).Value
		if _, again := lines[name]; !again {
			lines[name] = p.key.Line
			own = append(own, p)
		}
	}
	return own
}

// merged gives the keys behind a merge key: those of one mapping, or of several of
// which the earlier win.
func (d *document) merged(n *yaml.Node, place Place, path string, depth int) []pair {
	n = resolved(n)
	switch {
	case depth >= mostDepth:
		d.say(place, path, "merges too much within itself")
	case n.Kind == yaml.MappingNode:
		return d.pairs(n, path, depth+1)
	case n.Kind == yaml.SequenceNode:
		var all []pair
		for _, part := range n.Content {
			if d.nodes++; d.nodes > mostNodes {
				return all
			}
			all = append(all, d.merged(part, place, path, depth+1)...)
		}
		return all
	default:
		d.say(place, path, given(n)+" is merged, << takes a mapping or a list of them")
	}
	return nil
}

// resolved gives what an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == tagNull }

// given names what stands in the place of something else.
func given(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	return quote(n.Value)
}

func nameOfTag(tag string) string {
	switch tag {
	case tagText:
		return "text"
	case tagWhole, tagNumber:
		return "a number"
	case tagTruth:
		return "a truth value"
	case tagDate:
		return "a date"
	}
	return "of the type " + plain(tag)
}
