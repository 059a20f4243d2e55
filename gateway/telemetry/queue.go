package telemetry

import (
	"sync"
	"sync/atomic"
)

const (
	// queueBytes bounds the lines that wait: about 10,000 exchanges. As many may
	// be with the writer at the same time.
	queueBytes = 4 << 20
	// lineBytes bounds one line. Exchanges stay below it by their own bounds; it
	// stops whatever else is logged with a value of somebody's choosing.
	lineBytes = 64 << 10
)

// queue holds whole lines until the writer takes all of them at once. Putting is a
// copy under a mutex that nobody holds across I/O, so it never blocks for longer
// than another copy; when the queue is full the new line is dropped and counted.
// Plain bytes and not a channel of lines, since that costs an allocation per line
// and a system call for each.
type queue struct {
	wake    chan struct{} // lines were put where none were
	hurry   chan struct{} // the writer shall not gather any longer
	dropped atomic.Uint64

	mu     sync.Mutex
	lines  []byte // each ends in \n; never grows beyond its capacity
	closed bool
}

func newQueue() *queue {
	return &queue{
		wake:  make(chan struct{}, 1),
		hurry: make(chan struct{}, 1),
		lines: make([]byte, 0, queueBytes),
	}
}

// put queues a copy of line, which ends in \n.
func (q *queue) put(line []byte, urgent bool) {
	q.mu.Lock()
	before := len(q.lines)
	if q.closed || len(line) > lineBytes || before+len(line) > cap(q.lines) {
		q.mu.Unlock()
		q.dropped.Add(1)
		return
	}
	q.lines = append(q.lines, line...)
	half := cap(q.lines) / 2
	crossed := before < half && len(q.lines) >= half
	q.mu.Unlock()

	if before == 0 {
		signal(q.wake)
	}
	if urgent || crossed {
		signal(q.hurry)
	}
}

// take empties the queue. The caller gives an empty buffer for the lines to come
// and gets the lines so far.
func (q *queue) take(empty []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines := q.lines
	q.lines = empty[:0]
	return lines
}

// close lets nothing more in.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// signal leaves a token in a channel of capacity one unless one is there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
