package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestListen_TakenAddressIsAnError(t *testing.T) {
	addr := serve(t, onLoopback, newGateway())
	s, err := New(Config{Listen: addr.String()}, newGateway().sources())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Listen()
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), addr.String()) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Listen: %v, want one line: address %v already in use", err, addr)
	}
}

func TestListen_OffIsNoListener(t *testing.T) {
	s, err := New(Config{Listen: Off}, newGateway().sources())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := s.Listen()
	if ln != nil || err != nil {
		t.Errorf("Listen: %v, %v; want nothing", ln, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := s.Serve(ctx, ln); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestListen_UnixSocketIsPrivateAndReplacesAStaleOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()

	cfg := Config{Listen: "unix:" + path}
	serve(t, cfg, newGateway())
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v; want mode 0600", info.Mode(), err)
	}
	second, err := New(cfg, newGateway().sources())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Listen(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener while the first is alive: %v, want address in use", err)
	}

	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n")
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != 200 {
		t.Errorf("on the socket: %v, %v; want 200", response, err)
	}
}

func TestServe_EndsProfilesAndIdleConnections(t *testing.T) {
	s, err := New(onLoopback, newGateway().sources())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- s.Serve(ctx, ln) }()

	idle, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	fmt.Fprint(idle, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	fromIdle := bufio.NewReader(idle)
	if _, err := http.ReadResponse(fromIdle, nil); err != nil {
		t.Fatal(err)
	}
	profile, err := http.Get("http://" + ln.Addr().String() + "/debug/pprof/trace?seconds=200")
	if err != nil {
		t.Fatal(err)
	}
	defer profile.Body.Close()
	stop()
	if err := <-result; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := io.Copy(io.Discard, profile.Body); err != nil {
		t.Errorf("the trace under way: %v, want it cut short but whole", err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the listener still takes connections")
	}
}

func TestServer_OpenConnectionsAreBounded(t *testing.T) {
	addr := serve(t, onLoopback, newGateway())
	ask := func(conn net.Conn) (*http.Response, error) {
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		return http.ReadResponse(bufio.NewReader(conn), nil)
	}
	var open []net.Conn
	for range connections {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := ask(conn); err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	late, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := ask(late)
		answered <- err
	}()
	for _, conn := range open { // time enough for a wrong answer
		if _, err := ask(conn); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-answered:
		t.Fatalf("connection %d was answered (%v) while %d are open", connections+1, err, connections)
	default:
	}
	open[0].Close()
	if err := <-answered; err != nil {
		t.Errorf("the connection that waited: %v, want an answer once another closed", err)
	}
}
