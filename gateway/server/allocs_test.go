//go:build !race

package server

import "testing"

// TestExchange_DoesNotAllocate holds the path of an exchange to no allocation of ours
// per request, once its pools are warm. Under the race detector pools drop entries at random.
func TestExchange_DoesNotAllocate(t *testing.T) {
	const requests = 1000
	for name, c := range map[string]struct {
		request string
		library float64 // allocations of fasthttp's own: it looks whether a body was read whole
	}{"get": {benchGet, 0}, "post": {benchPost, 1}} {
		request := c.request
		e := benchEngine(t, benchOK)
		e.serveFake(request, requests)
		perConnection := testing.AllocsPerRun(5, func() { e.serveFake(request, 1) })
		all := testing.AllocsPerRun(5, func() { e.serveFake(request, requests) })
		if each := (all - perConnection) / requests; each >= c.library+0.1 {
			t.Errorf("%s: %.2f allocations per request, want %v", name, each, c.library)
		}
	}
}
