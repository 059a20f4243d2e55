package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is how one value is written. The same text means the same in a file, in the
// environment and in a flag; in a file its YAML type has to fit too, so that no
// quoted number or unquoted word changes its meaning on the way.
type kind struct {
	name string   // "a duration"
	tags []string // YAML types that it can be written as

	// read gives the value as it is decoded into Config; its error holds the text
	// and says what is allowed.
	read func(text string) (any, error)
}

func (k *kind) takes(tag string) bool { return slices.Contains(k.tags, tag) }

func (k *kind) isText() bool { return len(k.tags) == 1 && k.tags[0] == tagText }

const (
	tagText   = "!!str"
	tagWhole  = "!!int"
	tagNumber = "!!float"
	tagTruth  = "!!bool"
	tagNull   = "!!null"
	tagDate   = "!!timestamp"
	tagMerge  = "!!merge"
)

var (
	aText     = &kind{"text", []string{tagText}, func(text string) (any, error) { return text, nil }}
	aTruth    = &kind{"true or false", []string{tagTruth}, readTruth}
	aWhole    = &kind{"a whole number", []string{tagWhole}, readWhole}
	aNumber   = &kind{"a number", []string{tagWhole, tagNumber}, readNumber}
	aDuration = &kind{"a duration such as 250ms", []string{tagText, tagWhole, tagNumber}, readDuration}
	aSize     = &kind{"a size such as 1MiB", []string{tagText, tagWhole, tagNumber}, readText[Size]}
	aRange    = &kind{"an address range such as 10.0.0.0/8", []string{tagText}, readRange}
)

// kindOf finds the kind of a field by its type. Types that read themselves from
// text come first; nil means that there is no kind for t.
func kindOf(t reflect.Type) *kind {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return aDuration
	case reflect.TypeFor[Size]():
		return aSize
	case reflect.TypeFor[netip.Prefix]():
		return aRange
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return &kind{"a word", []string{tagText}, func(text string) (any, error) {
			value := reflect.New(t).Interface().(encoding.TextUnmarshaler)
			return text, value.UnmarshalText([]byte(text))
		}}
	}
	switch t.Kind() {
	case reflect.String:
		return aText
	case reflect.Bool:
		return aTruth
	case reflect.Int:
		return aWhole
	case reflect.Float64:
		return aNumber
	}
	return nil
}

// oneOf is a word from a closed list.
func oneOf(words ...string) *kind {
	return &kind{"a word", []string{tagText}, func(text string) (any, error) {
		if slices.Contains(words, text) {
			return text, nil
		}
		return nil, fmt.Errorf("%s is unknown, one of %s", quote(text), strings.Join(words, ", "))
	}}
}

func readTruth(text string) (any, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, fmt.Errorf("%s is neither true nor false", quote(text))
}

// readWhole takes decimal numbers alone: 010 would be eight to YAML and ten to
// everybody who reads it.
func readWhole(text string) (any, error) {
	digits := strings.TrimPrefix(text, "-")
	if !isDigits(digits) || len(digits) > 1 && digits[0] == '0' {
		return nil, fmt.Errorf("%s is not a whole decimal number", quote(text))
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s is larger than anything can be", quote(text))
	}
	return number, nil
}

func readNumber(text string) (any, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return nil, fmt.Errorf("%s is not a number", quote(text))
	}
	return number, nil
}

func readDuration(text string) (any, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return nil, fmt.Errorf("%s has no unit, write for example %[1]sms or %[1]ss", plain(text))
	}
	return nil, fmt.Errorf("%s is not a duration, write for example 250ms, 5s or 1m30s", quote(text))
}

// readText checks text and leaves reading it to the decoder, which cannot be
// handed a value of every type.
func readText[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text string) (any, error) {
	var value T
	return text, P(&value).UnmarshalText([]byte(text))
}

func readRange(text string) (any, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not an address range, write for example 10.0.0.0/8", quote(text))
	}
	if wrong := wrongPrefix(p); wrong != "" {
		return nil, errors.New(wrong)
	}
	return text, nil
}
