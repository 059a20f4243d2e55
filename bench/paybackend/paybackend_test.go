package paybackend_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/bench/paybackend"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Ticks the Date header for as long as the process lives.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	)
}

// running is a backend that serves on a real socket until the test ends.
type running struct {
	t    *testing.T
	addr string
	stop context.CancelFunc
	end  chan error // what Serve returned
	http *http.Client
}

func start(t *testing.T, cfg paybackend.Config) *running {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{
		t: t, addr: ln.Addr().String(), stop: cancel, end: make(chan error, 1),
		http: &http.Client{Transport: &http.Transport{}},
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.end <- paybackend.New(cfg).Serve(ctx, ln)
	}()
	t.Cleanup(func() {
		r.http.CloseIdleConnections()
		cancel()
		<-ended
	})
	return r
}

// answer is what came back, with its JSON decoded.
type answer struct {
	status int
	header http.Header
	raw    string
	json   map[string]any
}

// code returns the code of an error answer, or "".
func (a answer) code() string {
	f, _ := a.json["error"].(map[string]any)
	code, _ := f["code"].(string)
	return code
}

func (r *running) do(method, path, contentType, body string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: reading the body: %v", method, path, err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &a.json); err != nil {
			r.t.Fatalf("%s %s: answer %q is not JSON: %v", method, path, raw, err)
		}
	}
	return a
}

func (r *running) get(path string) answer { r.t.Helper(); return r.do("GET", path, "", "") }

func (r *running) post(path, body string) answer {
	r.t.Helper()
	return r.do("POST", path, "application/json", body)
}

const goodCharge = `{"amount":1250,"currency":"eur","source":"tok_visa","description":"two coffees"}`

func TestCharge_IsMadeAndShown(t *testing.T) {
	r := start(t, paybackend.DefaultConfig())
	for _, send := range []struct{ name, contentType, body string }{
		{"json", "application/json; charset=utf-8", goodCharge},
		{"form", "application/x-www-form-urlencoded", "amount=1250&currency=eur&source=tok_visa&description=two+coffees"},
	} {
		made := r.do("POST", "/v1/charges", send.contentType, send.body)
		if made.status != 201 {
			t.Fatalf("%s: status %d, want 201; body %s", send.name, made.status, made.raw)
		}
		want := map[string]any{"object": "charge", "amount": 1250.0, "currency": "eur", "source": "tok_visa",
			"description": "two coffees", "status": "succeeded", "amount_refunded": 0.0}
		for key, value := range want {
			if made.json[key] != value {
				t.Errorf("%s: %s is %v, want %v", send.name, key, made.json[key], value)
			}
		}
		shown := r.get(fmt.Sprint("/v1/charges/", made.json["id"]))
		if shown.status != 200 || shown.raw != made.raw {
			t.Errorf("%s: shown as %d %s, made as %s", send.name, shown.status, shown.raw, made.raw)
		}
	}
}

func TestInput_IsValidated(t *testing.T) {
	r := start(t, paybackend.DefaultConfig())
	const form = "application/x-www-form-urlencoded"
	cases := []struct {
		name, method, path, contentType, body string
		status                                int
		code                                  string
	}{
		{"no amount", "POST", "/v1/charges", "application/json", `{"currency":"eur"}`, 400, "amount_invalid"},
		{"negative amount", "POST", "/v1/charges", "application/json", `{"amount":-1,"currency":"eur"}`, 400, "amount_invalid"},
		{"amount too large", "POST", "/v1/charges", "application/json", `{"amount":100000000,"currency":"eur"}`, 400, "amount_invalid"},
		{"amount not a number", "POST", "/v1/charges", form, "amount=ten&currency=eur", 400, "amount_invalid"},
		{"amount of another type", "POST", "/v1/charges", "application/json", `{"amount":"1250","currency":"eur"}`, 400, "json_invalid"},
		{"no currency", "POST", "/v1/charges", form, "amount=1", 400, "currency_invalid"},
		{"currency in capitals", "POST", "/v1/charges", form, "amount=1&currency=EUR", 400, "currency_invalid"},
		{"source too long", "POST", "/v1/charges", form, "amount=1&currency=eur&source=" + strings.Repeat("s", 65), 400, "value_too_long"},
		{"description too long", "POST", "/v1/charges", form, "amount=1&currency=eur&description=" + strings.Repeat("d", 601), 400, "value_too_long"},
		{"half a document", "POST", "/v1/charges", "application/json", `{"amount":1,`, 400, "json_invalid"},
		{"two documents", "POST", "/v1/charges", "application/json", goodCharge + goodCharge, 400, "json_invalid"},
		{"no body", "POST", "/v1/charges", "application/json", "", 400, "json_invalid"},
		{"body too large", "POST", "/v1/charges", "application/json", strings.Repeat(" ", 64<<10+1), 413, "request_invalid"},
		{"another media type", "POST", "/v1/charges", "text/plain", goodCharge, 415, "content_type_unknown"},
		{"declined", "POST", "/v1/charges", form, "amount=1&currency=eur&source=tok_declined", 402, "card_declined"},
		{"unknown charge", "GET", "/v1/charges/ch_000000000099", "", "", 404, "no_such_charge"},
		{"not an id", "GET", "/v1/charges/ch_-1", "", "", 404, "no_such_charge"},
		{"id written otherwise", "GET", "/v1/charges/ch_0", "", "", 404, "no_such_charge"},
		{"refund of nothing", "POST", "/v1/refunds", "application/json", `{}`, 400, "no_such_charge"},
		{"negative refund", "POST", "/v1/refunds", form, "charge=ch_000000000001&amount=-5", 400, "amount_invalid"},
		{"limit of nothing", "GET", "/v1/charges?limit=", "", "", 400, "limit_invalid"},
		{"limit too large", "GET", "/v1/charges?limit=101", "", "", 400, "limit_invalid"},
		{"slow without a time", "GET", "/slow", "", "", 400, "ms_invalid"},
		{"slow for too long", "GET", "/slow?ms=60001", "", "", 400, "ms_invalid"},
		{"status out of range", "GET", "/status/600", "", "", 400, "code_invalid"},
		{"unknown path", "GET", "/v2/charges", "", "", 404, "no_such_path"},
		{"slash at the end", "GET", "/v1/charges/", "", "", 404, "no_such_path"},
		{"unknown method", "DELETE", "/v1/charges", "", "", 405, "method_not_allowed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := *r
			r.t = t
			got := r.do(c.method, c.path, c.contentType, c.body)
			if got.status != c.status || got.code() != c.code {
				t.Errorf("%s %s %q: got %d %q, want %d %q", c.method, c.path, c.body, got.status, got.code(), c.status, c.code)
			}
		})
	}
	if total := r.get("/v1/charges").json["total_count"]; total != 0.0 {
		t.Errorf("%v charges were made of refused input", total)
	}
}

