package server

import "golang.org/x/sys/unix"

// probe looks at a socket without reading from it. A peek would not do: under TLS
// it sees records instead of the end, and after a reset it swallows the error.
type probe struct {
	fds              [1]unix.PollFd
	closed, readable bool
}

func (p *probe) look(fd uintptr) {
	p.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}
	n, err := unix.Poll(p.fds[:], 0)
	got := p.fds[0].Revents
	p.closed = err != nil || n > 0 && got&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	p.readable = n > 0 && got&unix.POLLIN != 0
}
