package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is an amount of memory in bytes. In text it has a unit: 512B, 16KiB, 1MiB,
// 1GiB, or decimal 16KB, 1MB, 1GB. Only 0 may stand alone, since it means the same
// in every unit.
type Size int64

// The units of text, each as bytes.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
)

// units are tried in this order when text is written, so the largest comes first.
var units = []struct {
	name   string
	size   Size
	decade bool // read only
}{
	{"GiB", GiB, false},
	{"MiB", MiB, false},
	{"KiB", KiB, false},
	{"GB", 1e9, true},
	{"MB", 1e6, true},
	{"KB", 1e3, true},
	{"B", Byte, false},
}

// String gives s in the largest unit that divides it.
func (s Size) String() string {
	for _, unit := range units {
		if !unit.decade && s != 0 && s%unit.size == 0 {
			return strconv.FormatInt(int64(s/unit.size), 10) + unit.name
		}
	}
	return "0B"
}

// MarshalText is String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a whole number and a unit. Errors say what is allowed.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "BKMGi")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || number < 0 || !isDigits(digits) {
		return fmt.Errorf("%s is not a size, write for example 512B, 16KiB or 1MiB", quote(string(text)))
	}
	suffix := string(text[len(digits):])
	if suffix == "" && number == 0 {
		*s = 0
		return nil
	}
	if suffix == "" {
		return fmt.Errorf("%d has no unit, write for example %[1]dKiB or %[1]dMiB", number)
	}
	for _, unit := range units {
		if suffix != unit.name {
			continue
		}
		if number > math.MaxInt64/int64(unit.size) {
			return fmt.Errorf("%s is larger than anything can be", quote(string(text)))
		}
		*s = Size(number) * unit.size
		return nil
	}
	return fmt.Errorf("%s has an unknown unit, one of B, KiB, MiB, GiB, KB, MB, GB", quote(string(text)))
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
