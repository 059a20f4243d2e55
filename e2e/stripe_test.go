package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What both Stripe SDKs are put through: a real fake of the payment API as the
// upstream (stripe-mock), and scripted answers where stripe-mock, which keeps no
// state and never fails, has none.

// startStripe runs stripe-mock and a gateway in front of it.
func startStripe(t *testing.T) *gateway {
	t.Helper()
	mock, unused := freeAddr(t), freeAddr(t)
	p := start(t, must(t, stripeMockBinary), "-http-addr", mock, "-https-addr", unused)
	p.waitListening(t, mock)
	return startGateway(t, oneUpstream("http://"+mock))
}

// stripeScript answers as the API does where that takes state or failure.
type stripeScript struct{ failures int }

const (
	cardDeclined = `{"error":{"code":"card_declined","decline_code":"insufficient_funds","message":"Your card has insufficient funds.","type":"card_error"}}`
	noSuchCharge = `{"error":{"code":"resource_missing","message":"No such charge: 'ch_missing'","param":"id","type":"invalid_request_error"}}`
	unavailable  = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\ntry again" // not in Stripe's shape: only such a 503 makes stripe-go try again
	uploadedFile = `{"id":"file_1","object":"file","purpose":"dispute_evidence"}`
	oneIntent    = `{"id":"pi_1","object":"payment_intent","amount":1250,"currency":"eur"}`
)

// answer: the first `failures` posts of a payment intent are 503, three pages of
// charges, one declined card, one charge that does not exist.
func (s stripeScript) answer(n int, r wireRequest) string {
	target := strings.Fields(r.line)[1]
	path, query, _ := strings.Cut(target, "?")
	switch {
	case path == "/v1/payment_intents" && n <= s.failures:
		return unavailable
	case path == "/v1/payment_intents":
		return jsonAnswer(200, "Request-Id: req_77\r\nIdempotent-Replayed: true\r\n", oneIntent)
	case path == "/v1/charges" && r.method() == "GET":
		return jsonAnswer(200, "", chargePage(query))
	case path == "/v1/charges":
		return jsonAnswer(402, "Stripe-Should-Retry: false\r\nRequest-Id: req_402\r\n", cardDeclined)
	case path == "/v1/charges/ch_missing":
		return jsonAnswer(404, "Request-Id: req_404\r\n", noSuchCharge)
	case path == "/v1/files":
		return jsonAnswer(200, "", uploadedFile)
	}
	return jsonAnswer(500, "", `{"error":{"message":"not in the script"}}`)
}

// chargePage is one of three pages of two charges, ch_1 to ch_6.
func chargePage(query string) string {
	last := 0
	for pair := range strings.SplitSeq(query, "&") {
		if id, found := strings.CutPrefix(pair, "starting_after=ch_"); found {
			_, _ = fmt.Sscan(id, &last)
		}
	}
	return fmt.Sprintf(`{"object":"list","url":"/v1/charges","has_more":%t,"data":[{"id":"ch_%d","object":"charge"},{"id":"ch_%d","object":"charge"}]}`,
		last+2 < 6, last+1, last+2)
}

// wantUntouched checks that the backend got what the SDK sent: the same requests
// in the same order, each once, every end-to-end header line and every byte of the body.
func wantUntouched(t *testing.T, sent, got []wireRequest) {
	t.Helper()
	if len(got) != len(sent) {
		t.Fatalf("the SDK sent %d requests, the backend got %d:\nsent %v\ngot %v", len(sent), len(got), sent, got)
	}
	for i, want := range sent {
		if got[i].line != want.line {
			t.Errorf("request %d: line %q, sent as %q", i, got[i].line, want.line)
		}
		if string(got[i].body) != string(want.body) {
			t.Errorf("request %d: body differs\ngot  %q\nsent %q", i, got[i].body, want.body)
		}
		for _, h := range want.header {
			if hopByHop(h[0]) {
				continue
			}
			if values := got[i].values(h[0]); !slices.Equal(values, want.values(h[0])) {
				t.Errorf("request %d: %s is %q, sent as %q", i, h[0], values, want.values(h[0]))
			}
		}
	}
}

// hopByHop headers belong to one connection; they and the framing may differ.
func hopByHop(name string) bool {
	switch strings.ToLower(name) {
	case "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect", "content-length":
		return true
	}
	return false
}

// wantSDKHeaders checks that the headers Stripe's API lives by are among them at all.
func wantSDKHeaders(t *testing.T, requests []wireRequest) {
	t.Helper()
	for i, r := range requests {
		for _, name := range []string{"Authorization", "Stripe-Version", "X-Stripe-Client-User-Agent", "User-Agent"} {
			if len(r.values(name)) != 1 {
				t.Errorf("request %d has %d lines of %s, want 1:\n%v", i, len(r.values(name)), name, r)
			}
		}
		if r.method() == "POST" && len(r.values("Idempotency-Key")) != 1 {
			t.Errorf("request %d is a POST with %d lines of Idempotency-Key, want 1:\n%v", i, len(r.values("Idempotency-Key")), r)
		}
	}
}

// wantRetried checks that the first three requests are one write sent three
// times by the SDK: the same key and body each time.
func wantRetried(t *testing.T, got []wireRequest) {
	t.Helper()
	if len(got) < 3 {
		t.Fatalf("%d requests, want three tries of one write first", len(got))
	}
	for i, r := range got[1:3] {
		if r.value("Idempotency-Key") != got[0].value("Idempotency-Key") || string(r.body) != string(got[0].body) {
			t.Errorf("try %d is not the first one again:\n%v\n%s\nfirst\n%v\n%s", i+2, r, r.body, got[0], got[0].body)
		}
	}
}
