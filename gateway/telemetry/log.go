package telemetry

import (
	"context"
	"errors"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// exitTime bounds how long Run goes on after its context ended.
const exitTime = time.Second

// ErrOutputStuck is Run's result where the output took nothing for too long at
// the end, so that queued lines were given up.
var ErrOutputStuck = errors.New("log: the output takes no data; queued lines are lost")

// Log is the gateway's log: lines from any goroutine, queued in bounded memory and
// written by the one goroutine that is in Run. All methods may be called at any
// time from any goroutine; until Run begins lines are queued, after it lines are
// dropped.
type Log struct {
	gate   gate
	logger zerolog.Logger // for everything but exchanges
	queue  *queue
	writer *writer

	exchanges atomic.Bool   // whether exchanges are logged
	sampled   atomic.Uint64 // how many exchanges sampling was asked about
	sample    atomic.Uint64 // share of them to log; math.MaxUint64 is all

	configured atomic.Pointer[Config]
}

// NewLog makes a log that will write to out. It starts nothing: see Run. A cfg that
// is not valid is logged with the defaults in place of its faults.
func NewLog(cfg Config, out io.Writer) *Log {
	q := newQueue()
	l := &Log{queue: q, writer: newWriter(q, out, cfg.Format)}
	l.gate.set(zerolog.InfoLevel)
	l.logger = zerolog.New(&sink{&l.gate, q}).Sample(&l.gate).Hook(clock{})
	l.Configure(cfg)
	return l
}

// Configure applies level, access and sample of a reloaded configuration; the
// format stays. The level is applied only if it differs from the one configured
// before, so that a reload does not undo what SetLevel did meanwhile.
func (l *Log) Configure(cfg Config) {
	before := l.configured.Swap(&cfg)
	if level, ok := parseLevel(cfg.Level); ok && (before == nil || before.Level != cfg.Level) {
		l.gate.set(level)
	}
	l.exchanges.Store(cfg.Access)
	share := uint64(math.MaxUint64)
	if cfg.Sample < 1 {
		share = uint64(max(cfg.Sample, 0) * (1 << 64))
	}
	l.sample.Store(share)
}

// Logger is for everything that is not an exchange. Its events carry the time and
// go through the same queue, ahead of any wait to gather more.
func (l *Log) Logger() *zerolog.Logger { return &l.logger }

// Dropped is how many lines were lost since the start: the queue was full, a line
// was too long, the output failed, or Run had ended.
func (l *Log) Dropped() uint64 { return l.queue.dropped.Load() }

// Run writes what is queued until ctx ends, then what is still queued, and returns.
// It must be called once, and its caller waits for it last, after everything that
// logs. Where the output takes nothing it returns ErrOutputStuck about a second
// after ctx ended; a goroutine then stays behind in the blocked Write, and ends
// without writing more if that ever returns.
func (l *Log) Run(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.writer.run(ctx)
	}()
	<-ctx.Done()
	patience := time.NewTimer(exitTime)
	defer patience.Stop()
	select {
	case <-done:
		return nil
	case <-patience.C:
		l.writer.gaveUp.Store(true)
		return ErrOutputStuck
	}
}

// sink puts the events of a zerolog.Logger on the queue.
type sink struct {
	gate  *gate
	queue *queue
}

// Write implements io.Writer, which zerolog.New wants; events come by WriteLevel.
func (s *sink) Write(line []byte) (int, error) { return s.WriteLevel(zerolog.NoLevel, line) }

// WriteLevel implements zerolog.LevelWriter. It asks the gate again, for child
// loggers that replaced their sampler. It never fails: a drop is counted instead,
// since zerolog prints errors to stderr, which may be what is stuck.
func (s *sink) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if s.gate.Sample(level) {
		s.queue.put(line, true)
	}
	return len(line), nil
}

// clock stamps the events of Logger.
type clock struct{}

// Run implements zerolog.Hook.
func (clock) Run(e *zerolog.Event, _ zerolog.Level, _ string) {
	var buf [timeBytes]byte
	e.Bytes(zerolog.TimestampFieldName, appendTime(buf[:0], time.Now()))
}
