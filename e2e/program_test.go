package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// program is a started process. Its logs are shown when the test fails, and it
// is ended with the test.
type program struct {
	name   string
	cmd    *exec.Cmd
	stdout lines
	stderr lines

	ended chan struct{} // closed when the process is gone
	code  int           // exit code, -1 after a signal; valid once ended
}

// start runs a program until the test ends.
func start(t *testing.T, path string, args ...string) *program {
	t.Helper()
	p := newProgram(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.begin(t)
	return p
}

func newProgram(path string, args ...string) *program {
	p := &program{name: filepath.Base(path), cmd: exec.Command(path, args...), ended: make(chan struct{})}
	// Nothing outlives a test binary that is killed before its cleanups ran.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = 2 * time.Second
	return p
}

func (p *program) begin(t *testing.T) {
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the exit code says all
		p.code = p.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s exited %d\nstdout:\n%s\nstderr:\n%s", p.name, p.code, p.stdout.tail(), p.stderr.tail())
		}
	})
}

// stop asks the program to end, insists after a while, and returns its exit code.
func (p *program) stop(t *testing.T) int {
	t.Helper()
	if p.running() {
		p.signal(t, syscall.SIGTERM)
	}
	select {
	case <-p.ended:
	case <-time.After(15 * time.Second):
		t.Errorf("%s did not end on SIGTERM", p.name)
		p.signal(t, syscall.SIGKILL)
		<-p.ended
	}
	return p.code
}

func (p *program) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal %s: %v", p.name, err)
	}
}

func (p *program) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// wait returns the exit code of a program that is expected to end by itself.
func (p *program) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(15 * time.Second):
		t.Fatalf("%s did not end", p.name)
	}
	return p.code
}

// lines collects output. What exceeds its bound is dropped.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const linesMax = 32 << 20

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len()+len(b) <= linesMax {
		l.buf.Write(b)
	}
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// all returns the lines that are complete.
func (l *lines) all() []string {
	s := l.String()
	end := strings.LastIndexByte(s, '\n')
	if end < 0 {
		return nil
	}
	return strings.Split(s[:end], "\n")
}

// tail returns as much as is useful in a failure.
func (l *lines) tail() string {
	const keep = 8 << 10
	s := l.String()
	if len(s) > keep {
		s = "…" + s[len(s)-keep:]
	}
	return s
}

// lastPort spreads the ports of test binaries that run at the same time.
var lastPort atomic.Uint32

func init() { lastPort.Store(uint32(os.Getpid() * 41)) }

// freePort returns a port below the range from which the kernel takes those of
// outgoing connections, so that none of the many callers here takes it in between.
func freePort(t *testing.T) int {
	t.Helper()
	for range 10000 {
		port := 20000 + int(lastPort.Add(1)%10000)
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) // any address: [::1] and 127.0.0.1 alike
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port in 20000-29999")
	return 0
}

// freeAddr returns an address of 127.0.0.1 that nobody listens on.
func freeAddr(t *testing.T) string {
	return fmt.Sprintf("127.0.0.1:%d", freePort(t))
}

// waitListening waits until something accepts connections at addr.
func (p *program) waitListening(t *testing.T, addr string) {
	t.Helper()
	waitFor(t, p.name+" to listen on "+addr, 15*time.Second, func() bool {
		if !p.running() {
			t.Fatalf("%s ended before it listened", p.name)
		}
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}
