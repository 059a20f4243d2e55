package server

import (
	"net"
	"testing"
	"time"
)

// TestListenShared_TheYoungerGetsAll: the older one closes with nothing left in it, and
// the younger goes on, generation after generation.
func TestListenShared_TheYoungerGetsAll(t *testing.T) {
	old, steered, err := listenShared("tcp", "127.0.0.1:0")
	if err != nil || !steered {
		t.Fatalf("steered %v, %v", steered, err)
	}
	address := old.Addr().String()
	for generation := range 5 {
		connect(t, address, old) // alone it gets everything
		young, steered, err := listenShared("tcp", address)
		if err != nil || !steered {
			t.Fatalf("generation %d: steered %v, %v", generation, steered, err)
		}
		for range 50 {
			connect(t, address, young)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		old = young
	}
	_ = old.Close()
}

// connect opens a connection that has to come out of ln.
func connect(t *testing.T, address string, ln net.Listener) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = ln.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second))
	in, err := ln.Accept()
	if err != nil {
		t.Fatalf("it came to another listener: %v", err)
	}
	defer func() { _ = in.Close() }()
	if in.RemoteAddr().String() != c.LocalAddr().String() {
		t.Fatalf("got %v, want %v", in.RemoteAddr(), c.LocalAddr())
	}
}
