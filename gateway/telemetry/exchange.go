package telemetry

import (
	"bytes"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/gateway/outcome"
)

// Bounds on what is logged of values that callers choose, in bytes; what is longer
// is cut.
const (
	pathBytes   = 2048
	hostBytes   = 255
	idBytes     = 128
	methodBytes = 32
	callerBytes = 64
	wordBytes   = 255 // names of the configuration, and words of closed lists
)

// Exchange is one exchange that ended, as the log tells it. The byte slices are
// views that need to be valid only during the call of Log.Exchange.
type Exchange struct {
	At        time.Time // when it ended
	RequestID []byte
	Caller    []byte // address
	Method    []byte
	Host      []byte
	Path      []byte // a query in it is not logged

	Route    string // "" where none matched
	Upstream string // "" where none was chosen
	Endpoint string // of the last attempt; "" where none was made

	Status  int    // sent to the caller; 0 where nothing was
	Code    string // why it ended, by its name in package outcome
	Outcome string // what the caller may conclude; "" where nothing is claimed
	Detail  string // what ended the attempt, a word of a closed list; "" for nothing
	Why     string // more about it, likewise

	Attempts int
	Reused   bool // the last attempt went out on a pooled connection

	BytesIn  int64 // of the caller's request body
	BytesOut int64 // of the body sent to the caller

	Queue   time.Duration // waiting for a permit
	Connect time.Duration // dialling and TLS, of the last attempt
	Head    time.Duration // from the start of the last attempt to the head of its response
	Total   time.Duration // from the first byte of the request to the end
}

// Wants decides whether an exchange that ended with this status and code shall be
// logged, and takes its share of the sampling. Ask once for each exchange, and
// build the event only if it is wanted. An event is at level info, at warn where
// it is a 5xx made here, which sampling leaves alone.
func (l *Log) Wants(status int, code outcome.Code) bool {
	if !l.exchanges.Load() {
		return false
	}
	if status >= 500 && code != outcome.Passed {
		return l.gate.Sample(zerolog.WarnLevel)
	}
	return l.gate.Sample(zerolog.InfoLevel) && l.chosen()
}

// Exchange logs an exchange that Wants wanted. It never blocks and allocates nothing.
func (l *Log) Exchange(e *Exchange) {
	buf := lineBuffers.Get().(*[]byte)
	*buf = e.appendJSON((*buf)[:0])
	l.queue.put(*buf, false)
	lineBuffers.Put(buf)
}

var passed = outcome.Passed.String()

// lineBuffers holds buffers for one event each; the bounds above bound them too.
var lineBuffers = sync.Pool{New: func() any { return new([]byte) }}

// chosen applies sampling. The hash spreads the choice, so that no pattern in the
// traffic (every second request a POST) meets a pattern in the sampling.
func (l *Log) chosen() bool {
	share := l.sample.Load()
	return share == math.MaxUint64 || mix(l.sampled.Add(1)) < share
}

// mix is the finaliser of splitmix64 (Steele, Lea and Flood, 2014).
func mix(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// appendJSON writes the event as one line. What did not happen has no field. By hand,
// with the keys as they go out, since this is paid for each exchange: zerolog checks
// every byte of every key again, which more than doubled the cost.
func (e *Exchange) appendJSON(dst []byte) []byte {
	level := "info"
	if e.Status >= 500 && e.Code != passed {
		level = "warn"
	}
	dst = append(append(dst, `{"level":"`...), level...)
	dst = appendTime(append(dst, `","time":"`...), e.At)
	dst = appendText(append(dst, `","request_id":"`...), e.RequestID, idBytes)
	dst = appendText(append(dst, `","caller":"`...), e.Caller, callerBytes)
	dst = append(dst, '"')
	dst = appendBytes(dst, `,"method":"`, e.Method, methodBytes)
	dst = appendBytes(dst, `,"host":"`, e.Host, hostBytes)
	dst = appendBytes(dst, `,"path":"`, withoutQuery(e.Path), pathBytes)
	dst = appendWord(dst, `,"route":"`, e.Route)
	dst = appendWord(dst, `,"upstream":"`, e.Upstream)
	dst = appendWord(dst, `,"endpoint":"`, e.Endpoint)
	dst = appendInt(dst, `,"status":`, int64(e.Status))
	dst = appendWord(dst, `,"code":"`, e.Code)
	dst = appendWord(dst, `,"outcome":"`, e.Outcome)
	dst = appendWord(dst, `,"detail":"`, e.Detail)
	dst = appendWord(dst, `,"why":"`, e.Why)
	dst = appendInt(dst, `,"attempts":`, int64(e.Attempts))
	if e.Attempts > 0 {
		dst = strconv.AppendBool(append(dst, `,"reused":`...), e.Reused)
	}
	dst = appendInt(dst, `,"bytes_in":`, e.BytesIn)
	dst = appendInt(dst, `,"bytes_out":`, e.BytesOut)
	dst = appendSpan(dst, `,"queue_ms":`, e.Queue)
	dst = appendSpan(dst, `,"connect_ms":`, e.Connect)
	dst = appendSpan(dst, `,"head_ms":`, e.Head)
	dst = appendMillis(append(dst, `,"total_ms":`...), e.Total)
	return append(dst, `,"message":"exchange"}`+"\n"...)
}

func appendWord(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return append(appendText(append(dst, key...), value, wordBytes), '"')
}

func appendBytes(dst []byte, key string, value []byte, most int) []byte {
	if len(value) == 0 {
		return dst
	}
	return append(appendText(append(dst, key...), value, most), '"')
}

func appendInt(dst []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(dst, key...), n, 10)
}

func appendSpan(dst []byte, key string, d time.Duration) []byte {
	if d <= 0 {
		return dst
	}
	return appendMillis(append(dst, key...), d)
}

// withoutQuery makes sure of the promise that queries are not logged.
func withoutQuery(path []byte) []byte {
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		return path[:i]
	}
	return path
}
