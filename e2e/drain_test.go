package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestDrain_InFlightFinishes(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(w, "charged")
	}))
	t.Cleanup(srv.Close)
	g := startGateway(t, oneUpstream(srv.URL))

	answer := make(chan string, 1)
	go func() {
		resp, err := newCaller(t).Post(g.url("/v1/charges"), "application/json", http.NoBody)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		answer <- fmt.Sprint(resp.StatusCode, " ", string(body), " ", err)
	}()
	<-arrived
	g.signal(t, syscall.SIGTERM)
	waitFor(t, "the gateway to take no more connections", 10*time.Second, func() bool {
		c, err := net.Dial("tcp", g.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(release)
	if got, want := <-answer, "200 charged <nil>"; got != want {
		t.Errorf("the request in flight got %q, want %q", got, want)
	}
	if code := g.wait(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// Under load, whatever the backend executed is answered to its caller.
func TestDrain_WhatWasExecutedIsAnswered(t *testing.T) {
	var mu sync.Mutex
	executed, answered := map[string]bool{}, map[string]bool{}
	note := func(set map[string]bool, id string) {
		mu.Lock()
		defer mu.Unlock()
		set[id] = true
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(executed, r.URL.RawQuery)
		_, _ = io.WriteString(w, "charged")
	}))
	t.Cleanup(srv.Close)
	g := startGateway(t, oneUpstream(srv.URL))

	var callers sync.WaitGroup
	gone := make(chan struct{})
	for w := range 8 {
		callers.Go(func() {
			caller := newCaller(t)
			for n := 0; ; n++ {
				select {
				case <-gone:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", w, n)
				if ask(caller, http.MethodPost, g.url("/v1/charges?"+id)) == http.StatusOK {
					note(answered, id)
				}
			}
		})
	}
	waitFor(t, "traffic to flow", 10*time.Second, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(answered) > 500
	})
	g.signal(t, syscall.SIGTERM)
	if code := g.wait(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	close(gone)
	callers.Wait()
	if len(executed) < 500 {
		t.Errorf("%d executed, %d answered: the load did not happen", len(executed), len(answered))
	}
	for id := range executed {
		if !answered[id] {
			t.Errorf("request %s was executed, but not answered", id)
		}
	}
}
