package server

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// requestRead is a request as net/http takes it.
type requestRead struct {
	method, target, host string
	body                 string
	header               http.Header
	whole                bool // the body came to its end
}

// peer is one connection to a server of net/http: it has been sent data and is
// closed behind it.
type peer struct {
	data     io.Reader
	readings []requestRead
	mu       sync.Mutex
	answer   bytes.Buffer
	ended    chan struct{}
	once     sync.Once
	closed   func()
}

func (p *peer) Read(b []byte) (int, error) { return p.data.Read(b) }
func (p *peer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer.Write(b)
}
func (p *peer) Close() error                   { p.end(); p.closed(); return nil }
func (p *peer) CloseWrite() error              { p.end(); return nil }
func (p *peer) end()                           { p.once.Do(func() { close(p.ended) }) }
func (*peer) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*peer) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*peer) SetDeadline(time.Time) error      { return nil }
func (*peer) SetReadDeadline(time.Time) error  { return nil }
func (*peer) SetWriteDeadline(time.Time) error { return nil }

// standard is a server of net/http that tells what it read.
type standard struct {
	conns chan net.Conn
	open  sync.WaitGroup
}

type peerKey struct{}

func newStandard(tb testing.TB) *standard {
	tb.Helper()
	s := &standard{conns: make(chan net.Conn)}
	server := &http.Server{
		Handler:     http.HandlerFunc(keep),
		ErrorLog:    log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, peerKey{}, c) },

		DisableGeneralOptionsHandler: true,
	}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(s) })
	tb.Cleanup(func() {
		close(s.conns)
		running.Wait()
		s.open.Wait() // it waits a little before it closes a connection with an error
	})
	return s
}

// keep is the handler: it keeps what was read.
func keep(_ http.ResponseWriter, r *http.Request) {
	p := r.Context().Value(peerKey{}).(*peer)
	body, err := io.ReadAll(r.Body)
	p.readings = append(p.readings, requestRead{r.Method, r.RequestURI, r.Host, string(body), r.Header, err == nil})
}

// Accept implements net.Listener.
func (s *standard) Accept() (net.Conn, error) {
	c, ok := <-s.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (*standard) Close() error   { return nil }
func (*standard) Addr() net.Addr { return &net.TCPAddr{} }

// read is what net/http makes of the bytes of one connection, and what it answered.
func (s *standard) read(data []byte) ([]requestRead, string) {
	s.open.Add(1)
	p := &peer{data: bytes.NewReader(data), ended: make(chan struct{}), closed: sync.OnceFunc(s.open.Done)}
	s.conns <- p
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.readings, p.answer.String()
}

// tidy leaves out empty lines before requests, which net/http refuses and RFC 9112
// section 2.2 wants to be passed over.
func tidy(data []byte) (out []byte) {
	rest := bytes.NewReader(data)
	r := bufio.NewReader(rest)
	at := func() int { return len(data) - rest.Len() - r.Buffered() }
	for {
		for next, _ := r.Peek(2); bytes.HasPrefix(next, []byte("\n")) || bytes.Equal(next, []byte("\r\n")); next, _ = r.Peek(2) {
			_, _ = r.ReadString('\n')
		}
		start := at()
		request, err := http.ReadRequest(r)
		if err == nil {
			_, err = io.Copy(io.Discard, request.Body)
		}
		if err != nil {
			return append(out, data[start:]...)
		}
		out = append(out, data[start:at()]...)
	}
}

// backend is a connection to an upstream that keeps what each attempt sent.
type backend struct {
	fake
	sent *[][]byte
	last []byte
}

func (b *backend) Write(p []byte) (int, error) { b.last = append(b.last, p...); return len(p), nil }
func (b *backend) Read(p []byte) (int, error) {
	if len(b.last) == 0 {
		return 0, io.EOF
	}
	*b.sent = append(*b.sent, b.last)
	b.last = nil
	return copy(p, benchOK), nil
}

// talker is a connection that has been sent data, and is closed behind it. It keeps
// what it is answered.
type talker struct {
	fake
	from   io.Reader
	answer bytes.Buffer
}

func (c *talker) Read(p []byte) (int, error)  { return c.from.Read(p) }
func (c *talker) Write(p []byte) (int, error) { return c.answer.Write(p) }

// harness is a gateway whose callers and upstream are in memory. One goroutine does
// it all.
type harness struct {
	*Engine
	sent [][]byte // what each attempt of the present connection sent
}

func newHarness(tb testing.TB) *harness {
	tb.Helper()
	h := &harness{Engine: benchEngine(tb, benchOK)}
	d := &dialer{timeout: time.Second, open: func(context.Context, string, string) (net.Conn, error) {
		return &backend{fake: fake{at: &net.TCPAddr{}}, sent: &h.sent}, nil
	}}
	h.hosts(func(host *fasthttp.HostClient) { host.DialTimeout = d.dial })
	return h
}

func (h *harness) hosts(f func(*fasthttp.HostClient)) {
	for _, r := range h.resolvers {
		for _, endpoint := range r.upstream.Endpoints() {
			f(endpoint.Attached.(*pool).host)
		}
	}
}

// through is what the gateway makes of the bytes of one connection: what it sent to
// its upstream for each request, and what it answered.
func (h *harness) through(from io.Reader) (sent [][]byte, answer string) {
	h.sent = nil
	at := netip.MustParseAddrPort("192.0.2.7:4242")
	c := &talker{fake: fake{at: net.TCPAddrFromAddrPort(at)}, from: from}
	in := &inbound{Conn: c}
	in.caller.Set(at.Addr(), false)
	_ = h.http.ServeConn(in)
	h.hosts((*fasthttp.HostClient).CloseIdleConnections)
	return h.sent, c.answer.String()
}

// pieces hands data out a few bytes at a time.
type pieces struct{ data []byte }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+len(p.data)%7)], p.data)
	p.data = p.data[n:]
	return n, nil
}

