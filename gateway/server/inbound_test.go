package server

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
)

// poor is a listener that runs out of descriptors before each connection.
type poor struct {
	net.Listener
	errs []error
	conn net.Conn
}

func (p *poor) Accept() (net.Conn, error) {
	if len(p.errs) > 0 {
		err := p.errs[0]
		p.errs = p.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	return p.conn, nil
}
func (p *poor) Addr() net.Addr { return &net.TCPAddr{} }

func TestListener_OutlivesAShortage(t *testing.T) {
	log := zerolog.Nop()
	here, there := net.Pipe()
	defer func() { _ = here.Close(); _ = there.Close() }()
	l := &listener{
		Listener: &poor{errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}, conn: here},
		log:      &log, all: &callers{most: 1, open: map[*inbound]struct{}{}},
	}
	c, err := l.Accept()
	if err != nil || c.(*inbound).Conn != here {
		t.Errorf("got %v, %v; want the connection that came after the shortage", c, err)
	}
	l.Listener.(*poor).errs = []error{syscall.EBADF}
	if _, err := l.Accept(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v, want the end of the listener", err)
	}
}

func TestProbe_SignalsAreNoClose(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	socket, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	c := newConn(socket, socket, 0)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // the runtime preempts a loop like the one below by such a signal
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGURG)
			}
		}
	}()
	for range 200_000 {
		if c.stale() {
			t.Error("an open connection looks stale")
			break
		}
	}
	close(stop)
	<-done
}
