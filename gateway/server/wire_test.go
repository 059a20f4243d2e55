package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "sluice/internal/gatewaytest"
)

// step is one section of a file in testdata/wire: who does what, and the bytes. The
// file's README has the format.
type step struct {
	kind string
	args []string
	text string
}

// TestWire walks testdata/wire.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			steps, err := readSteps(file)
			if err != nil {
				t.Fatal(err)
			}
			(&wire{t: t, steps: steps}).run()
		})
	}
}

func readSteps(file string) (steps []step, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if head, ok := strings.CutPrefix(line, "-- "); ok {
			words := strings.Fields(head)
			steps = append(steps, step{kind: words[0], args: words[1:]})
			continue
		}
		if len(steps) == 0 {
			continue // what is said before the first section
		}
		line, open := strings.CutSuffix(line, `\`)
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(line, `"`, `\"`) + `"`)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
		}
		if !open {
			text += "\r\n"
		}
		steps[len(steps)-1].text += text
	}
	return steps, nil
}

// wire runs one case.
type wire struct {
	t      *testing.T
	steps  []step
	conn   net.Conn
	r      *bufio.Reader
	method string // of the caller's last request
}

func (w *wire) run() {
	u := NewUpstream(w.t, w.acts()...)
	cfg := Config(u.URL)
	cfg.Server.TrustedProxies = nil
	g := Start(w.t, cfg)
	w.conn = g.Dial(w.t)
	w.r = bufio.NewReader(w.conn)
	var want []string
	closed := false
	for _, s := range w.steps {
		switch s.kind {
		case "caller":
			w.method, _, _ = strings.Cut(s.text, " ")
			if _, err := io.WriteString(w.conn, s.text); err != nil {
				w.t.Fatal(err)
			}
		case "answer":
			w.answer(s)
		case "closed":
			closed = true
			w.end()
		case "seen":
			want = append(want, s.text)
		case "backend":
		default:
			w.t.Fatalf("no such section: %s", s.kind)
		}
	}
	if !closed {
		// What is left over on either side would show here.
		w.method = "GET"
		_, _ = io.WriteString(w.conn, "GET /in-step HTTP/1.1\r\nHost: h\r\n\r\n")
		w.answer(step{args: []string{"200"}, text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"})
		want = append(want, "GET /in-step HTTP/1.1\r\nHost: h\r\n\r\n")
	}
	w.seen(want, u.Seen())
}

// acts is the backend's part; when it is over, it answers ok.
func (w *wire) acts() (acts []Act) {
	for _, s := range w.steps {
		if s.kind != "backend" {
			continue
		}
		act := Say(s.text)
		if slices.Contains(s.args, "closes") {
			act = Then(act, Close)
		}
		acts = append(acts, act)
	}
	return append(acts, Say(OK))
}

// answer reads one answer: its status has to be one of those given, and with a text
// it has to be that.
func (w *wire) answer(s step) {
	w.t.Helper()
	if s.text == "" {
		response, err := http.ReadResponse(w.r, &http.Request{Method: w.method})
		if err != nil {
			w.t.Fatalf("no answer: %v", err)
		}
		body, err := io.ReadAll(response.Body)
		if slices.Contains(s.args, "cut") && err != nil {
			return
		}
		if err != nil || !slices.Contains(s.args, strconv.Itoa(response.StatusCode)) {
			w.t.Fatalf("got %d %q, %v; want %v", response.StatusCode, body, err, s.args)
		}
		return
	}
	head, wantBody, _ := strings.Cut(s.text, "\r\n\r\n")
	got, err := readHead(w.r)
	if err != nil {
		w.t.Fatalf("no answer: %v, after %q", err, got)
	}
	body := make([]byte, len(wantBody))
	n, err := io.ReadFull(w.r, body)
	got, head = sorted(got, "x-request-id"), sorted(head)
	if got != head || string(body) != wantBody {
		w.t.Fatalf("got\n%s\n%q (%d bytes, %v)\nwant\n%s\n%q", got, body[:n], n, err, head, wantBody)
	}
}

// end checks that the gateway closes the connection, and says nothing more.
func (w *wire) end() {
	w.t.Helper()
	_ = w.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if rest, err := io.ReadAll(w.r); err != nil || len(rest) > 0 {
		w.t.Fatalf("%q follows, %v; want the connection closed", rest, err)
	}
}

// seen compares what the backend saw with what it should have seen.
func (w *wire) seen(want []string, got []Seen) {
	w.t.Helper()
	for i := range max(len(want), len(got)) {
		var is, should string
		if i < len(got) {
			is = sorted(got[i].Head, "x-request-id", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "via") + "\n\n" + got[i].Body
		}
		if i < len(want) {
			head, body, _ := strings.Cut(want[i], "\r\n\r\n")
			should = sorted(head) + "\n\n" + body
		}
		if is != should {
			w.t.Errorf("request %d: the backend saw\n%s\nwant\n%s", i, is, should)
		}
	}
}

func readHead(r *bufio.Reader) (string, error) {
	var head bytes.Buffer
	for {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String(), err
		}
	}
}

// sorted is a head with its fields in the order of their names, those of one name in
// the order in which they came, without some that are different each time.
func sorted(head string, without ...string) string {
	lines := strings.Split(strings.TrimRight(head, "\r\n"), "\r\n")
	name := func(line string) string {
		n, _, _ := strings.Cut(line, ":")
		return strings.ToLower(n)
	}
	fields := slices.DeleteFunc(lines[1:], func(line string) bool { return slices.Contains(without, name(line)) })
	slices.SortStableFunc(fields, func(a, b string) int { return strings.Compare(name(a), name(b)) })
	return strings.Join(append([]string{lines[0]}, fields...), "\n")
}