// made are the fields that the gateway writes itself, and Content-Length, whose place
// another framing may have had.
var made = []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Request-Id", "Content-Length"}

// ends are the fields that end at the gateway.
var ends = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Upgrade", "Http2-Settings", "Expect", "Trailer", "Transfer-Encoding",
}

// compare says how a request as it was sent differs from the same as it came in.
func compare(in, out requestRead) string {
	target := in.target
	if _, rest, found := strings.Cut(target, "://"); found && target[0] != '/' {
		target = rest[max(0, strings.IndexByte(rest, '/')):]
	}
	switch {
	case in.method != out.method:
		return "method"
	case target != out.target:
		return "target"
	case !strings.EqualFold(in.host, out.host):
		return "host"
	case in.body != out.body || !out.whole:
		return "body"
	case in.method == "PRI":
		return "preface of another protocol"
	}
	gone := map[string]bool{}
	for _, name := range []string{"Content-Type", "User-Agent"} { // one that says nothing is not kept
		gone[name] = in.header.Get(name) == ""
	}
	for _, name := range ends {
		gone[name] = true
	}
	for _, value := range in.header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			gone[http.CanonicalHeaderKey(strings.Trim(name, " \t"))] = true
		}
	}
	for name, values := range in.header {
		if !gone[name] && !slices.Contains(made, name) && !slices.Equal(values, out.header[name]) {
			return name
		}
	}
	for name := range out.header {
		if in.header[name] == nil && !slices.Contains(made, name) {
			return name + ", which nobody sent,"
		}
	}
	return ""
}

var seeds = []string{
	benchGet + benchPost + benchGet,
	"POST /a?b=%20 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n2;x=\"y\"\r\nab\r\n0\r\nX-A: 1\r\n\r\n" + benchGet,
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0 \r\nX-A: 1\n\n" + benchGet,
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + benchGet,
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 05\r\nContent-Type: a\r\nContent-Type: b\r\n\r\nhello" + benchGet,
	"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nUser-Agent: a\r\nUser-Agent: b\r\n\r\nhi" + benchGet,
	"HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi" + benchGet,
	"GET http://h:80/a?b HTTP/1.1\r\nHost: h:80\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n" + benchGet,
	"GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n" + benchGet,
	"\r\nGET /a HTTP/1.1\nHost: h\r\nX-A:\r\nX-B: \x80\t\xff\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi" + benchGet,
	"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: \x01\r\n\r\n",
	"GET /\xff?\x80 HTTP/1.1\r\nHost: h\r\nReferer: a\r\nReferer: b\r\nConnection: x-a, close\r\nX-A: 1\r\n\r\n",
}

// FuzzFraming holds the gateway's reading of a connection against that of net/http,
// which is independent of it. No request may be read in two ways and be forwarded;
// what is sent on must be read by net/http, as what came in was read; and how the
// bytes were cut into packets must not matter.
func FuzzFraming(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	h, s := newHarness(f), newStandard(f)
	f.Fuzz(func(t *testing.T, data []byte) { sameReading(t, h, s, data) })
}

// TestFraming_Mixtures puts connections together from pieces that parsers differ
// about, which a fuzzer without a grammar would take long to find.
func TestFraming_Mixtures(t *testing.T) {
	h, s := newHarness(t), newStandard(t)
	random := rand.New(rand.NewPCG(1, 2)) // always the same, so a failure stays
	for range 4000 {
		sameReading(t, h, s, mixture(random))
	}
}

