package config

import (
	"reflect"
	"strings"
	"sync"
)

// key is what may stand at one place of the format. Exactly one of keys, entry,
// kind and loose says of which shape it is.
type key struct {
	keys  map[string]*key // a mapping
	order []string        // its keys as they are declared
	entry *key            // a list of mappings, each with a name
	kind  *kind           // a value
	list  bool            // a list of such values, or one alone
	loose bool            // anything

	later  *later            // not acted on: this key and all below it
	values map[string]*later // values that are not acted on
}

// schema is the format: the fields of Config and the keys of table notYet.
var schema = sync.OnceValue(func() *key {
	root := keyOf(reflect.TypeFor[Config]())
	for i := range notYet {
		root.add(&notYet[i])
	}
	return root
})

// keyOf derives the format from a type and its koanf tags.
func keyOf(t reflect.Type) *key {
	if kind := kindOf(t); kind != nil {
		return &key{kind: kind}
	}
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && kindOf(t.Elem()) == nil:
		return &key{entry: keyOf(t.Elem())}
	case t.Kind() == reflect.Slice:
		return &key{kind: kindOf(t.Elem()), list: true}
	}
	k := &key{keys: map[string]*key{}}
	k.fields(t)
	return k
}

func (k *key) fields(t reflect.Type) {
	for field := range t.Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("koanf"), ",")
		switch {
		case option == "squash":
			k.fields(field.Type)
		case name != "":
			k.put(name, keyOf(field.Type))
		}
	}
}

func (k *key) put(name string, below *key) {
	k.keys[name] = below
	k.order = append(k.order, name)
}

// add puts a row of notYet into the format.
func (k *key) add(row *later) {
	names := strings.Split(row.path, ".")
	for i, name := range names {
		if k.entry != nil {
			k = k.entry
		}
		below := k.keys[name]
		if below == nil {
			below = &key{later: row}
			if i < len(names)-1 {
				below.keys, below.later = map[string]*key{}, usual
			}
			k.put(name, below)
		}
		k = below
	}
	switch {
	case row.value != "":
		if k.values == nil {
			k.values = map[string]*later{}
		}
		k.values[row.value] = row
	case row.group:
		k.keys, k.later = map[string]*key{}, row
	default:
		k.kind, k.list, k.loose = row.kind, row.list, row.kind == nil
	}
}
