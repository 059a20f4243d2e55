package e2e

import (
	"net"
	"strings"
	"testing"
)

func TestPython_KeepAliveAndPipelining(t *testing.T) {
	s := startStub(t, func(n int, r wireRequest) string {
		switch strings.Fields(r.line)[1] {
		case "/none":
			return "HTTP/1.1 204 No Content\r\n\r\n"
		case "/chunked":
			return chunked("one ", "two ", "three")
		}
		return echo(n, r)
	})
	g := startGateway(t, oneUpstream(s.url()))
	_, port, err := net.SplitHostPort(g.addr)
	if err != nil {
		t.Fatal(err)
	}
	output(t, installed(t, "python3", "apt-get install python3"), "python/keepalive.py", port)

	if got, want := len(s.requests()), 50*6+20*4+1; got != want {
		t.Errorf("the backend got %d requests, want %d", got, want)
	}
}
