package limits

import (
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

func limiter(permits, queue int) *Limiter {
	cfg := DefaultConfig()
	cfg.Max, cfg.Queue.Length = permits, queue
	return New(cfg)
}

// granted follows the list that a release returns.
func granted(w *Waiter) (list []*Waiter) {
	for w != nil {
		next := w.Next()
		list = append(list, w)
		w = next
	}
	return list
}

func TestLimiter_ServesInOrderOfArrival(t *testing.T) {
	l := limiter(1, 3)
	var holder, a, b, c, d Waiter
	if got := l.Enter(&holder); got != Granted {
		t.Fatalf("first: %v, want a permit", got)
	}
	for _, w := range []*Waiter{&a, &b, &c} {
		if got := l.Enter(w); got != Queued {
			t.Fatalf("at the limit: %v, want a place in the queue", got)
		}
	}
	if got := l.Enter(&d); got != Full {
		t.Fatalf("with a full queue: %v, want Full", got)
	}
	if !l.Leave(&b) {
		t.Fatal("b waits, so it can leave")
	}
	for i, want := range []*Waiter{&a, &c} {
		if got := granted(l.Release()); len(got) != 1 || got[0] != want {
			t.Fatalf("release %d granted %v, want exactly the one who came first", i, got)
		}
	}
	if l.Leave(&c) {
		t.Fatal("c holds a permit: it cannot leave the queue")
	}
	if got := l.Release(); got != nil || l.InFlight() != 0 || l.Waiting() != 0 {
		t.Fatalf("at the end: granted %v, %d in flight, %d waiting", got, l.InFlight(), l.Waiting())
	}
}

func TestLimiter_OffLetsEverybodyIn(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Mode, cfg.Max = ModeOff, 1
	l := New(cfg)
	for range 1000 {
		if got := l.Enter(&Waiter{}); got != Granted {
			t.Fatalf("%v, want a permit", got)
		}
	}
}

func TestConfigure_LargerLimitGrantsAndSmallerDrains(t *testing.T) {
	l := limiter(1, 10)
	l.Enter(&Waiter{})
	waiters := make([]Waiter, 4)
	for i := range waiters {
		l.Enter(&waiters[i])
	}
	cfg := DefaultConfig()
	cfg.Max, cfg.Queue.Length = 3, 10
	if got := granted(l.Configure(cfg)); len(got) != 2 || got[0] != &waiters[0] || got[1] != &waiters[1] {
		t.Fatalf("a limit of 3 granted %v, want the first two", got)
	}
	cfg.Max = 1
	if got := l.Configure(cfg); got != nil {
		t.Fatalf("a smaller limit granted %v", got)
	}
	for range 2 {
		if got := l.Release(); got != nil {
			t.Fatalf("granted %v with %d in flight and a limit of 1", got, l.InFlight())
		}
	}
	if got := granted(l.Release()); len(got) != 1 || got[0] != &waiters[2] {
		t.Fatalf("granted %v, want the third", got)
	}
}

// TestLimiter_IsTheNaiveModel runs random operations on the limiter and on a slice.
func TestLimiter_IsTheNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, length := rapid.IntRange(1, 4).Draw(t, "limit"), rapid.IntRange(0, 4).Draw(t, "length")
		l := limiter(limit, length)
		var queue []*Waiter
		inFlight := 0
		grant := func() (list []*Waiter) {
			for inFlight < limit && len(queue) > 0 {
				list, queue = append(list, queue[0]), queue[1:]
				inFlight++
			}
			return list
		}
		same := func(got, want []*Waiter) {
			if len(got) != len(want) {
				t.Fatalf("granted %d, want %d", len(got), len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("grant %d is another waiter's", i)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				w := &Waiter{}
				want := Full
				switch {
				case len(queue) == 0 && inFlight < limit:
					want = Granted
					inFlight++
				case len(queue) < length:
					want = Queued
					queue = append(queue, w)
				}
				if got := l.Enter(w); got != want {
					t.Fatalf("Enter: %v, want %v", got, want)
				}
			},
			"release": func(t *rapid.T) {
				if inFlight == 0 {
					t.Skip("nothing to release")
				}
				inFlight--
				same(granted(l.Release()), grant())
			},
			"leave": func(t *rapid.T) {
				if len(queue) == 0 {
					t.Skip("nobody waits")
				}
				i := rapid.IntRange(0, len(queue)-1).Draw(t, "who")
				w := queue[i]
				queue = append(append([]*Waiter{}, queue[:i]...), queue[i+1:]...)
				if !l.Leave(w) {
					t.Fatal("one who waits could not leave")
				}
				if l.Leave(w) {
					t.Fatal("it left twice")
				}
			},
			"configure": func(t *rapid.T) {
				limit = rapid.IntRange(1, 4).Draw(t, "new limit")
				cfg := DefaultConfig()
				cfg.Max, cfg.Queue.Length = limit, length
				same(granted(l.Configure(cfg)), grant())
			},
			"": func(t *rapid.T) {
				if l.InFlight() != int64(inFlight) || l.Waiting() != int64(len(queue)) {
					t.Fatalf("%d in flight, %d waiting; want %d and %d", l.InFlight(), l.Waiting(), inFlight, len(queue))
				}
			},
		})
	})
}

// TestLimiter_KeepsItsLimitUnderConcurrency has many goroutines enter, wait, give up
// and release. No more than the limit may be inside, and none may be forgotten.
func TestLimiter_KeepsItsLimitUnderConcurrency(t *testing.T) {
	const goroutines, rounds, limit = 32, 2000, 4
	l := limiter(limit, goroutines)
	var inside, most atomic.Int64
	var all sync.WaitGroup
	release := func() {
		inside.Add(-1)
		for _, w := range granted(l.Release()) {
			w.Owner.(chan struct{}) <- struct{}{}
		}
	}
	for g := range goroutines {
		all.Go(func() {
			wake := make(chan struct{}, 1)
			w := &Waiter{Owner: wake}
			for i := range rounds {
				switch l.Enter(w) {
				case Full:
					continue
				case Queued:
					if (g+i)%3 == 0 && l.Leave(w) {
						continue
					}
					<-wake // granted, or a grant that beat Leave
				}
				n := inside.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				release()
			}
		})
	}
	all.Wait()
	if most.Load() > limit {
		t.Errorf("%d were inside at once, the limit is %d", most.Load(), limit)
	}
	if l.InFlight() != 0 || l.Waiting() != 0 {
		t.Errorf("at the end %d in flight and %d waiting", l.InFlight(), l.Waiting())
	}
}

func BenchmarkEnterRelease(b *testing.B) {
	l := limiter(1000, 100)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var w Waiter
		for pb.Next() {
			if l.Enter(&w) == Granted {
				l.Release()
			}
		}
	})
}
