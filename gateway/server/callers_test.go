package server_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	. "sluice/internal/gatewaytest"
)

// TestListener_ConnectionsPerAddressAreBounded has one address take all that it may.
func TestListener_ConnectionsPerAddressAreBounded(t *testing.T) {
	u := NewUpstream(t, Say(OK))
	cfg := Config(u.URL)
	cfg.Server.Limits.ConnectionsPerAddress = 2
	g := Start(t, cfg)
	use := func(c net.Conn) answer {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		return read(t, bufio.NewReader(c), "GET")
	}
	first, second := g.Dial(t), g.Dial(t)
	for _, c := range []net.Conn{first, second} {
		if a := use(c); a.status != 200 {
			t.Fatalf("%+v", a)
		}
	}
	a := read(t, bufio.NewReader(g.Dial(t)), "GET") // answered without being asked
	if a.status != 503 || !strings.Contains(a.body, `"code":"gateway_busy"`) {
		t.Errorf("the third of one address got %+v", a)
	}
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c, err := other.Dial("tcp", g.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if a := use(c); a.status != 200 {
		t.Errorf("another address got %+v", a)
	}
	_ = first.Close()
	eventually(t, "room for another of the first address", func() bool {
		c, err := net.Dial("tcp", g.Address)
		if err != nil {
			return false
		}
		defer func() { _ = c.Close() }()
		return use(c).status == 200
	})
}
