package telemetry

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of the buckets, 1 ms to 60 s. The 2.5 s of the default
// timeout is one of them.
var bounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// histogram counts durations in fixed buckets. Our own, since the library's takes a
// mutex for each value; here it is two atomic additions.
type histogram struct {
	family string
	labels string // `{a="b"}`, escaped

	buckets [len(bounds) + 1]atomic.Uint64 // not cumulative; the last is for all above
	nanos   atomic.Int64                   // sum
}

// observe counts d; what is negative counts as zero.
func (h *histogram) observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.nanos.Add(int64(d))
}

// write writes the buckets, the sum and the count. The count is the sum of the
// buckets read, so that the three agree even while values come in.
func (h *histogram) write(out *bytes.Buffer) {
	seconds := strconv.FormatFloat(time.Duration(h.nanos.Load()).Seconds(), 'g', -1, 64)
	inner := "{"
	if h.labels != "" {
		inner = h.labels[:len(h.labels)-1] + ","
	}
	var total uint64
	for i := range h.buckets {
		total += h.buckets[i].Load()
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i].Seconds(), 'g', -1, 64)
		}
		writeSample(out, h.family+"_bucket"+inner+`le="`+le+`"}`, strconv.FormatUint(total, 10))
	}
	writeSample(out, h.family+"_sum"+h.labels, seconds)
	writeSample(out, h.family+"_count"+h.labels, strconv.FormatUint(total, 10))
}

func writeSample(out *bytes.Buffer, name, value string) {
	out.WriteString(name)
	out.WriteByte(' ')
	out.WriteString(value)
	out.WriteByte('\n')
}
