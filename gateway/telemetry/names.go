package telemetry

import (
	"bytes"
	"strings"
)

// labelBytes bounds a label's value.
const labelBytes = 128

// families are the metrics of this package with their help texts.
var families = map[string]string{
	"sluice_build_info":               "Always 1; the labels tell what is running.",
	"sluice_requests_total":           "Exchanges that ended, by class of the status sent (none: nothing was sent) and why they ended (answered: the backend's own answer).",
	"sluice_request_seconds":          "Time from the first byte of a request to the end of its exchange.",
	"sluice_request_bytes_total":      "Bytes of bodies, in from callers and out to them.",
	"sluice_attempts_total":           "Attempts that ended, first tries and retries, by how they ended.",
	"sluice_first_tries_total":        "Requests sent to the upstream for the first time.",
	"sluice_attempt_head_seconds":     "Time from the start of an attempt to the head of its response.",
	"sluice_connections_opened_total": "Connections opened to the upstream.",
	"sluice_connections_reused_total": "Attempts that went out on a connection from the pool.",
	"sluice_connections_failed_total": "Connections to the upstream that could not be opened (dial or TLS handshake).",
	"sluice_exchanges_in_flight":      "Exchanges that began and have not ended.",
	"sluice_limit":                    "Permits that the upstream has now.",
	"sluice_in_flight":                "Permits held now.",
	"sluice_queued":                   "Exchanges that wait for a permit.",
	"sluice_endpoints":                "Addresses that the upstream has now.",
	"sluice_callers_crowded_total":    "Connections of callers that found no room for their address (server.limits.connections_per_address).",
	"sluice_handshakes_failed_total":  "TLS handshakes with callers that failed.",
	"sluice_callers_refused_total":    "Connections of callers that found no room (server.limits.connections).",
	"sluice_reloads_total":            "Configurations that were read again: put in force (ok), or refused for a fault.",
	"sluice_config_loaded_seconds":    "When the configuration in force was loaded, in seconds since 1970.",
	"sluice_log_dropped_total":        "Log lines that were lost: output stuck or failing.",
}

// Name makes the name of a metric from its family and pairs of label and value. The
// values may be any bytes: they are cut, made valid UTF-8 and escaped. Family and
// labels must be constants that are valid in Prometheus.
func Name(family string, labels ...string) string {
	if len(labels) < 2 {
		return family
	}
	var name strings.Builder
	name.WriteString(family)
	for i := 0; i+1 < len(labels); i += 2 {
		if i == 0 {
			name.WriteByte('{')
		} else {
			name.WriteByte(',')
		}
		name.WriteString(labels[i])
		name.WriteString(`="`)
		name.WriteString(label(labels[i+1]))
		name.WriteByte('"')
	}
	name.WriteByte('}')
	return name.String()
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func label(value string) string {
	if len(value) > labelBytes {
		value = value[:labelBytes]
	}
	return labelEscapes.Replace(strings.ToValidUTF8(value, "\uFFFD"))
}

// describe fills in the help texts. The library writes HELP lines without text,
// which not every parser takes; those that stay empty are left out.
func describe(text []byte) []byte {
	out := make([]byte, 0, len(text)+4096)
	for line := range bytes.Lines(text) {
		family, isHelp := bytes.CutPrefix(line, []byte("# HELP "))
		if !isHelp {
			out = append(out, line...)
			continue
		}
		family = bytes.TrimSpace(family)
		if words := families[string(family)]; words != "" {
			out = append(out, "# HELP "...)
			out = append(out, family...)
			out = append(out, ' ')
			out = append(out, words...)
			out = append(out, '\n')
		}
	}
	return out
}
