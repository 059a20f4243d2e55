package server

import (
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/gateway/upstream"
)

// relay is a response's body on its way from the upstream to the caller. fasthttp
// reads from it while it writes the answer, after the handler has returned, and
// closes it when the answer is through or has failed; that ends the exchange.
type relay struct {
	call    *call
	decoder fasthttp.Response // reads the body in the upstream's framing
	body    io.Reader
	whole   bool  // read to its end
	err     error // why it was not
}

// relay makes the body of the response one that is passed on as it comes.
func (c *call) relay() {
	r := &relay{call: c}
	h := &c.Response.Header
	length := h.ContentLength()
	r.decoder.StreamBody = true
	r.decoder.Header.SetContentLength(length)
	// With StreamBody this reads nothing yet.
	if err := r.decoder.ReadBody(c.reader, 0); err != nil {
		r.err = err
	}
	r.body = r.decoder.BodyStream()
	if length < 0 {
		length = -1 // chunked to the caller, however the upstream framed it
		c.last = c.last || h.ContentLength() != -1
		// Without a length the caller may be waiting for events: let the head go out.
		c.Response.ImmediateHeaderFlush = true
	}
	c.Response.SetBodyStream(r, length)
}

// Read passes on what has come.
func (r *relay) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	c := r.call
	if c.Stall > 0 {
		now := time.Now()
		if r.err = c.conn.SetReadDeadline(now.Add(c.Stall)); r.err != nil {
			return 0, r.err
		}
		// The server's write timeout is meant for answers of bounded length.
		if r.err = c.ctx.SetWriteDeadline(now.Add(c.Stall + c.engine.write)); r.err != nil {
			return 0, r.err
		}
	}
	n, err := r.body.Read(p)
	c.Relayed += int64(n)
	switch {
	case err == io.EOF:
		r.whole = true
	case err != nil:
		r.err = err
	}
	return n, err
}

// Close ends the exchange.
func (r *relay) Close() error {
	c := r.call
	if c == nil {
		return nil
	}
	r.call = nil
	switch {
	case r.whole:
		c.Facts.Cause = upstream.Complete
	case r.err != nil:
		c.Facts.Cause = cutShort(r.err)
	default:
		c.Facts.Cause = upstream.Given // the caller stopped reading
	}
	c.letGo(r.whole)
	_ = r.decoder.CloseBodyStream()
	c.core.Relayed(&c.Exchange, time.Now())
	c.engine.put(c)
	return nil
}
