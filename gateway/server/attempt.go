package server

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/gateway"
	"sluice/gateway/edge"
	"sluice/gateway/upstream"
)

// interimAtMost bounds the 1xx responses before a final one.
const interimAtMost = 16

// send makes one attempt, up to the head of the response. The request is written
// once, on one connection; whatever goes wrong, nothing here writes it again.
func (c *call) send() gateway.Next {
	x := &c.Exchange
	c.pool = x.Endpoint.Attached.(*pool)
	cn, cause, why := c.pool.take(x.SendBy.Sub(c.now))
	if cn == nil {
		x.Facts.Why = why
		return c.lost(cause)
	}
	c.conn = cn
	c.in.trying.Store(cn)
	x.Facts.Reused = cn.used
	if !cn.used {
		cn.used, x.Connect = true, cn.opened
	}
	if c.write() != nil && !c.answeredEarly() {
		return c.lost(causeOf(c.err))
	}
	if c.reader == nil && c.readHead() != nil {
		return c.lost(causeOf(c.err))
	}
	c.now = time.Now()
	n := c.core.Headed(x, c.now)
	if n != gateway.Collect && n != gateway.Relay {
		c.letGo(false)
	}
	return n
}

// write hands the request to the kernel.
func (c *call) write() error {
	c.err = c.conn.SetDeadline(c.SendBy)
	if c.err == nil && c.engine.cutting.Load() { // this deadline may have undone the cut
		c.err = errDrained
	}
	if c.err != nil {
		c.Facts.Unsent = true
		return c.err
	}
	w := c.pool.host.AcquireWriter(c.conn)
	c.err = c.Request.Write(w)
	if c.err == nil {
		c.err = w.Flush()
	}
	c.pool.host.ReleaseWriter(w)
	c.Facts.Unsent = c.conn.sent == 0
	return c.err
}

// earlyTime bounds the look for an answer after a write that failed. What the backend
// had sent is here already, or lost with the reset.
const earlyTime = 50 * time.Millisecond

// answeredEarly looks for an answer that a backend gave before it had the whole
// request, and closed: a 413, for one. The connection is used no more.
func (c *call) answeredEarly() bool {
	failed := c.err
	if c.Facts.Unsent || causeOf(failed) == upstream.TimedOut || c.conn.SetReadDeadline(time.Now().Add(earlyTime)) != nil {
		return false
	}
	if c.readHead() != nil {
		c.err = failed
		return false
	}
	c.last = true
	return c.conn.SetReadDeadline(c.SendBy) == nil
}

// readHead reads the head of the final response, past interim ones.
func (c *call) readHead() error {
	h := &c.Response.Header
	c.Response.SkipBody = c.Request.Header.IsHead()
	c.reader = c.pool.host.AcquireReader(c.conn)
	for range interimAtMost {
		// Judged before it is read: the library is more lenient than whoever reads the
		// answer after us may be.
		var head edge.Head
		if head, c.err = edge.PeekResponse(c.reader); c.err == nil && head.Doubtful {
			c.err = errDoubtful
		}
		if c.err == nil {
			c.err = h.Read(c.reader)
		}
		if c.err != nil {
			return c.err
		}
		if status := h.StatusCode(); status >= 200 || status == fasthttp.StatusSwitchingProtocols {
			c.Facts.Status, c.Fields = status, head.Seen
			// Asked before the core takes Connection away.
			c.last = h.ConnectionClose()
			return nil
		}
	}
	c.err = errInterim
	return c.err
}

var (
	errInterim  = errors.New("too many interim responses")
	errDoubtful = errors.New("the response's head has more than one reading")
)

// collect reads the body into the response.
func (c *call) collect() gateway.Next {
	x := &c.Exchange
	if bodied(x.Response) {
		here := x.Response.Header.ContentLength() <= c.reader.Buffered()
		if c.readBody() != nil {
			return c.lost(cutShort(c.err))
		}
		if !here {
			c.now = time.Now() // it may have taken a while
		}
	}
	x.Facts.Cause = upstream.Complete
	c.letGo(true)
	return c.core.Attempted(x, c.now)
}

func (c *call) readBody() error {
	length := c.Response.Header.ContentLength()
	c.err = c.Response.ReadBody(c.reader, int(c.BodyMost))
	switch {
	case c.err != nil:
	case length == -1:
		// The trailer section is read to its end, and dropped.
		var trailer fasthttp.ResponseHeader
		c.err = trailer.ReadTrailer(c.reader)
	case length < 0:
		c.last = true // it ended with the connection
	}
	return c.err
}

// bodied reports whether a response with this head has a body to read.
func bodied(r *fasthttp.Response) bool {
	status := r.StatusCode()
	return !r.SkipBody && status != fasthttp.StatusNoContent && status != fasthttp.StatusNotModified
}

// lost ends an attempt without a complete response.
func (c *call) lost(cause upstream.Cause) gateway.Next {
	if c.conn != nil && c.engine.cutting.Load() {
		cause = upstream.Stopped // it was we who ended it, not the upstream
	}
	c.Facts.Cause = cause
	c.letGo(false)
	c.now = time.Now()
	return c.core.Attempted(&c.Exchange, c.now)
}

// letGo gives the connection back: for further attempts if the response was read
// to its end and nothing forbids it, else closed.
func (c *call) letGo(complete bool) {
	if c.conn == nil {
		return
	}
	c.in.trying.Store(nil)
	reusable := complete && !c.last && c.reader != nil && c.reader.Buffered() == 0
	if c.reader != nil {
		c.pool.host.ReleaseReader(c.reader)
		c.reader = nil
	}
	if reusable {
		c.pool.release(c.conn)
	} else {
		c.pool.drop(c.conn)
	}
	c.conn = nil
}

// causeOf says what an error on the connection means. Types and identities decide,
// never texts.
func causeOf(err error) upstream.Cause {
	var timeout net.Error
	var network *net.OpError
	switch {
	case errors.Is(err, fasthttp.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return upstream.TimedOut
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &network):
		return upstream.Lost
	}
	return upstream.Malformed
}

// cutShort is causeOf for a body: its end came before the announced one.
func cutShort(err error) upstream.Cause {
	if cause := causeOf(err); cause != upstream.Lost {
		return cause
	}
	return upstream.CutShort
}
