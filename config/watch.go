package config

import (
	"context"
	"crypto/sha256"
	"os"
	"time"
)

// Watch notices that a configuration file has other contents than before. It looks at
// the contents again and again in place of asking the kernel for events: those are
// lost when a file is renamed over, when a mount swaps a symbolic link, or while the
// name leads nowhere for a moment.
type Watch struct {
	file  string
	every time.Duration

	acted sum // the contents that were acted on
	seen  sum // at the latest look
}

// sum stands for the contents of a file.
type sum = [sha256.Size]byte

// NewWatch makes a watch over file, which looks every so often; a change is acted on
// within twice that. What the file holds now counts as acted on, so make the watch
// before the file is loaded: what changes in between is then noticed. It starts
// nothing: see Run. With no file ("") nothing ever changes.
func NewWatch(file string, every time.Duration) *Watch {
	w := &Watch{file: file, every: every}
	w.acted, _ = w.look()
	w.seen = w.acted
	return w
}

// Run calls reload when the file has changed, and at once for a signal that comes from
// now, until ctx ends.
// Changed contents are acted on once they were the same at two looks, so that a file
// that is being written is not read in halves; a file that cannot be read is waited
// for. Calls of reload never overlap.
func (w *Watch) Run(ctx context.Context, now <-chan os.Signal, reload func()) {
	ticks := time.NewTicker(w.every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-now:
			if contents, ok := w.look(); ok {
				w.acted, w.seen = contents, contents
			}
			reload()
		case <-ticks.C:
			if w.changed() {
				reload()
			}
		}
	}
}

// changed takes a look, and reports whether it is time to act.
func (w *Watch) changed() bool {
	contents, ok := w.look()
	if !ok {
		return false
	}
	settled := contents == w.seen
	w.seen = contents
	if !settled || contents == w.acted {
		return false
	}
	w.acted = contents
	return true
}

func (w *Watch) look() (sum, bool) {
	if w.file == "" {
		return sum{}, false
	}
	data, err := readFile(w.file)
	if err != nil {
		return sum{}, false
	}
	return sha256.Sum256(data), true
}
