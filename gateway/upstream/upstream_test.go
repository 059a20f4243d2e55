package upstream

import (
	"math/rand/v2"
	"testing"

	"sluice/gateway/outcome"
)

func nothing(Address) any { return nil }

func TestReplace_KeepsTheStateOfWhatStays(t *testing.T) {
	u := New("payments")
	u.Replace([]Address{{"10.0.0.1:80", ""}, {"10.0.0.2:80", ""}, {"10.0.0.1:80", ""}}, func(a Address) any { return a.HostPort })
	before := u.Endpoints()
	if len(before) != 2 || before[0].Attached != "10.0.0.1:80" {
		t.Fatalf("%d endpoints, want 2 without the double", len(before))
	}
	before[1].Begin()
	gone := u.Replace([]Address{{"10.0.0.2:80", ""}, {"10.0.0.3:80", ""}}, nothing)
	after := u.Endpoints()
	if len(gone) != 1 || gone[0] != before[0] {
		t.Errorf("gone: %v, want the first", gone)
	}
	if after[0] != before[1] || after[0].InFlight() != 1 {
		t.Error("an endpoint that stays must keep its attempts in flight")
	}
	if u.Replace(nil, nothing); u.Pick(1) != nil {
		t.Error("without endpoints nothing can be picked")
	}
}

func TestPick_PrefersTheLessBusyOfTwo(t *testing.T) {
	u := New("payments")
	u.Replace([]Address{{"1:1", ""}, {"2:1", ""}, {"3:1", ""}}, nothing)
	busy := u.Endpoints()[1]
	for range 10 {
		busy.Begin()
	}
	r := rand.New(rand.NewPCG(1, 2))
	count := map[*Endpoint]int{}
	const picks = 30000
	for range picks {
		count[u.Pick(r.Uint64())]++
	}
	if count[busy] != 0 {
		t.Errorf("the busiest of three was picked %d times; each pair has one that is less busy", count[busy])
	}
	for _, e := range u.Endpoints() {
		if e != busy && (count[e] < picks*45/100 || count[e] > picks*55/100) {
			t.Errorf("%s was picked %d times of %d, want about half", e.Address, count[e], picks)
		}
	}
}

func TestPick_IsUniformAmongEquals(t *testing.T) {
	u := New("payments")
	u.Replace([]Address{{"1:1", ""}, {"2:1", ""}, {"3:1", ""}, {"4:1", ""}}, nothing)
	r := rand.New(rand.NewPCG(3, 4))
	count := map[*Endpoint]int{}
	const picks = 40000
	for range picks {
		count[u.Pick(r.Uint64())]++
	}
	for _, e := range u.Endpoints() {
		if got := count[e]; got < picks*23/100 || got > picks*27/100 {
			t.Errorf("%s was picked %d times of %d, want about a quarter", e.Address, got, picks)
		}
	}
}

// TestFacts_Class is the table of what an engine can see and what it means.
func TestFacts_Class(t *testing.T) {
	for _, c := range []struct {
		facts Facts
		class outcome.Class
		code  outcome.Code
	}{
		{Facts{}, outcome.Reset, outcome.UpstreamReset}, // a fact that was forgotten claims nothing
		{Facts{Cause: DialFailed}, outcome.NotSent, outcome.ConnectFailed},
		{Facts{Cause: NoHandshake}, outcome.NotSent, outcome.ConnectFailed},
		{Facts{Cause: NoConnection}, outcome.NotSent, outcome.NoConnection},
		{Facts{Cause: Lost, Unsent: true}, outcome.NotSent, outcome.NothingSent},
		{Facts{Cause: Lost}, outcome.Reset, outcome.UpstreamReset},
		{Facts{Cause: TimedOut, Unsent: true}, outcome.NotSent, outcome.DeadlineExceeded},
		{Facts{Cause: TimedOut}, outcome.TimedOut, outcome.UpstreamTimeout},
		{Facts{Cause: TimedOut, Status: 200}, outcome.TimedOut, outcome.UpstreamTimeout},
		{Facts{Cause: Malformed}, outcome.Reset, outcome.BadResponse},
		{Facts{Cause: Malformed, Status: 101}, outcome.Reset, outcome.BadResponse},
		{Facts{Cause: CutShort, Status: 200}, outcome.Reset, outcome.UpstreamReset},
		{Facts{Cause: Given}, outcome.Abandoned, outcome.CallerGone},
		{Facts{Cause: Stopped}, outcome.Abandoned, outcome.Draining},
		{Facts{Cause: Complete, Status: 200}, outcome.Answered, outcome.Passed},
		{Facts{Cause: Complete, Status: 404}, outcome.Answered, outcome.Passed},
		{Facts{Cause: Complete, Status: 429}, outcome.Overloaded, outcome.Passed},
		{Facts{Cause: Complete, Status: 500}, outcome.Failed, outcome.Passed},
		{Facts{Cause: Complete, Status: 503}, outcome.Overloaded, outcome.Passed},
		{Facts{Cause: Complete, Status: 599}, outcome.Failed, outcome.Passed},
		// A response head proves that the request got there, whatever the count says.
		{Facts{Cause: CutShort, Unsent: true, Status: 200}, outcome.Reset, outcome.UpstreamReset},
	} {
		if got := c.facts.Class(); got != c.class {
			t.Errorf("%+v: class %v, want %v", c.facts, got, c.class)
		}
		if got := c.facts.Code(); got != c.code {
			t.Errorf("%+v: code %v, want %v", c.facts, got, c.code)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	u := New("payments")
	u.Replace([]Address{{"1:1", ""}, {"2:1", ""}, {"3:1", ""}}, nothing)
	for b.Loop() {
		u.Pick(rand.Uint64())
	}
}