// The pieces of a mixture.
var (
	starts = []string{
		"GET / HTTP/1.1", "POST /a?b HTTP/1.1", "POST / HTTP/1.0", "HEAD / HTTP/1.1", "PUT http://h/x HTTP/1.1", "OPTIONS * HTTP/1.1",
		"DELETE /x HTTP/1.1", "POST  / HTTP/1.1", "post / HTTP/1.1", "GET / HTTP/1.2", "POST h HTTP/1.1", "CONNECT h:1 HTTP/1.1",
	}
	lines = []string{
		"Content-Length: 5", "Content-Length: 0", "Content-Length:5", "content-length: 05", "Content-Length: 5, 5", "Content-Length: +5",
		"Content-Length : 5", "Content_Length: 5", "Content-Length: 5\n", "Content-Length:\r\n 5", "Content-Length: 5 ;", "X: \x00",
		"Transfer-Encoding: chunked", "Transfer-Encoding:chunked", "Transfer-Encoding: Chunked", "Transfer-Encoding: chunked, chunked",
		"Transfer-Encoding: identity", "Transfer-Encoding : chunked", "Transfer-Encoding:\r\n\tchunked", "Transfer-Encoding: \x0bchunked",
		"Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked;a=b", "Transfer\xffEncoding: chunked", "X-A: 1\r\n b", " X: 1",
		"Connection: close", "Connection: keep-alive", "Connection: content-length", "Connection: transfer-encoding, host", "Connection: upgrade",
		"Upgrade: h2c", "Expect: 100-continue", "Trailer: X-T", "Host: i", "Host: h@i", "X-A: \xff\t", "X-A:", "X-A", ":", "X-A: 1\rX-B: 2",
		"Cookie: a", "Cookie: b", "Content-Type: a", "Content-Type: b", "User-Agent: a", "TE: trailers", "X-Forwarded-For: 1.1.1.1",
	}
	bodies = []string{
		"", "hello", "hell", "hello!", "5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0\r\nX-T: 1\r\n\r\n", "05\r\nhello\r\n00\r\n\r\n",
		"5 \r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", "0x5\r\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "0\r\n\r\n", "0\r\nX: 1\n\n", "0\r\n X: 1\r\n\r\n",
		"0\r\nContent-Length: 5\r\n\r\nhello", "5\r\nhello\r\n0;\n\r\n\r\n", "ffffffffffffffff1\r\nhello\r\n0\r\n\r\n", "\r\n", "5\r\nhello\r\n",
	}
	lineEnds = []string{"\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r\r\n", "\r"}
)

func mixture(random *rand.Rand) (data []byte) {
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	for range 1 + random.IntN(3) {
		data = append(data, pick(starts)+pick(lineEnds)+"Host: h"+pick(lineEnds)...)
		for range random.IntN(4) {
			data = append(data, pick(lines)+pick(lineEnds)...)
		}
		data = append(data, pick(lineEnds)+pick(bodies)...)
	}
	return append(data, benchGet...)
}

// sameReading fails the test when the two readings of data differ.
func sameReading(t *testing.T, h *harness, s *standard, data []byte) {
	t.Helper()
	sent, answer := h.through(bytes.NewReader(data))
	if cut, _ := h.through(&pieces{data}); len(cut) != len(sent) {
		t.Fatalf("%d requests were forwarded, %d when they came in pieces\n%q", len(sent), len(cut), data)
	}
	if len(sent) == 0 {
		return
	}
	in, refusal := s.read(tidy(data))
	out, refused := s.read(slices.Concat(sent...))
	if len(out) != len(sent) {
		t.Fatalf("%d requests were sent, net/http reads %d of them\nsent %q\nanswer %q\nfrom %q", len(sent), len(out), sent, refused, data)
	}
	for i, request := range out {
		if i == len(in) && strings.Contains(refusal, " 417 ") {
			return // an expectation that it does not know, which a server may pass over
		}
		if i < len(in) && !in[i].whole {
			return // a trailer section that is not clean; the gateway drops all of them
		}
		if i >= len(in) {
			t.Fatalf("request %d was forwarded, net/http refuses it\n%q\nanswer %q\nsent %q", i, data, refusal, sent[i])
		}
		if what := compare(in[i], request); what != "" {
			t.Fatalf("request %d: %s differs\ncame %+v\nsent %+v\n%q", i, what, in[i], request, data)
		}
	}
	if len(in) > len(out) && !strings.Contains(answer, "\r\nConnection: close\r\n") {
		t.Fatalf("net/http reads %d requests, %d were forwarded and the connection was not closed\n%q\nanswer %q", len(in), len(out), data, answer)
	}
}
