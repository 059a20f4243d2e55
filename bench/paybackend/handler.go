package paybackend

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
)

// declinedSource is a payment source that is always declined, with 402.
const declinedSource = "tok_declined"

const (
	defaultList = 10
	maxList     = 100
	maxSlow     = time.Minute
)

// reply is an answer before it is written; a nil body is written as none.
type reply struct {
	status int
	body   any
}

// handler builds the paths. Requests that wait are let go when ctx ends.
func (b *Backend) handler(ctx context.Context) fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.NotFound = answering(func(*fasthttp.RequestCtx) reply {
		return refuse(&fault{status: fasthttp.StatusNotFound, Code: "no_such_path", Message: "there is nothing here"})
	})
	r.MethodNotAllowed = answering(func(*fasthttp.RequestCtx) reply { // the router has set Allow
		return refuse(&fault{status: fasthttp.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "see Allow"})
	})
	get := func(path string, answer func(*fasthttp.RequestCtx) reply) {
		r.GET(path, answering(answer))
		r.HEAD(path, answering(answer))
	}
	afterService := func(answer func(*fasthttp.RequestCtx) reply) func(*fasthttp.RequestCtx) reply {
		return func(rc *fasthttp.RequestCtx) reply {
			if !wait(ctx, b.cfg.ServiceTime) {
				return stopping()
			}
			return answer(rc)
		}
	}
	get("/healthz", func(*fasthttp.RequestCtx) reply {
		return reply{status: fasthttp.StatusOK, body: map[string]string{"status": "ok"}}
	})
	get("/v1/charges", afterService(b.list))
	get("/v1/charges/{id}", afterService(b.show))
	r.POST("/v1/charges", answering(afterService(b.charge)))
	r.POST("/v1/refunds", answering(afterService(b.refund)))
	r.ANY("/slow", answering(func(rc *fasthttp.RequestCtx) reply { return slow(ctx, rc) }))
	r.ANY("/status/{code}", answering(status))
	return r.Handler
}

func (b *Backend) charge(rc *fasthttp.RequestCtx) reply {
	in, f := readCharge(rc)
	if f != nil {
		return refuse(f)
	}
	if in.Source == declinedSource {
		return refuse(&fault{status: fasthttp.StatusPaymentRequired,
			Code: "card_declined", Param: "source", Message: "the card was declined"})
	}
	return reply{status: fasthttp.StatusCreated, body: b.ledger.add(in, rc.Time())}
}

func (b *Backend) refund(rc *fasthttp.RequestCtx) reply {
	in, f := readRefund(rc)
	if f != nil {
		return refuse(f)
	}
	made, f := b.ledger.giveBack(in, rc.Time())
	if f != nil {
		return refuse(f)
	}
	return reply{status: fasthttp.StatusCreated, body: made}
}

func (b *Backend) show(rc *fasthttp.RequestCtx) reply {
	id, _ := rc.UserValue("id").(string)
	c, ok := b.ledger.find(id)
	if !ok {
		return refuse(&fault{status: fasthttp.StatusNotFound,
			Code: "no_such_charge", Param: "id", Message: fmt.Sprintf("charge %q is not known", id)})
	}
	return reply{status: fasthttp.StatusOK, body: c}
}

func (b *Backend) list(rc *fasthttp.RequestCtx) reply {
	limit := defaultList
	if args := rc.QueryArgs(); args.Has("limit") {
		n, err := strconv.Atoi(string(args.Peek("limit")))
		if err != nil || n < 1 || n > maxList {
			return refuse(&fault{Code: "limit_invalid", Param: "limit",
				Message: fmt.Sprintf("limit must be a whole number from 1 to %d", maxList)})
		}
		limit = n
	}
	data, total := b.ledger.latest(limit)
	return reply{status: fasthttp.StatusOK, body: struct {
		Object string   `json:"object"`
		Data   []charge `json:"data"`
		Total  uint64   `json:"total_count"`
	}{"list", data, total}}
}

func slow(ctx context.Context, rc *fasthttp.RequestCtx) reply {
	ms, err := strconv.Atoi(string(rc.QueryArgs().Peek("ms")))
	if err != nil || ms < 0 || ms > int(maxSlow.Milliseconds()) {
		return refuse(&fault{Code: "ms_invalid", Param: "ms",
			Message: fmt.Sprintf("ms must be a whole number from 0 to %d", maxSlow.Milliseconds())})
	}
	if !wait(ctx, time.Duration(ms)*time.Millisecond) {
		return stopping()
	}
	return reply{status: fasthttp.StatusOK, body: map[string]int{"waited_ms": ms}}
}

func status(rc *fasthttp.RequestCtx) reply {
	text, _ := rc.UserValue("code").(string)
	code, err := strconv.Atoi(text)
	switch {
	case err != nil || code < 200 || code > 599:
		return refuse(&fault{Code: "code_invalid", Param: "code", Message: "the code must be from 200 to 599"})
	case code == fasthttp.StatusNoContent, code == fasthttp.StatusResetContent, code == fasthttp.StatusNotModified:
		return reply{status: code}
	case code >= 400:
		return refuse(&fault{status: code, Code: "as_asked", Message: fasthttp.StatusMessage(code)})
	}
	return reply{status: code, body: map[string]int{"status": code}}
}

// answering writes what answer returns.
func answering(answer func(*fasthttp.RequestCtx) reply) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) { write(rc, answer(rc)) }
}

func write(rc *fasthttp.RequestCtx, answer reply) {
	rc.SetStatusCode(answer.status)
	if answer.body == nil {
		return
	}
	body, err := json.Marshal(answer.body)
	if err != nil { // no body here can fail; a new one that does is seen as a 500
		rc.SetStatusCode(fasthttp.StatusInternalServerError)
		return
	}
	rc.SetContentType(typeJSON)
	rc.Response.SetBodyRaw(body)
}

// answerUnreadable answers what fasthttp could not read as a request.
func answerUnreadable(rc *fasthttp.RequestCtx, err error) {
	status := fasthttp.StatusBadRequest
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status = fasthttp.StatusRequestEntityTooLarge
	case errors.As(err, &small):
		status = fasthttp.StatusRequestHeaderFieldsTooLarge
	}
	write(rc, refuse(&fault{status: status, Code: "request_invalid", Message: fasthttp.StatusMessage(status)}))
}

func refuse(f *fault) reply {
	return reply{status: cmp.Or(f.status, fasthttp.StatusBadRequest), body: map[string]*fault{"error": f}}
}

func stopping() reply {
	return refuse(&fault{status: fasthttp.StatusServiceUnavailable,
		Code: "stopping", Message: "the backend is stopping; nothing was done"})
}

// contentType returns the media type of the body without its parameters.
func contentType(rc *fasthttp.RequestCtx) string {
	value, _, _ := bytes.Cut(rc.Request.Header.ContentType(), []byte(";"))
	return string(bytes.ToLower(bytes.TrimSpace(value)))
}

// wait reports whether d passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
