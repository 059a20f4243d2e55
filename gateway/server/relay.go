package server

import (
	"errors"
	"io"
	"sync"
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
func (c *call) pass() {
	r := &c.relay
	r.call, r.whole = c, false
	length := c.Response.Header.ContentLength()
	r.decoder.StreamBody = true
	r.decoder.Header.SetContentLength(length)
	r.err = r.decoder.ReadBody(c.reader, 0) // with StreamBody it reads nothing yet
	r.body = r.decoder.BodyStream()
	if length < 0 {
		c.last = c.last || length != -1 // it ends with the upstream's connection
		length = -1                     // chunked to the caller, however it came
	}
	// Without a length, or on a stream, the caller may be waiting for events: let the
	// head go out.
	c.Response.ImmediateHeaderFlush = length < 0 || c.Stall > 0
	if c.Stall > 0 {
		c.conn.stream.Store(true)
		c.engine.streams.add(r)
	} else if err := c.ctx.SetWriteDeadline(c.SendBy); err != nil {
		// The route's timeout bounds the whole response, a caller who does not read
		// included: what it keeps waiting is a permit and a connection.
		r.err = err
	}
	c.Response.SetBodyStream(r, length)
}

// Read passes on what has come.
func (r *relay) Read(p []byte) (int, error) {
	if r.err == nil && r.call.Stall > 0 {
		r.err = r.allow(time.Now())
	}
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.body.Read(p)
	r.call.Relayed += int64(n)
	switch {
	case err == io.EOF:
		r.whole = true
	case err != nil:
		r.err = err
	}
	return n, err
}

// allow gives a stream time for its next bytes, in both directions.
func (r *relay) allow(now time.Time) error {
	c := r.call
	return c.engine.streams.unlessCut(func() error {
		if err := c.conn.SetReadDeadline(now.Add(c.Stall)); err != nil {
			return err
		}
		// The server's own write timeout is meant for answers of bounded length.
		return c.ctx.SetWriteDeadline(now.Add(c.Stall + c.engine.live.Load().Timeouts.Write))
	})
}

// Close ends the exchange.
func (r *relay) Close() error {
	c := r.call
	if c == nil {
		return nil
	}
	r.call = nil
	defer c.lastBarrier()
	c.engine.streams.remove(r)
	switch {
	case r.whole:
		c.Facts.Cause = upstream.Complete
	case c.engine.cutting.Load():
		c.Facts.Cause = upstream.Stopped
	case r.err != nil:
		c.Facts.Cause = cutShort(r.err)
	default:
		c.Facts.Cause = upstream.Given // the caller stopped reading
	}
	c.letGo(r.whole)
	_ = r.decoder.CloseBodyStream()
	r.decoder.Reset()
	c.core.Relayed(&c.Exchange, time.Now())
	c.engine.put(c)
	return nil
}

// streams are the relays without an end that is known. A drain cuts them when its
// time is over.
type streams struct {
	mu   sync.Mutex
	open map[*relay]*call
	cut  bool
}

var errDrained = errors.New("the gateway stops")

func (s *streams) add(r *relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*relay]*call{}
	}
	s.open[r] = r.call
}

func (s *streams) remove(r *relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, r)
}

// unlessCut runs f, which sets deadlines, unless those of cutAll stand.
func (s *streams) unlessCut(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		return errDrained
	}
	return f()
}

// cutAll ends all streams, and those to come. It returns how many there were.
func (s *streams) cutAll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	past := time.Unix(1, 0)
	for _, c := range s.open {
		_ = c.conn.SetReadDeadline(past)
		_ = c.ctx.Conn().SetWriteDeadline(past)
	}
	return len(s.open)
}
