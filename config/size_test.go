package config

import (
	"math"
	"strings"
	"testing"
)

func TestSize_ReadsNumbersWithUnits(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "0B": 0, "0MiB": 0, "512B": 512, "16KiB": 16384, "1MiB": 1 << 20, "1GiB": 1 << 30,
		"16KB": 16_000, "1MB": 1_000_000, "2GB": 2_000_000_000, "8589934591GiB": math.MaxInt64 &^ (1<<30 - 1),
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestSize_RefusesTheRest(t *testing.T) {
	for text, want := range map[string]string{
		"":                        `"" is not a size`,
		"KiB":                     `"KiB" is not a size`,
		"5":                       "5 has no unit, write for example 5KiB or 5MiB",
		"5 MiB":                   "is not a size",
		"-5MiB":                   "is not a size",
		"+5MiB":                   "is not a size",
		"1.5MiB":                  "is not a size",
		"1_0B":                    "is not a size",
		"16kib":                   "is not a size",
		"5iB":                     "unknown unit",
		"5KiBB":                   "unknown unit",
		"5M":                      "unknown unit",
		"8589934592GiB":           "larger than anything",
		"99999999999999999999B":   "is not a size",
		strings.Repeat("9", 1000): "is not a size",
	} {
		size := Size(7)
		err := size.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 || size != 7 {
			t.Errorf("%.40q: got %d, %v, want %q", text, size, err, want)
		}
	}
}

func TestSize_WritesWhatItReads(t *testing.T) {
	for _, size := range []Size{0, 1, 1000, 1023, 1024, 1025, MiB, MiB + 1, 3 * GiB, math.MaxInt64} {
		var got Size
		if err := got.UnmarshalText([]byte(size.String())); err != nil || got != size {
			t.Errorf("%d: got %d from %q, %v", size, got, size, err)
		}
	}
}
