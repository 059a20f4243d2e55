// Package limits decides how many exchanges may be with an upstream at once, and
// which wait. It never waits itself: whoever may not enter at once is an entry in
// a list, and a release says whose turn it is.
//
// Permits are counted with one atomic; the queue and its lock are touched only at
// the limit.
package limits

import (
	"math"
	"sync"
	"sync/atomic"
)

// Waiter is an exchange's place in a queue. It is embedded in what waits and
// belongs to at most one queue at a time. The zero value is ready.
type Waiter struct {
	// Owner is who waits. The package keeps it and never looks inside.
	Owner any

	next, prev *Waiter
	queued     bool
}

// Entry is the answer to a request to enter.
type Entry uint8

// The answers. The zero value lets nobody in.
const (
	Full    Entry = iota // at the limit and the queue is full: shed
	Queued               // in the queue: wait for a grant, or Leave
	Granted              // a permit is held: Release it once
)

// Limiter hands out permits up to a limit and keeps those who wait in order of
// arrival. It is safe for concurrent use.
type Limiter struct {
	limit    atomic.Int64
	inFlight atomic.Int64
	waiting  atomic.Int64 // length of the queue; read without mu to skip the lock

	mu     sync.Mutex
	first  *Waiter
	last   *Waiter
	length int64 // of the queue at most
}

// New makes a limiter from a valid Config.
func New(cfg Config) *Limiter {
	l := &Limiter{}
	l.Configure(cfg)
	return l
}

// Configure applies cfg in place: a smaller limit drains, waiters keep their
// place. It returns the waiters that a larger limit let in, linked by Next.
func (l *Limiter) Configure(cfg Config) *Waiter {
	limit := int64(cfg.Max)
	if cfg.Mode == ModeOff {
		limit = unlimited
	}
	l.limit.Store(limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.length = int64(cfg.Queue.Length)
	return l.grant()
}

// Enter asks for a permit. Arrivals never overtake those who wait.
func (l *Limiter) Enter(w *Waiter) Entry {
	if l.waiting.Load() == 0 && l.take() {
		return Granted
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.Load() >= l.length {
		// A permit may have come free since the look without the lock.
		if l.waiting.Load() == 0 && l.take() {
			return Granted
		}
		return Full
	}
	l.push(w)
	// A release that came before the push did not see this waiter, so look once
	// more now that every later release will.
	if l.first == w && l.take() {
		l.remove(w)
		return Granted
	}
	return Queued
}

// Leave takes w out of the queue. False means that a grant came first: the permit
// is w's, and its owner hears of it from whoever released.
func (l *Limiter) Leave(w *Waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.queued {
		return false
	}
	l.remove(w)
	return true
}

// Release gives a permit back and returns the waiters that now hold one, linked by
// Next. The caller tells each owner.
func (l *Limiter) Release() *Waiter {
	l.inFlight.Add(-1)
	if l.waiting.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant()
}

// Next is the waiter granted after w by the same release. It takes w out of that
// list: read it before w's owner is told.
func (w *Waiter) Next() *Waiter {
	next := w.next
	w.next = nil
	return next
}

// InFlight is how many permits are held now.
func (l *Limiter) InFlight() int64 { return l.inFlight.Load() }

// Waiting is how many wait now.
func (l *Limiter) Waiting() int64 { return l.waiting.Load() }

// Limit is how many permits there are; 0 stands for no limit.
func (l *Limiter) Limit() int64 {
	if n := l.limit.Load(); n != unlimited {
		return n
	}
	return 0
}

const unlimited = math.MaxInt64

func (l *Limiter) take() bool {
	for {
		n := l.inFlight.Load()
		if n >= l.limit.Load() {
			return false
		}
		if l.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// grant gives free permits to those who have waited longest. mu must be held.
func (l *Limiter) grant() *Waiter {
	var head, tail *Waiter
	for l.first != nil && l.take() {
		w := l.first
		l.remove(w)
		if tail == nil {
			head = w
		} else {
			tail.next = w
		}
		tail = w
	}
	return head
}

func (l *Limiter) push(w *Waiter) {
	w.queued, w.next, w.prev = true, nil, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.waiting.Add(1)
}

func (l *Limiter) remove(w *Waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queued, w.next, w.prev = false, nil, nil
	l.waiting.Add(-1)
}
