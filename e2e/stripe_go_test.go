package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v82"
)

// newStripeGo is the SDK with its own connections and its own retries.
func newStripeGo(t *testing.T, addr string, retries int64) *stripe.Client {
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL:               stripe.String("http://" + addr),
		HTTPClient:        newCaller(t),
		MaxNetworkRetries: stripe.Int64(retries),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return stripe.NewClient("sk_test_123", stripe.WithBackends(backends))
}

func TestStripeGo_PaymentsReachStripeMock(t *testing.T) {
	g := startStripe(t)
	sdk := newStripeGo(t, g.addr, 0)
	ctx := t.Context()

	intent, err := sdk.V1PaymentIntents.Create(ctx, &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(1250), Currency: stripe.String("eur"),
	})
	if err != nil || intent.ID == "" || intent.Amount != 1250 {
		t.Fatalf("payment intent: %+v, %v", intent, err)
	}
	card := &stripe.ChargeCreateParams{Amount: stripe.Int64(900), Currency: stripe.String("usd")}
	if err := card.SetSource("tok_visa"); err != nil {
		t.Fatal(err)
	}
	charge, err := sdk.V1Charges.Create(ctx, card)
	if err != nil || charge.ID == "" {
		t.Fatalf("charge: %+v, %v", charge, err)
	}
	refund, err := sdk.V1Refunds.Create(ctx, &stripe.RefundCreateParams{Charge: stripe.String(charge.ID)})
	if err != nil || refund.ID == "" {
		t.Fatalf("refund: %+v, %v", refund, err)
	}
	listed := 0
	for customer, err := range sdk.V1Customers.List(ctx, &stripe.CustomerListParams{}) {
		if err != nil || customer.ID == "" {
			t.Fatalf("customers: %+v, %v", customer, err)
		}
		listed++
	}
	if listed == 0 {
		t.Error("no customer listed")
	}
	deleted, err := sdk.V1Customers.Delete(ctx, "cus_1", nil)
	if err != nil || !deleted.Deleted {
		t.Fatalf("delete: %+v, %v", deleted, err)
	}
	file, err := sdk.V1Files.Create(ctx, fileUpload(64<<10))
	if err != nil || file.ID == "" {
		t.Fatalf("file: %+v, %v", file, err)
	}
}

func fileUpload(size int) *stripe.FileCreateParams {
	return &stripe.FileCreateParams{
		FileReader: bytes.NewReader(binaryBytes(size)),
		Filename:   stripe.String("evidence.png"),
		Purpose:    stripe.String("dispute_evidence"),
	}
}

// binaryBytes holds every byte value, line ends and zeros among them.
func binaryBytes(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

// stripe-mock validates parameters: its own error must arrive as it made it.
func TestStripeGo_BackendErrorsKeepTheirShape(t *testing.T) {
	g := startStripe(t)
	_, err := newStripeGo(t, g.addr, 0).V1PaymentIntents.Create(t.Context(), &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(5), // no currency
	})
	wantStripeError(t, err, http.StatusBadRequest, "", "currency")

	s := startStub(t, stripeScript{}.answer)
	scripted := newStripeGo(t, startGateway(t, oneUpstream(s.url())).addr, 0)
	_, err = scripted.V1Charges.Create(t.Context(), &stripe.ChargeCreateParams{Amount: stripe.Int64(5)})
	e := wantStripeError(t, err, http.StatusPaymentRequired, stripe.ErrorCodeCardDeclined, "insufficient funds")
	if e.DeclineCode != stripe.DeclineCodeInsufficientFunds || e.RequestID != "req_402" {
		t.Errorf("declined: %+v", e)
	}
	_, err = scripted.V1Charges.Retrieve(t.Context(), "ch_missing", nil)
	wantStripeError(t, err, http.StatusNotFound, stripe.ErrorCodeResourceMissing, "No such charge")
}

func wantStripeError(t *testing.T, err error, status int, code stripe.ErrorCode, message string) *stripe.Error {
	t.Helper()
	var e *stripe.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want Stripe's own error", err, err)
	}
	if e.HTTPStatusCode != status || e.Code != code || !strings.Contains(e.Msg, message) {
		t.Errorf("got %+v, want %d %q %q", e, status, code, message)
	}
	return e
}

func TestStripeGo_WhatItSendsArrivesUntouched(t *testing.T) {
	s := startStub(t, stripeScript{failures: 2}.answer)
	g := startGateway(t, oneUpstream(s.url()))
	p := startTap(t, g.addr)
	sdk := newStripeGo(t, p.addr, 2)
	ctx := t.Context()

	create := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(1250), Currency: stripe.String("eur")}
	create.SetIdempotencyKey("order-7/attempt #1")
	create.AddMetadata("note", "ünïcode & = + %")
	intent, err := sdk.V1PaymentIntents.Create(ctx, create)
	if err != nil || intent.ID != "pi_1" {
		t.Fatalf("payment intent after two 503: %+v, %v", intent, err)
	}
	if intent.LastResponse.RequestID != "req_77" || intent.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the answer's headers: %v", intent.LastResponse.Header)
	}
	var ids []string
	for charge, err := range sdk.V1Charges.List(ctx, &stripe.ChargeListParams{ListParams: stripe.ListParams{Limit: stripe.Int64(2)}}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, charge.ID)
	}
	if got := strings.Join(ids, " "); got != "ch_1 ch_2 ch_3 ch_4 ch_5 ch_6" {
		t.Errorf("three pages gave %q", got)
	}
	if _, err := sdk.V1Files.Create(ctx, fileUpload(300<<10)); err != nil {
		t.Error(err)
	}

	got := s.requests()
	if len(got) != 3+3+1 {
		t.Errorf("the backend got %d requests, want 3 tries, 3 pages, 1 file", len(got))
	}
	wantUntouched(t, p.requests(t), got)
	wantRetried(t, got)
	wantSDKHeaders(t, got)
	if key := got[0].value("Idempotency-Key"); key != "order-7/attempt #1" {
		t.Errorf("Idempotency-Key %q", key)
	}
}
