package server_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a goroutine outlives the tests, except for those that fasthttp
// leaves by design: they end by themselves, or serve the whole process.
func TestMain(m *testing.M) {
	// These tests wait for sockets and shutdowns, they hardly compute: more at a
	// time than there are cores.
	flag.Parse()
	if fuzzing := flag.Lookup("test.fuzz"); fuzzing == nil || fuzzing.Value.String() == "" {
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
	)
}
