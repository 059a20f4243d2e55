package server

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenShared listens on an address on which another process of this user may listen
// too (SO_REUSEPORT). From then on new connections come here and no more to the other
// process, which is about to end: what it closes its listener on is then empty, and
// no connection is lost with it.
//
// steered says whether the kernel took that rule. Without it the two share new
// connections, and those that the other one has not accepted when it closes are lost.
func listenShared(network, address string) (ln net.Listener, steered bool, err error) {
	settings := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		if err != nil {
			return err
		}
		return failed
	}}
	settings.SetMultipathTCP(false) // the rule is one of plain TCP
	if ln, err = settings.Listen(context.Background(), network, address); err != nil {
		return nil, false, err
	}
	return ln, steer(ln.(*net.TCPListener)) == nil, nil
}

// steer makes the kernel hand new connections to the second of two listeners. The
// first is the older one. Where there is no second the rule names nobody, and the
// kernel falls back to choosing among all: the only one.
func steer(ln *net.TCPListener) error {
	const second = 1
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: second}}
	raw, err := ln.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	if err != nil {
		return err
	}
	return failed
}
