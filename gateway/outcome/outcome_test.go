package outcome

import (
	"regexp"
	"testing"
)

func TestClass_ZeroMeansMayHaveBeenSent(t *testing.T) {
	var forgotten Class
	if forgotten == NotSent || forgotten.Complete() {
		t.Fatalf("the zero class is %v: it must not claim that nothing was sent, nor that an answer is complete", forgotten)
	}
}

func TestNames_AreDistinctAndStable(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+([-_][a-z]+)*$`)
	seen := map[string]bool{}
	for c := range Classes {
		name := Class(c).String()
		if !word.MatchString(name) || seen["class "+name] {
			t.Errorf("class %d has the name %q, want a word of its own", c, name)
		}
		seen["class "+name] = true
	}
	for c := range Codes {
		name := Code(c).String()
		if !word.MatchString(name) || seen["code "+name] {
			t.Errorf("code %d has the name %q, want a word of its own", c, name)
		}
		seen["code "+name] = true
	}
	for o := range Outcomes {
		name := Outcome(o).String()
		if o > 0 && !word.MatchString(name) || seen["outcome "+name] {
			t.Errorf("outcome %d has the name %q, want a word of its own", o, name)
		}
		seen["outcome "+name] = true
	}
}

// Every code that the gateway answers with has all that an answer needs, and claims
// an outcome exactly where one can be claimed.
func TestCode_RowsAreWhole(t *testing.T) {
	silent := map[int]bool{400: true, 404: true, 405: true, 422: true}
	for c := Passed + 1; int(c) < Codes; c++ {
		row := c.Info()
		if row.Status < 400 || row.Status > 599 {
			t.Errorf("%v: status %d, want an error status", c, row.Status)
		}
		if row.Title == "" {
			t.Errorf("%v: no title", c)
		}
		if claims := row.Outcome != OutcomeNone; claims == silent[row.Status] {
			t.Errorf("%v: status %d with outcome %q", c, row.Status, row.Outcome)
		}
		if row.Outcome == OutcomeDone {
			t.Errorf("%v: an error answer of the gateway must not claim that the request was done", c)
		}
	}
}

func TestCode_OutOfRangeIsInternal(t *testing.T) {
	if got := Code(200).Info(); got.Status != 500 || got.Outcome != OutcomeUnknown {
		t.Fatalf("Code(200).Info() = %+v, want the row of %v", got, Internal)
	}
}
