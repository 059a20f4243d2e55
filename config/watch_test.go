package config

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a watch in a bubble: time moves only when the test waits.
type watched struct {
	t       *testing.T
	file    string
	now     chan os.Signal
	reloads []string // what the file held at each
}

const lookTime = time.Second

// underWatch runs test with a file that holds "one".
func underWatch(t *testing.T, test func(w *watched)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{t: t, file: filepath.Join(dir, "sluice.yaml"), now: make(chan os.Signal)}
		w.write("one")
		watch := NewWatch(w.file, lookTime)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watch.Run(ctx, w.now, func() {
				data, _ := os.ReadFile(w.file)
				w.reloads = append(w.reloads, string(data))
			})
		}()
		synctest.Wait()
		test(w)
		stop()
		<-ended
	})
}

func (w *watched) write(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// after lets n looks pass, between two of which the test then stands.
func (w *watched) after(n int) {
	time.Sleep(time.Duration(n) * lookTime)
	synctest.Wait()
}

func (w *watched) want(reloads ...string) {
	w.t.Helper()
	if len(w.reloads) != len(reloads) {
		w.t.Fatalf("reloads of %q, want %q", w.reloads, reloads)
	}
	for i := range reloads {
		if w.reloads[i] != reloads[i] {
			w.t.Fatalf("reloads of %q, want %q", w.reloads, reloads)
		}
	}
}

func TestWatch_ActsOnceOnAChange(t *testing.T) {
	underWatch(t, func(w *watched) {
		w.after(5)
		w.want()
		w.write("two")
		w.after(2)
		w.want("two")
		w.write("two") // written again, the same
		w.after(5)
		w.want("two")
		w.write("one")
		w.after(2)
		w.want("two", "one")
	})
}

func TestWatch_WaitsUntilAFileIsWritten(t *testing.T) {
	underWatch(t, func(w *watched) {
		for _, part := range []string{"", "t", "th", "thr", "thre"} {
			w.write(part)
			w.after(1)
		}
		w.want()
		w.write("three")
		w.after(2)
		w.want("three")
	})
}

func TestWatch_FileIsRenamedOver(t *testing.T) {
	underWatch(t, func(w *watched) {
		next := w.file + ".new"
		if err := os.WriteFile(next, []byte("two"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, w.file); err != nil {
			t.Fatal(err)
		}
		w.after(2)
		w.want("two")
	})
}

func TestWatch_FileIsGoneForAWhile(t *testing.T) {
	underWatch(t, func(w *watched) {
		if err := os.Remove(w.file); err != nil {
			t.Fatal(err)
		}
		w.after(5)
		w.want()
		w.write("one")
		w.after(3)
		w.want()
		w.write("two")
		w.after(2)
		w.want("two")
	})
}

// TestWatch_MountIsSwapped replaces the folder that a symbolic link in the file's path
// leads to, as Kubernetes does with mounted configuration.
func TestWatch_MountIsSwapped(t *testing.T) {
	underWatch(t, func(w *watched) {
		dir := filepath.Dir(w.file)
		mount := func(folder, text string) {
			t.Helper()
			if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, folder, "sluice.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(folder, filepath.Join(dir, "data.new")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "data.new"), filepath.Join(dir, "data")); err != nil {
				t.Fatal(err)
			}
		}
		mount("1", "one")
		if err := os.Remove(w.file); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("data", "sluice.yaml"), w.file); err != nil {
			t.Fatal(err)
		}
		w.after(3)
		w.want()
		mount("2", "two")
		w.after(2)
		w.want("two")
		if err := os.RemoveAll(filepath.Join(dir, "1")); err != nil {
			t.Fatal(err)
		}
		mount("3", "three")
		w.after(2)
		w.want("two", "three")
	})
}

func TestWatch_ActsAtOnceWhenAsked(t *testing.T) {
	underWatch(t, func(w *watched) {
		w.write("two")
		w.now <- syscall.SIGHUP
		synctest.Wait()
		w.want("two")
		w.after(5) // and not once more when it looks
		w.want("two")
		w.now <- syscall.SIGHUP // unchanged: files that it names may have changed
		synctest.Wait()
		w.want("two", "two")
	})
}

func TestNewWatch_ChangeBeforeRunIsNoticed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := NewWatch(file, time.Second)
	if err := os.WriteFile(file, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.changed() {
		t.Error("acted at the first look")
	}
	if !w.changed() {
		t.Error("not acted at the second look")
	}
	if w.changed() {
		t.Error("acted twice")
	}
	none := NewWatch("", time.Second)
	for range 2 {
		if none.changed() {
			t.Error("without a file something changed")
		}
	}
}
