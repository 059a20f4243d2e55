package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What goes wrong at the backend, what the caller is told, and that it was tried once.
func TestFailures_WhatTheCallerIsTold(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answer  func(int, wireRequest) string
		status  int
		outcome string
	}{
		{"hangs", func(int, wireRequest) string { return noAnswer }, http.StatusGatewayTimeout, "unknown"},
		{"closes without an answer", func(int, wireRequest) string { return "" }, http.StatusBadGateway, "unknown"},
		{"closes within the head", func(int, wireRequest) string { return "HTTP/1.1 200 OK\r\nContent-" + closeAfter }, http.StatusBadGateway, "unknown"},
		{"is no HTTP", func(int, wireRequest) string { return "220 mail.example ESMTP\r\n\r\n" + closeAfter }, http.StatusBadGateway, "unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := startStub(t, tc.answer)
			g := startGateway(t, impatient(s.url()))
			for i, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
				got := curl(t, "-X", method, "-d", "amount=5", g.url("/v1/charges"))
				p := wantProblem(t, got.status, got.header, got.body, tc.status)
				if p.Outcome != tc.outcome || got.header.Get("Gateway-Outcome") != tc.outcome {
					t.Errorf("%s: outcome %q, in the head %q, want %q", method, p.Outcome, got.header.Get("Gateway-Outcome"), tc.outcome)
				}
				if n := len(s.requests()) - i; n != 1 {
					t.Errorf("%s: the backend got %d requests, want 1", method, n)
				}
			}
		})
	}
}

// impatient is a configuration whose route waits half a second.
func impatient(backend string) string {
	return strings.Replace(oneUpstream(backend), "timeout: 10s", "timeout: 500ms", 1)
}

func TestFailures_NobodyListens(t *testing.T) {
	g := startGateway(t, oneUpstream("http://"+freeAddr(t)))
	for _, method := range []string{"GET", "POST"} {
		got := curl(t, "-X", method, g.url("/v1/charges"))
		p := wantProblem(t, got.status, got.header, got.body, http.StatusBadGateway)
		if p.Outcome != "not-sent" || p.Code != "connect_failed" {
			t.Errorf("%s: code %q, outcome %q, want connect_failed, not-sent", method, p.Code, p.Outcome)
		}
	}
}

// A body that is cut short must not look complete to the caller.
func TestFailures_CutBodyIsNeverAWholeAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("x", 100_000),
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", 100_000, strings.Repeat("x", 100_000)),
	} {
		t.Run(name, func(t *testing.T) {
			s := startStub(t, func(int, wireRequest) string { return answer + closeAfter })
			g := startGateway(t, oneUpstream(s.url()))
			if status := ask(newCaller(t), http.MethodPost, g.url("/report")); status == http.StatusOK {
				t.Error("the caller read a complete 200")
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("the backend got %d requests, want 1", n)
			}
		})
	}
}
