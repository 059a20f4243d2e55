// Package sim is an engine for tests: it drives the real core in virtual time with
// callers, backends and faults from a seeded random script, one event after the
// other, and checks after every one of them that nothing is lost and nothing is
// claimed that is not so. Nothing waits and nothing is concurrent, so a seed is
// exact and repeatable.
package sim

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"sluice/gateway"
	"sluice/gateway/telemetry"
)

// Result counts what a run saw, so that a test can tell that the script reached
// what it is meant to reach.
type Result struct {
	Exchanges int
	Steps     int            // calls of the core
	Codes     map[string]int // exchanges by code
	Nexts     map[string]int // by what the core named
	Interrupt int            // interrupts delivered
	Late      int            // interrupts and ends of waiting that lost against a grant
	Swaps     int
	Gone      int // exchanges that ended because their upstream was taken away
	Failed    int // faults of the gateway itself
	FirstTry  int // exchanges that were sent at least once
}

// world is the virtual world of one run.
type world struct {
	seed    uint64
	rand    *rand.Rand
	core    *gateway.Gateway
	metrics *telemetry.Metrics
	now     time.Time
	events  events
	order   uint64
	actors  map[*actor]struct{} // exchanges under way
	load    load
	result  Result
	fault   error // the first invariant that did not hold
}

// epoch is when every run begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Run drives exchanges through a new core and returns what it saw. The error names
// the seed and the step at which an invariant broke.
func Run(seed uint64, exchanges int) (Result, error) {
	w := &world{
		seed: seed, rand: rand.New(rand.NewPCG(seed, 0x51c1ce)), now: epoch,
		actors: map[*actor]struct{}{},
		result: Result{Codes: map[string]int{}, Nexts: map[string]int{}},
	}
	w.load = newLoad(w.rand)
	log := telemetry.NewLog(telemetry.Config{Level: "off", Format: telemetry.FormatJSON}, io.Discard)
	w.metrics = telemetry.NewMetrics()
	core, err := gateway.New(w.config(), log, w.metrics, w.rand.Uint64)
	if err != nil {
		return w.result, err
	}
	w.core = core
	w.replaceEndpoints()
	w.after(0, func() { w.arrive(exchanges) })
	w.after(w.load.churn, w.churn)
	for w.fault == nil && w.events.Len() > 0 {
		e := heap.Pop(&w.events).(*event)
		w.now = e.at
		e.do()
		if w.fault == nil {
			w.check()
		}
	}
	if w.fault == nil && len(w.actors) > 0 {
		w.failf("%d exchanges never ended", len(w.actors))
	}
	if w.fault == nil {
		w.count()
	}
	return w.result, w.fault
}

// failf records the first broken invariant.
func (w *world) failf(format string, args ...any) {
	if w.fault == nil {
		w.fault = fmt.Errorf("seed %d, step %d, %v after the start: %s",
			w.seed, w.result.Steps, w.now.Sub(epoch), fmt.Sprintf(format, args...))
	}
}

// arrive lets a caller come, and the next one after it.
func (w *world) arrive(left int) {
	if left == 0 {
		return
	}
	w.result.Exchanges++
	newActor(w).start()
	w.after(w.load.gap(w.rand), func() { w.arrive(left - 1) })
}

// churn changes endpoints and configuration under the traffic, as long as there is
// any to come.
func (w *world) churn() {
	switch w.rand.IntN(3) {
	case 0:
		w.replaceEndpoints()
	case 1:
		w.result.Swaps++
		if err := w.core.Swap(w.config()); err != nil {
			w.failf("Swap: %v", err)
		}
		if w.rand.IntN(2) == 0 {
			w.replaceEndpoints() // an upstream that is back has none yet
		}
	}
	if len(w.actors) > 0 {
		w.after(w.load.churn, w.churn)
	}
}

// event is something that will happen.
type event struct {
	at    time.Time
	order uint64 // first come, first served, within one instant
	do    func()
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, &event{w.now.Add(d), w.order, do})
}

// events is a heap by time.
type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].order < e[j].order
	}
	return e[i].at.Before(e[j].at)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(*event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}
