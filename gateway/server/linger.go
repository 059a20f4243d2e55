package server

import (
	"sync"
	"time"
)

// A socket that is closed with unread data, or that gets some afterwards, sends a
// reset, and a reset takes away what the caller has not read yet: the answer that
// says why the rest of its upload is not wanted. So after an answer a connection is
// closed in the order of RFC 9112 section 9.6: the sending half first, then what
// still comes is read and dropped for a while, then the rest.
//
// The bounds are per connection. One that reaches them, and one for which there is
// no room, is closed with a reset.
const (
	lingerQuiet = 500 * time.Millisecond // without a byte; a round trip has to fit in
	lingerMost  = 5 * time.Second
	lingerBytes = 64 << 20

	lingerers        = 1024 // connections at once
	lingerersRefused = 256  // a connection that was refused lingers only below this

	settleTime = time.Second // for all of them when a drain ends
)

// discards are buffers to drop bytes into.
var discards = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// linger closes in later, in the background. It reports false when there is no room.
func (s *callers) linger(in *inbound, room int) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.leaving) >= room {
		return false
	}
	s.leaving[in] = struct{}{}
	s.work.Go(func() {
		in.seeOff(s.lingers)
		_ = in.shut()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leaving, in)
	})
	return true
}

// lingers reports whether lingering is still allowed.
func (s *callers) lingers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over
}

// seeOff says that nothing more will come, then drops what the caller still sends.
func (in *inbound) seeOff(allowed func() bool) {
	if in.hangUp() != nil {
		return
	}
	buffer := discards.Get().(*[16 << 10]byte)
	defer discards.Put(buffer)
	end := time.Now().Add(lingerMost)
	for total := 0; total < lingerBytes; {
		quiet := time.Now().Add(lingerQuiet)
		if quiet.After(end) {
			quiet = end
		}
		// In this order: whoever forbids lingering sets a deadline afterwards, which
		// then stands.
		if in.socket.SetReadDeadline(quiet) != nil || !allowed() {
			return
		}
		n, err := in.socket.Read(buffer[:])
		if err != nil {
			return
		}
		total += n
	}
}

// settle waits for what still lingers, or is about to, when nothing is served any
// more. It takes settleTime at most.
func (s *callers) settle() {
	s.mu.Lock()
	empty := make(chan struct{})
	if len(s.open) == 0 {
		close(empty)
	} else {
		s.empty = empty
	}
	s.mu.Unlock()
	limit := time.NewTimer(settleTime)
	defer limit.Stop()
	select {
	case <-empty:
	case <-limit.C:
	}
	s.mu.Lock()
	s.over = true
	for in := range s.leaving {
		_ = in.socket.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()
	s.work.Wait()
}
