//go:build race

package telemetry

// raceEnabled: the race detector makes sync.Pool drop what it holds.
const raceEnabled = true
