package telemetry

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestAppendTime_IsWhatPackageTimeWrites(t *testing.T) {
	for _, at := range []time.Time{
		{},
		time.Unix(0, 0),
		time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2026, 12, 31, 23, 30, 0, 1_000_000, time.FixedZone("", -3600)),
		time.Date(9999, 10, 10, 10, 10, 10, 10_000_000, time.UTC),
	} {
		got := string(appendTime(nil, at))
		if want := at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want || len(got) != timeBytes {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAppendMillis_HasMicroseconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.000", -time.Second: "0.000", 999: "0.000", 1000: "0.001", 999_999: "0.999",
		time.Millisecond: "1.000", 12_345_678: "12.345", time.Hour: "3600000.000",
	} {
		if got := string(appendMillis(nil, d)); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

// Any bytes become a JSON string that reads back as the same text, but for what
// cannot be printed and is not ASCII.
func FuzzAppendText(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\x00\x7f", "\xff\xc3", "\u0085\u2028\u202e", "żółw 🐢", "\xf0\x9f\x90"} {
		f.Add(s, 100)
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, value string, most int) {
		if most < 0 {
			return
		}
		quoted := append(appendText([]byte{'"'}, value, most), '"')
		if again := append(appendText([]byte{'"'}, []byte(value), most), '"'); string(again) != string(quoted) {
			t.Errorf("as bytes %q, as a string %q", again, quoted)
		}
		for _, r := range string(quoted) {
			if !unicode.IsPrint(r) {
				t.Errorf("%q: %U went out", value, r)
			}
		}
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Fatalf("%q became %q: %v", value, quoted, err)
		}
		want := strings.Map(func(r rune) rune {
			if r <= unicode.MaxASCII || unicode.IsPrint(r) {
				return r
			}
			return unicode.ReplacementChar
		}, value[:min(most, len(value))])
		if got != want {
			t.Errorf("%q reads back as %q, want %q", value, got, want)
		}
	})
}
