package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRun_SaysWhereItListensAndEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-keep", "10"}, in) }()

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "backend: listening on ")
	if !ok {
		t.Fatalf("said %q", line)
	}
	resp, err := http.Get("http://" + addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("/healthz: %d", resp.StatusCode)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestRun_SaysWhyItCannotListen(t *testing.T) {
	err := run(t.Context(), []string{"-listen", "127.0.0.1:no-such-port"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no-such-port") {
		t.Errorf("got %v", err)
	}
}
