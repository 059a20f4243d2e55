package paybackend

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"
)

// chargeInput is what a charge is made of.
type chargeInput struct {
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Source      string `json:"source"`
	Description string `json:"description"`
}

// refundInput is what a refund is made of. A nil Amount means all that is left.
type refundInput struct {
	Charge string `json:"charge"`
	Amount *int64 `json:"amount"`
}

// fault says why a request was not carried out, in the body of the answer.
type fault struct {
	status  int    // of the answer; zero is 400
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
}

// Bounds of single values; they also bound what a remembered charge takes.
const (
	maxAmount      = 99_999_999
	maxSource      = 64
	maxDescription = 600
)

// readCharge reads the body of a charge; a nil fault means that it is valid.
func readCharge(rc *fasthttp.RequestCtx) (chargeInput, *fault) {
	var in chargeInput
	switch contentType(rc) {
	case typeJSON:
		if err := json.Unmarshal(rc.PostBody(), &in); err != nil {
			return in, unreadableJSON(err)
		}
	case typeForm:
		form := rc.PostArgs()
		amount, f := formAmount(form.Peek("amount"))
		if f != nil {
			return in, f
		}
		in = chargeInput{
			Amount:      amount,
			Currency:    string(form.Peek("currency")),
			Source:      string(form.Peek("source")),
			Description: string(form.Peek("description")),
		}
	default:
		return in, unknownContentType()
	}
	return in, in.check()
}

func (in chargeInput) check() *fault {
	switch {
	case in.Amount < 1 || in.Amount > maxAmount:
		return amountOutOfRange(in.Amount)
	case !isCurrency(in.Currency):
		return &fault{Code: "currency_invalid", Param: "currency",
			Message: "currency must be three lower-case letters"}
	case len(in.Source) > maxSource:
		return tooLong("source", maxSource)
	case len(in.Description) > maxDescription:
		return tooLong("description", maxDescription)
	}
	return nil
}

// readRefund reads the body of a refund; a nil fault means that it is valid.
func readRefund(rc *fasthttp.RequestCtx) (refundInput, *fault) {
	var in refundInput
	switch contentType(rc) {
	case typeJSON:
		if err := json.Unmarshal(rc.PostBody(), &in); err != nil {
			return in, unreadableJSON(err)
		}
	case typeForm:
		form := rc.PostArgs()
		in.Charge = string(form.Peek("charge"))
		if form.Has("amount") {
			amount, f := formAmount(form.Peek("amount"))
			if f != nil {
				return in, f
			}
			in.Amount = &amount
		}
	default:
		return in, unknownContentType()
	}
	if in.Amount != nil && (*in.Amount < 1 || *in.Amount > maxAmount) {
		return in, amountOutOfRange(*in.Amount)
	}
	return in, nil
}

func formAmount(value []byte) (int64, *fault) {
	amount, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0, &fault{Code: "amount_invalid", Param: "amount",
			Message: fmt.Sprintf("amount must be a whole number from 1 to %d", maxAmount)}
	}
	return amount, nil
}

func amountOutOfRange(amount int64) *fault {
	return &fault{Code: "amount_invalid", Param: "amount",
		Message: fmt.Sprintf("amount (%d) must be a whole number from 1 to %d", amount, maxAmount)}
}

func tooLong(param string, limit int) *fault {
	return &fault{Code: "value_too_long", Param: param,
		Message: fmt.Sprintf("%s must be at most %d bytes", param, limit)}
}

func unreadableJSON(err error) *fault {
	return &fault{Code: "json_invalid", Message: "the body is not the JSON expected: " + err.Error()}
}

func unknownContentType() *fault {
	return &fault{status: fasthttp.StatusUnsupportedMediaType, Code: "content_type_unknown",
		Message: "Content-Type must be " + typeJSON + " or " + typeForm}
}

func isCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return true
}
