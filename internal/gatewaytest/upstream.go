package gatewaytest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"testing"
	"time"
)

// Upstream is a scripted backend on a real socket. It keeps every request that it
// read, so that a test can count what was really sent.
type Upstream struct {
	Address string
	URL     string

	ln   net.Listener
	mu   sync.Mutex
	seen []Seen
	conn []net.Conn
	acts []Act
	wake chan struct{}
}

// Seen is a request as the backend saw it.
type Seen struct {
	Connection int    // counted from 0
	Head       string // start line and fields, as they came
	Body       string
}

// Act is what the backend does with one request, once it was read. Acts are used up
// in order; the last one stays.
type Act func(c net.Conn, r Seen)

// NewUpstream starts a backend that answers with acts.
func NewUpstream(t testing.TB, acts ...Act) *Upstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &Upstream{Address: ln.Addr().String(), URL: "http://" + ln.Addr().String(), ln: ln, acts: acts, wake: make(chan struct{}, 1000)}
	var running sync.WaitGroup
	running.Go(func() {
		for number := 0; ; number++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.conn = append(u.conn, c)
			u.mu.Unlock()
			running.Go(func() { u.serve(number, c) })
		}
	})
	t.Cleanup(func() {
		u.Close()
		running.Wait()
	})
	return u
}

// Close refuses connections from now on and closes those that are open.
func (u *Upstream) Close() {
	_ = u.ln.Close()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.conn {
		_ = c.Close()
	}
}

// Seen is every request so far.
func (u *Upstream) Seen() []Seen {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Seen(nil), u.seen...)
}

// Wait waits until n requests have been seen, or fails the test.
func (u *Upstream) Wait(t testing.TB, n int) []Seen {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		if seen := u.Seen(); len(seen) >= n {
			return seen
		}
		select {
		case <-u.wake:
		case <-limit:
			t.Fatalf("the backend saw %d requests, want %d", len(u.Seen()), n)
		}
	}
}

func (u *Upstream) serve(number int, c net.Conn) {
	defer func() { _ = c.Close() }()
	var raw bytes.Buffer
	r := bufio.NewReader(io.TeeReader(c, &raw))
	for {
		head, err := readHead(r)
		if err != nil {
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader([]byte(head))))
		if err != nil {
			return
		}
		var body []byte
		switch {
		case len(req.TransferEncoding) > 0:
			body, err = io.ReadAll(httputil.NewChunkedReader(r))
			if err == nil {
				_, err = r.ReadString('\n') // the end of the trailer section
			}
		case req.ContentLength > 0:
			body = make([]byte, req.ContentLength)
			_, err = io.ReadFull(r, body)
		}
		if err != nil {
			return
		}
		seen := Seen{number, head, string(body)}
		u.mu.Lock()
		u.seen = append(u.seen, seen)
		act := u.acts[min(len(u.seen), len(u.acts))-1]
		u.mu.Unlock()
		select {
		case u.wake <- struct{}{}:
		default:
		}
		act(c, seen)
	}
}

func readHead(r *bufio.Reader) (string, error) {
	var head bytes.Buffer
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String(), nil
		}
	}
}

// Say answers with bytes as they are and keeps the connection.
func Say(raw string) Act {
	return func(c net.Conn, _ Seen) { _, _ = c.Write([]byte(raw)) }
}

// Hang answers nothing.
func Hang(net.Conn, Seen) {}

// Close closes the connection, without an answer when it is the only act.
func Close(c net.Conn, _ Seen) { _ = c.Close() }

// Reset resets the connection.
func Reset(c net.Conn, _ Seen) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// Then does one thing after the other.
func Then(acts ...Act) Act {
	return func(c net.Conn, r Seen) {
		for _, act := range acts {
			act(c, r)
		}
	}
}

// OK is a whole answer on a connection that stays open.
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
