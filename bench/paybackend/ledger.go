package paybackend

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// charge is one charge as it is remembered and shown.
type charge struct {
	ID             string `json:"id"`
	Object         string `json:"object"` // always "charge"
	Amount         int64  `json:"amount"` // in the currency's smallest unit
	AmountRefunded int64  `json:"amount_refunded"`
	Currency       string `json:"currency"`
	Source         string `json:"source,omitempty"`
	Description    string `json:"description,omitempty"`
	Status         string `json:"status"`
	Created        int64  `json:"created"` // seconds since 1970
}

// refund is one refund as it is shown; only its sum is remembered, in the
// charge.
type refund struct {
	ID       string `json:"id"`
	Object   string `json:"object"` // always "refund"
	Charge   string `json:"charge"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Status   string `json:"status"`
	Created  int64  `json:"created"`
}

// ledger remembers the last charges in a ring. A charge's id holds its number,
// and its number says where it is, so nothing else has to be kept.
type ledger struct {
	mu      sync.Mutex
	ring    []charge
	charges uint64 // made so far; the newest has this number
	refunds uint64
}

const (
	chargePrefix = "ch_"
	refundPrefix = "re_"
)

func newLedger(keep int) *ledger {
	return &ledger{ring: make([]charge, keep)}
}

// add makes a charge of what in asks for.
func (l *ledger) add(in chargeInput, now time.Time) charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charges++
	c := charge{
		ID:          identifier(chargePrefix, l.charges),
		Object:      "charge",
		Amount:      in.Amount,
		Currency:    in.Currency,
		Source:      in.Source,
		Description: in.Description,
		Status:      "succeeded",
		Created:     now.Unix(),
	}
	*l.slot(l.charges) = c
	return c
}

// find returns the charge with this id, unless it never was or is forgotten.
func (l *ledger) find(id string) (charge, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.remembered(id)
	if c == nil {
		return charge{}, false
	}
	return *c, true
}

// latest returns up to n charges, newest first, and how many were ever made.
func (l *ledger) latest(n int) (list []charge, total uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = int(min(uint64(n), l.charges, uint64(len(l.ring))))
	list = make([]charge, 0, n)
	for i := range n {
		list = append(list, *l.slot(l.charges - uint64(i)))
	}
	return list, l.charges
}

// giveBack refunds amount of the charge, or all that is left of it where
// amount is nil.
func (l *ledger) giveBack(in refundInput, now time.Time) (refund, *fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.remembered(in.Charge)
	if c == nil {
		return refund{}, &fault{Code: "no_such_charge", Param: "charge",
			Message: fmt.Sprintf("charge %q is not known", in.Charge)}
	}
	left := c.Amount - c.AmountRefunded
	amount := left
	if in.Amount != nil {
		amount = *in.Amount
	}
	if left == 0 || amount > left {
		return refund{}, &fault{Code: "amount_too_large", Param: "amount",
			Message: fmt.Sprintf("%d of %d can still be refunded", left, c.Amount)}
	}
	c.AmountRefunded += amount
	l.refunds++
	return refund{
		ID:       identifier(refundPrefix, l.refunds),
		Object:   "refund",
		Charge:   c.ID,
		Amount:   amount,
		Currency: c.Currency,
		Status:   "succeeded",
		Created:  now.Unix(),
	}, nil
}

// remembered returns the place of a charge in the ring, or nil. Callers hold mu.
func (l *ledger) remembered(id string) *charge {
	digits, ok := strings.CutPrefix(id, chargePrefix)
	if !ok {
		return nil
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return nil
	}
	if c := l.slot(number); c.ID == id { // the slot may hold a later one, or none
		return c
	}
	return nil
}

func (l *ledger) slot(number uint64) *charge {
	return &l.ring[number%uint64(len(l.ring))]
}

func identifier(prefix string, number uint64) string {
	return fmt.Sprintf("%s%012d", prefix, number)
}
