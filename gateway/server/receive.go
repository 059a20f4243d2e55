package server

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"sluice/gateway"
	"sluice/gateway/outcome"
)

// firstRead is how much of a body is made room for before any of it has come. What a
// caller announces is a word and costs it nothing.
const firstRead = 16 << 10

// prefetched is how much of a body of known length the library has read before the
// engine sees the request.
const prefetched = 8 << 10

// buffered counts the bytes of request bodies that are held, in all.
type buffered struct{ held atomic.Int64 }

// take reserves n more bytes, if there is room for them.
func (b *buffered) take(n, most int64) bool {
	if b.held.Add(n) > most {
		b.held.Add(-n)
		return false
	}
	return true
}

func (b *buffered) give(n int64) { b.held.Add(-n) }

// receive reads the request's body whole, as it comes: room is made for what has
// come, not for what was announced.
func (c *call) receive() gateway.Next {
	x := &c.Exchange
	length := int64(x.Request.Header.ContentLength())
	why := c.readRequestBody(length, x.BodyMost)
	if length < 0 || length > prefetched {
		c.now = time.Now() // it may have taken a while
	}
	if why != outcome.Passed {
		return c.core.Unreadable(x, why, c.now)
	}
	x.Request.SetBodyRaw(c.body)
	return c.core.Received(x, c.now)
}

// readRequestBody reads into c.body. length is -1 when nobody knows.
func (c *call) readRequestBody(length, most int64) outcome.Code {
	stream := c.ctx.RequestBodyStream()
	c.body = c.body[:0]
	if stream == nil || length == 0 {
		return outcome.Passed
	}
	if !c.reserve(int64(cap(c.body))) { // kept from an earlier request
		return outcome.GatewayBusy
	}
	for {
		if len(c.body) == cap(c.body) {
			if why := c.makeRoom(length, most); why != outcome.Passed {
				return why
			}
		}
		n, err := stream.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		switch {
		case int64(len(c.body)) > most:
			return outcome.BodyTooLarge
		case errors.Is(err, io.EOF) && (length < 0 || int64(len(c.body)) == length):
			return outcome.Passed
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return outcome.CallerGone
		case err != nil:
			return codeOfRead(err)
		}
	}
}

// makeRoom doubles the room for the body, up to what it can need.
func (c *call) makeRoom(length, most int64) outcome.Code {
	room := max(2*int64(cap(c.body)), firstRead)
	if length >= 0 {
		room = min(room, length)
	} else {
		room = min(room, most+1)
	}
	if !c.reserve(room - int64(cap(c.body))) {
		return outcome.GatewayBusy
	}
	grown := make([]byte, len(c.body), room)
	copy(grown, c.body)
	c.body = grown
	return outcome.Passed
}

// reserve counts n more bytes as held, if there is room for them.
func (c *call) reserve(n int64) bool {
	if !c.engine.buffered.take(n, int64(c.engine.live.Load().Limits.Buffered)) {
		return false
	}
	c.reserved += n
	return true
}

// forgetBody ends the body's time. A small buffer is kept for the next request; it
// counts again when that comes.
func (c *call) forgetBody() {
	c.engine.buffered.give(c.reserved)
	c.reserved = 0
	if cap(c.body) > bodyKept {
		c.body = nil
	}
}
