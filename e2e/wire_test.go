package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// wireRequest is a request as it stood on the wire.
type wireRequest struct {
	line   string      // request line
	header [][2]string // names and values, in order, as sent
	body   []byte      // chunk framing taken off
}

func (r wireRequest) method() string { return strings.Fields(r.line + " ")[0] }

// values returns the values of every header line of that name, in order.
func (r wireRequest) values(name string) []string {
	var all []string
	for _, h := range r.header {
		if strings.EqualFold(h[0], name) {
			all = append(all, h[1])
		}
	}
	return all
}

// value returns the value of the one header line of that name, or "".
func (r wireRequest) value(name string) string {
	return strings.Join(r.values(name), "|")
}

func (r wireRequest) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.line)
	for _, h := range r.header {
		fmt.Fprintf(&b, "%s: %s\n", h[0], h[1])
	}
	fmt.Fprintf(&b, "(%d bytes of body)", len(r.body))
	return b.String()
}

// readRequest reads one request. It is deliberately not net/http's parser: that
// one canonicalises names and hides duplicates. w receives 100 Continue when the
// request asks for it; nil when only a recording is read.
func readRequest(r *bufio.Reader, w io.Writer) (wireRequest, error) {
	var req wireRequest
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			if line == "" && req.line == "" {
				return req, io.EOF
			}
			return req, fmt.Errorf("head cut short after %q: %v", line, err)
		}
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if req.line == "" {
			req.line = line
			continue
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		req.header = append(req.header, [2]string{name, textproto.TrimString(value)})
	}
	if w != nil && req.value("Expect") != "" {
		if _, err := io.WriteString(w, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return req, err
		}
	}
	return req, req.readBody(r)
}

func (r *wireRequest) readBody(from *bufio.Reader) (err error) {
	if strings.EqualFold(r.value("Transfer-Encoding"), "chunked") {
		r.body, err = io.ReadAll(httputil.NewChunkedReader(from))
		if err != nil {
			return err
		}
		_, err = from.ReadString('\n') // the end of the trailer section, which is empty
		return err
	}
	length := r.value("Content-Length")
	if length == "" {
		return nil
	}
	n, err := strconv.Atoi(length)
	if err != nil {
		return fmt.Errorf("Content-Length %q: %w", length, err)
	}
	r.body = make([]byte, n)
	_, err = io.ReadFull(from, r.body)
	return err
}

const (
	// closeAfter at the end of an answer makes the stub close the connection behind it.
	closeAfter = "\x00close"
	// noAnswer makes the stub wait until the gateway closes the connection.
	noAnswer = "\x00wait"
)

// stub is a scripted backend that answers in raw bytes and keeps what it read.
type stub struct {
	addr   string
	answer func(n int, r wireRequest) string // n counts from 1; "" closes without an answer

	mu   sync.Mutex
	seen []wireRequest
}

// startStub runs a stub until the test ends.
func startStub(t *testing.T, answer func(n int, r wireRequest) string) *stub {
	t.Helper()
	s := &stub{answer: answer}
	s.addr = serveConns(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			req, err := readRequest(r, c)
			if err != nil {
				return // the gateway closed the connection; a cut request shows as a missing one
			}
			answer := s.answer(s.keep(req), req)
			if answer == noAnswer {
				_, _ = io.Copy(io.Discard, c)
				return
			}
			out, last := strings.CutSuffix(answer, closeAfter)
			if _, err := io.WriteString(c, out); out == "" || last || err != nil {
				return
			}
		}
	})
	return s
}

func (s *stub) keep(r wireRequest) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r)
	return len(s.seen)
}

func (s *stub) url() string { return "http://" + s.addr }

// requests returns what arrived so far.
func (s *stub) requests() []wireRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]wireRequest(nil), s.seen...)
}

// jsonAnswer renders an answer with extra header lines, each ending in CRLF.
func jsonAnswer(status int, extra, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), extra, len(body), body)
}

// tap passes bytes between a caller and the gateway and keeps what the caller
// sent, so that it can be compared with what the backend got.
type tap struct {
	addr string

	mu   sync.Mutex
	sent []*bytes.Buffer // one per connection, in order of arrival
}

func startTap(t *testing.T, gateway string) *tap {
	t.Helper()
	p := &tap{}
	p.addr = serveConns(t, func(c net.Conn) {
		up, err := net.Dial("tcp", gateway)
		if err != nil {
			t.Errorf("tap: %v", err)
			return
		}
		defer up.Close()
		keep := p.connection()
		back := make(chan struct{})
		go func() {
			defer close(back)
			_, _ = io.Copy(c, up)
			c.Close() // the gateway ended it: so ends the caller's side
		}()
		_, _ = io.Copy(io.MultiWriter(keep, up), c) // kept first: whatever was answered is in what is kept
		up.Close()
		<-back
	})
	return p
}

// connection makes a buffer for what one caller's connection sends.
func (p *tap) connection() io.Writer {
	p.mu.Lock()
	defer p.mu.Unlock()
	buf := &bytes.Buffer{}
	p.sent = append(p.sent, buf)
	return writerFunc(func(b []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return buf.Write(b)
	})
}

// requests parses what callers sent, connection by connection.
func (p *tap) requests(t *testing.T) []wireRequest {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []wireRequest
	for _, sent := range p.sent {
		r := bufio.NewReader(bytes.NewReader(sent.Bytes()))
		for {
			req, err := readRequest(r, nil)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("what the caller sent does not parse: %v", err)
			}
			all = append(all, req)
		}
	}
	return all
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// serveConns accepts on a free port of 127.0.0.1 and hands each connection to
// serve in a goroutine. When the test ends it closes them all and waits.
func serveConns(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		over  bool
		open  = map[net.Conn]bool{}
		tasks sync.WaitGroup
	)
	tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			if over {
				c.Close()
			}
			mu.Unlock()
			tasks.Go(func() {
				serve(c)
				c.Close()
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		over = true
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		tasks.Wait()
	})
	return l.Addr().String()
}
