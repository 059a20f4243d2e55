package admin

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// listenUnix listens on a Unix socket that only this user may open. A socket that an
// earlier run left behind is replaced; one that is answered is in use.
func listenUnix(path string) (net.Listener, error) {
	ln, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && stale(path) && os.Remove(path) == nil {
		ln, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

func stale(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// bound lets at most n connections be open at a time; others wait in the backlog.
func bound(ln net.Listener, n int) net.Listener {
	return &boundListener{ln, make(chan struct{}, n), make(chan struct{}), sync.Once{}}
}

type boundListener struct {
	net.Listener
	open   chan struct{} // holds one value for each connection
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *boundListener) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &boundConn{Conn: conn, open: l.open}, nil
}

// Close implements net.Listener.
func (l *boundListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type boundConn struct {
	net.Conn
	open chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *boundConn) Close() error {
	c.once.Do(func() { <-c.open })
	return c.Conn.Close()
}
