package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLog_StuckOutputBlocksNobodyAndTearsNoLine(t *testing.T) {
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l := NewLog(DefaultConfig(), pipe)
	stop := run(l)
	e := sample()
	sent := 0
	for l.Dropped() < 1000 {
		if sent++; sent > 200_000 {
			t.Fatal("200,000 exchanges were queued while nobody read, want a bound")
		}
		l.Exchange(e)
	}

	read := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(reader)
		read <- all
	}()
	if err := stop(); err != nil {
		t.Errorf("Run with an output that works again: %v", err)
	}
	pipe.Close()
	lines, told := 0, 0.0
	for _, event := range events(t, string(<-read)) {
		if event["message"] == "exchange" {
			lines++
		} else {
			told += event["dropped"].(float64)
		}
	}
	if lines+int(l.Dropped()) != sent {
		t.Errorf("%d lines written and %d dropped of %d", lines, l.Dropped(), sent)
	}
	if told != float64(l.Dropped()) {
		t.Errorf("the log tells of %v dropped lines, want %d", told, l.Dropped())
	}
}

// stuck is an output that blocks until it is freed.
type stuck struct {
	free  chan struct{}
	begun int
}

func (s *stuck) Write(p []byte) (int, error) {
	s.begun++
	<-s.free
	return len(p), nil
}

func TestLog_StuckOutputHoldsTheExitForASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{free: make(chan struct{})}
		l := NewLog(DefaultConfig(), out)
		stop := run(l)
		for range 100 {
			l.Exchange(sample())
		}
		synctest.Wait()
		time.Sleep(gatherTime)
		begin := time.Now()
		if err := stop(); !errors.Is(err, ErrOutputStuck) {
			t.Errorf("Run: %v, want %v", err, ErrOutputStuck)
		}
		if got := time.Since(begin); got != exitTime {
			t.Errorf("Run returned after %v, want %v", got, exitTime)
		}
		close(out.free)
		synctest.Wait()
		if out.begun != 1 {
			t.Errorf("%d writes began, want none after the log was given up", out.begun)
		}
		if l.Dropped() == 0 {
			t.Error("the lines given up are not counted")
		}
	})
}

// writes records what each write got.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(p))
	return len(p), nil
}

// take gives the writes since the last call.
func (w *writes) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

func TestLog_ExchangesShareWritesAndTheRestDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out writes
		l := NewLog(DefaultConfig(), &out)
		stop := run(l)
		synctest.Wait()
		for range 100 {
			l.Exchange(sample())
		}
		synctest.Wait()
		if got := out.take(); len(got) != 0 {
			t.Errorf("%d writes at once, want none before %v", len(got), gatherTime)
		}
		time.Sleep(gatherTime)
		synctest.Wait()
		total, got := 0, out.take()
		for _, w := range got {
			total += strings.Count(w, "\n")
			if len(w) > chunkBytes || !strings.HasSuffix(w, "\n") {
				t.Errorf("a write of %d bytes that ends in %q, want whole lines up to %d", len(w), w[len(w)-1:], chunkBytes)
			}
		}
		if total != 100 || len(got) > 20 {
			t.Errorf("%d lines in %d writes, want 100 in at most 20", total, len(got))
		}

		l.Logger().Warn().Msg("at once")
		synctest.Wait()
		if got := out.take(); len(got) != 1 {
			t.Errorf("%d writes for an event that is no exchange, want 1 at once", len(got))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// failing fails all writes but those after the first fails, of which it takes half.
type failing struct {
	fails int
	text  bytes.Buffer
}

func (f *failing) Write(p []byte) (int, error) {
	if f.fails > 0 {
		f.fails--
		n, _ := f.text.Write(p[:len(p)/2])
		return n, errors.New("disk full")
	}
	return f.text.Write(p)
}

func TestLog_FailingOutputIsCountedAndTheNextLineIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &failing{fails: 1}
		l := NewLog(DefaultConfig(), out)
		stop := run(l)
		l.Logger().Info().Msg("lost")
		synctest.Wait()
		l.Logger().Info().Msg("kept")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if l.Dropped() != 1 {
			t.Errorf("%d dropped, want 1", l.Dropped())
		}
		half, rest, _ := strings.Cut(out.text.String(), "\n")
		if json.Valid([]byte(half)) {
			t.Errorf("the first line %q is whole, want half of one", half)
		}
		all := events(t, rest)
		if len(all) != 2 || all[0]["dropped"] != 1.0 || all[1]["message"] != "kept" {
			t.Errorf("after the half line: %v, want a report of 1 dropped line, then kept", all)
		}
	})
}

func TestLog_LineOfAnybodysLengthIsDropped(t *testing.T) {
	text := written(t, DefaultConfig(), func(l *Log) {
		l.Logger().Info().Str("value", strings.Repeat("x", lineBytes)).Msg("long")
		l.Logger().Info().Str("value", strings.Repeat("x", lineBytes-1000)).Msg("fits")
	})
	all := events(t, text)
	if len(all) != 2 || all[0]["message"] != "fits" || all[1]["dropped"] != 1.0 {
		t.Errorf("%d lines, want the one that fits and a report of the other", len(all))
	}
}
