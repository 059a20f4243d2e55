//go:build !race

package server

import "testing"

// TestExchange_DoesNotAllocate holds the path of an exchange to no allocation per
// request, once its pools are warm. Under the race detector pools drop entries at random.
func TestExchange_DoesNotAllocate(t *testing.T) {
	const requests = 1000
	for name, request := range map[string]string{"get": benchGet, "post": benchPost} {
		e := benchEngine(t, benchOK)
		e.serveFake(request, requests)
		perConnection := testing.AllocsPerRun(5, func() { e.serveFake(request, 1) })
		all := testing.AllocsPerRun(5, func() { e.serveFake(request, requests) })
		if each := (all - perConnection) / requests; each >= 0.1 {
			t.Errorf("%s: %.2f allocations per request, want none", name, each)
		}
	}
}
