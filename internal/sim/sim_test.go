package sim

import (
	"flag"
	"reflect"
	"testing"

	"sluice/gateway/outcome"
)

var (
	oneSeed   = flag.Uint64("sim.seed", 0, "run this seed alone")
	seeds     = flag.Int("sim.seeds", 60, "how many seeds to run")
	exchanges = flag.Int("sim.exchanges", 2000, "exchanges per seed")
)

// TestSimulation runs the core under seeded faults. A failure names its seed; replay
// it with -sim.seed.
func TestSimulation(t *testing.T) {
	first, last := uint64(1), uint64(*seeds)
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	codes, nexts := map[string]int{}, map[string]int{}
	var sum Result
	for seed := first; seed <= last; seed++ {
		r, err := Run(seed, *exchanges)
		if err != nil {
			t.Fatalf("%v\nreplay: go test ./internal/sim -run TestSimulation -sim.seed=%d -sim.exchanges=%d", err, seed, *exchanges)
		}
		for k, v := range r.Codes {
			codes[k] += v
		}
		for k, v := range r.Nexts {
			nexts[k] += v
		}
		sum.Exchanges += r.Exchanges
		sum.Steps += r.Steps
		sum.Interrupt += r.Interrupt
		sum.Late += r.Late
		sum.Swaps += r.Swaps
		sum.Gone += r.Gone
	}
	t.Logf("%d exchanges, %d calls of the core, %d interrupts, %d lost against a grant, %d swaps, %d ended with their upstream\ncodes: %v\nnamed: %v",
		sum.Exchanges, sum.Steps, sum.Interrupt, sum.Late, sum.Swaps, sum.Gone, codes, nexts)
	if *oneSeed != 0 {
		return
	}
	// A script that misses a way to end proves nothing about it.
	for c := range outcome.Codes {
		if name := outcome.Code(c).String(); codes[name] == 0 {
			t.Errorf("no exchange ended with %s", name)
		}
	}
	if sum.Late == 0 || sum.Swaps == 0 || sum.Interrupt == 0 || sum.Gone == 0 {
		t.Errorf("%d late, %d swaps, %d interrupts, %d ended with their upstream: want some of each", sum.Late, sum.Swaps, sum.Interrupt, sum.Gone)
	}
}

func TestSimulation_IsRepeatable(t *testing.T) {
	a, errA := Run(7, 500)
	b, errB := Run(7, 500)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("two runs of one seed differ:\n%+v\n%+v", a, b)
	}
}

func BenchmarkSimulation(b *testing.B) {
	for b.Loop() {
		if _, err := Run(1, 1000); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/exchange")
}