func TestRefund_GivesBackNoMoreThanWasCharged(t *testing.T) {
	r := start(t, paybackend.DefaultConfig())
	id := r.post("/v1/charges", goodCharge).json["id"].(string)
	refund := func(amount string) answer {
		if amount != "" {
			amount = `,"amount":` + amount
		}
		return r.post("/v1/refunds", `{"charge":"`+id+`"`+amount+`}`)
	}
	if got := refund("1000"); got.status != 201 || got.json["amount"] != 1000.0 || got.json["charge"] != id {
		t.Fatalf("part: got %d %s", got.status, got.raw)
	}
	if got := refund("251"); got.code() != "amount_too_large" {
		t.Fatalf("more than is left: got %d %s", got.status, got.raw)
	}
	if got := refund(""); got.status != 201 || got.json["amount"] != 250.0 {
		t.Fatalf("the rest: got %d %s, want 250", got.status, got.raw)
	}
	if got := refund(""); got.code() != "amount_too_large" {
		t.Fatalf("nothing left: got %d %s", got.status, got.raw)
	}
	if got := r.get("/v1/charges/" + id).json["amount_refunded"]; got != 1250.0 {
		t.Fatalf("the charge shows %v refunded, want 1250", got)
	}
}

func TestLedger_ForgetsTheOldest(t *testing.T) {
	r := start(t, paybackend.Config{Keep: 3})
	var ids []string
	for range 5 {
		ids = append(ids, r.post("/v1/charges", goodCharge).json["id"].(string))
	}
	for i, id := range ids {
		want := 404
		if i >= 2 {
			want = 200
		}
		if got := r.get("/v1/charges/" + id).status; got != want {
			t.Errorf("charge %d of 5: status %d, want %d", i+1, got, want)
		}
	}
	list := r.get("/v1/charges?limit=100")
	var shown []string
	for _, c := range list.json["data"].([]any) {
		shown = append(shown, c.(map[string]any)["id"].(string))
	}
	if want := []string{ids[4], ids[3], ids[2]}; fmt.Sprint(shown) != fmt.Sprint(want) || list.json["total_count"] != 5.0 {
		t.Errorf("listed %v of %v, want %v of 5", shown, list.json["total_count"], want)
	}
	if two := r.get("/v1/charges?limit=2").json["data"].([]any); len(two) != 2 {
		t.Errorf("limit 2 listed %d", len(two))
	}
}

func TestFailures_AreAsAsked(t *testing.T) {
	r := start(t, paybackend.DefaultConfig())
	for _, status := range []int{200, 204, 302, 304, 404, 429, 500, 503, 599} {
		r.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		if got := r.do("POST", fmt.Sprint("/status/", status), "", "").status; got != status {
			t.Errorf("/status/%d answered %d", status, got)
		}
	}
	if got := r.get("/slow?ms=5"); got.status != 200 || got.json["waited_ms"] != 5.0 {
		t.Errorf("/slow: got %d %s", got.status, got.raw)
	}
	if got := r.get("/healthz"); got.status != 200 {
		t.Errorf("/healthz: got %d", got.status)
	}
	if got := r.do("HEAD", "/v1/charges", "", ""); got.status != 200 || got.raw != "" || got.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: got %d %q %v", got.status, got.raw, got.header)
	}
}

func TestServe_EndLetsWaitingRequestsGo(t *testing.T) {
	r := start(t, paybackend.Config{ServiceTime: time.Hour})
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// "Expect" makes the arrival of the request visible: the backend says
	// "continue" once it has read the head, and then gets the body.
	fmt.Fprintf(conn, "POST /v1/charges HTTP/1.1\r\nHost: b\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(goodCharge))
	in := bufio.NewReader(conn)
	interim, err := http.ReadResponse(in, nil)
	if err != nil || interim.StatusCode != http.StatusContinue {
		t.Fatalf("got %v, %v; want 100", interim, err)
	}
	fmt.Fprint(conn, goodCharge)
	r.stop()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("a request in service got %d, want 503", resp.StatusCode)
	}
	if err := <-r.end; err != nil {
		t.Errorf("Serve returned %v", err)
	}
}

func TestServe_SaysWhyItCannotAccept(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := paybackend.New(paybackend.DefaultConfig()).Serve(t.Context(), brokenListener{ln}); err == nil ||
		!strings.Contains(err.Error(), "out of descriptors") {
		t.Errorf("got %v", err)
	}
}

type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) { return nil, fmt.Errorf("out of descriptors") }
