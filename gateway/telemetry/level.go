package telemetry

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// The levels an operator can choose, in rising order; levelNames and levelValues
// are one table.
var (
	levelNames  = [...]string{"debug", "info", "warn", "error", "off"}
	levelValues = [len(levelNames)]zerolog.Level{
		zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel, zerolog.ErrorLevel, zerolog.Disabled,
	}
)

func parseLevel(name string) (zerolog.Level, bool) {
	i := slices.Index(levelNames[:], name)
	if i < 0 {
		return zerolog.Disabled, false
	}
	return levelValues[i], true
}

// gate is the level of one Log. It stands in loggers as their Sampler, which
// zerolog asks before it builds an event: the level then holds for this Log alone
// (zerolog's own run-time level is one for the whole process), is inherited by
// child loggers, and what is below it costs nothing.
type gate struct{ level atomic.Int32 }

// Sample implements zerolog.Sampler.
func (g *gate) Sample(level zerolog.Level) bool { return int32(level) >= g.level.Load() }

func (g *gate) set(level zerolog.Level) { g.level.Store(int32(level)) }

func (g *gate) String() string {
	i := slices.Index(levelValues[:], zerolog.Level(g.level.Load()))
	return levelNames[max(i, 0)]
}

// SetLevel changes the least level written, from the next event on. The error
// says which levels there are.
func (l *Log) SetLevel(name string) error {
	level, ok := parseLevel(name)
	if !ok {
		return fmt.Errorf("level %q is unknown, must be one of %s", name, levelList)
	}
	l.gate.set(level)
	return nil
}

// Level gives the least level written now.
func (l *Log) Level() string { return l.gate.String() }
