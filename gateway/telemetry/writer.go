package telemetry

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	// gatherTime is how long lines of exchanges wait for others to share a write.
	// It bounds the writes per second, and what is lost if the process is killed.
	gatherTime = 5 * time.Millisecond
	// chunkBytes is the most that one write takes, whole lines only. A write of up
	// to this many bytes (PIPE_BUF on Linux) to a pipe is atomic, so that lines
	// stay whole even if another process writes to the same pipe.
	chunkBytes = 4096
)

// writer is the one that writes the queue's lines to the output.
type writer struct {
	queue    *queue
	out      io.Writer
	console  *console // nil for JSON
	gaveUp   atomic.Bool
	torn     bool   // the output ends within a line
	reported uint64 // drops that the log itself told about
	timer    *time.Timer
}

func newWriter(q *queue, out io.Writer, format string) *writer {
	w := &writer{queue: q, out: out}
	if format == FormatConsole {
		w.console = newConsole(out)
	}
	return w
}

// run writes until ctx ends, then once more what was queued by then.
func (w *writer) run(ctx context.Context) {
	w.timer = time.NewTimer(gatherTime)
	defer w.timer.Stop()
	spare := make([]byte, 0, queueBytes)
	for w.gather(ctx) {
		spare = w.flush(spare)
	}
	w.queue.close()
	w.flush(spare)
}

// gather waits until there is something to write and others had their chance to
// join; false means that ctx ended.
func (w *writer) gather(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-w.queue.wake:
	}
	w.timer.Reset(gatherTime)
	select {
	case <-ctx.Done():
		return false
	case <-w.queue.hurry:
	case <-w.timer.C:
	}
	return true
}

// flush writes all that is queued, and gives back the buffer it was in.
func (w *writer) flush(spare []byte) []byte {
	lines := w.queue.take(spare)
	for rest := lines; len(rest) > 0; {
		if w.gaveUp.Load() {
			w.drop(rest)
			break
		}
		n := chunk(rest)
		w.drop(w.write(rest[:n]))
		rest = rest[n:]
	}
	w.reportDrops()
	return lines[:0]
}

// chunk gives the length of as many whole lines as one write takes, at least one.
func chunk(lines []byte) int {
	if len(lines) <= chunkBytes {
		return len(lines)
	}
	if i := bytes.LastIndexByte(lines[:chunkBytes], '\n'); i >= 0 {
		return i + 1
	}
	return bytes.IndexByte(lines, '\n') + 1
}

// write writes whole lines and returns those it could not write, the first of which
// may have been written in part: then the next line begins on a line of its own.
func (w *writer) write(lines []byte) (lost []byte) {
	if w.console != nil {
		lines = w.console.render(lines)
	}
	if w.torn {
		if _, err := w.out.Write([]byte{'\n'}); err != nil {
			return lines
		}
		w.torn = false
	}
	n, err := w.out.Write(lines)
	if err == nil {
		return nil
	}
	w.torn = n > 0 && lines[n-1] != '\n'
	return lines[n:]
}

func (w *writer) drop(lines []byte) {
	w.queue.dropped.Add(uint64(bytes.Count(lines, []byte{'\n'})))
}

// reportDrops says in the log that lines are missing, once it can be written again.
func (w *writer) reportDrops() {
	total := w.queue.dropped.Load()
	if total == w.reported || w.gaveUp.Load() {
		return
	}
	var buf [256]byte
	line := append(buf[:0], `{"level":"warn","dropped":`...)
	line = strconv.AppendUint(line, total-w.reported, 10)
	line = append(line, `,"`+zerolog.TimestampFieldName+`":"`...)
	line = appendTime(line, time.Now())
	line = append(line, `","message":"log lines were dropped"}`+"\n"...)
	if len(w.write(line)) == 0 {
		w.reported = total
	}
}
