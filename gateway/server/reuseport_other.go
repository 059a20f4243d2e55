//go:build !linux

package server

import (
	"errors"
	"net"
)

// listenShared is for Linux: elsewhere the kernel hands connections to one of the
// processes in ways that lose some.
func listenShared(string, string) (net.Listener, bool, error) {
	return nil, false, errors.New("reuse_port is possible on Linux only, leave it out")
}
