package config

import "go.yaml.in/yaml/v3"

// later is a key of the format, or one value of a key, that this version does not
// act on. Files that hold it are valid, and what is set and asks for something
// gives a remark, so that nobody believes to be protected by it.
type later struct {
	path  string // below the root; entries of a list have no part of their own
	kind  *kind  // nil: anything
	list  bool   // a list of such values
	group bool   // a mapping that gives one remark for all below it
	off   string // the value that asks for nothing
	value string // of a key that is acted on otherwise
	words string // in place of the usual ones
	fault bool   // ignoring it would be dangerous, so it is refused
}

const usualWords = "accepted, not acted on by this version"

// usual stands for groups that have no row.
var usual = &later{group: true}

func (l *later) text() string {
	if l.words != "" {
		return l.words
	}
	return usualWords
}

const (
	unprotected = "accepted, not acted on: writes are not protected by idempotency in this version"
	noDedupe    = "accepted, not acted on: nothing is sent again in this version"
)

// notYet is every such key, in the order of docs/configuration.md. Whoever builds a
// capability takes its rows out and puts the keys into a Config.
var notYet = []later{
	{path: "server.tls.client_ca", kind: aText, off: "", fault: true, words: "this version cannot ask callers for a certificate, leave it out"},
	{path: "server.http2", kind: aTruth, off: "false", words: "accepted, not acted on: this version serves HTTP/1.1"},
	{path: "server.priority_header", kind: aText},
	{path: "server.limits.soft_share", kind: aNumber},

	{path: "tracing.otlp", kind: aText},
	{path: "tracing.sample", kind: aNumber},

	{path: "idempotency", group: true, words: unprotected},
	{path: "idempotency.store", kind: oneOf("embedded", "redis", "memory")},
	{path: "idempotency.redis.addresses", kind: aText, list: true},
	{path: "idempotency.redis.wait_replicas", kind: aWhole},
	{path: "idempotency.on_store_failure", kind: oneOf("closed", "open")},
	{path: "idempotency.durability", kind: oneOf("strict", "relaxed")},
	{path: "idempotency.retention", kind: aDuration},
	{path: "idempotency.max_response", kind: aSize},
	{path: "idempotency.key_max", kind: aWhole},
	{path: "idempotency.aliases", kind: aText, list: true},
	{path: "idempotency.release_statuses", kind: aWhole, list: true},
	{path: "idempotency.quota.records", kind: aWhole},
	{path: "idempotency.quota.pending", kind: aWhole},
	{path: "idempotency.quota.new_per_second", kind: aWhole},
	{path: "idempotency.secrets.hash", kind: aText, list: true},
	{path: "idempotency.secrets.encrypt", kind: aText, list: true},
	{path: "idempotency.shippers"},

	{path: "retry_budget.mode", kind: protection, off: "off"},
	{path: "retry_budget.ratio", kind: aNumber},
	{path: "retry_budget.reserve"},

	{path: "upstreams.dedupes", kind: aTruth, off: "false", words: noDedupe},
	{path: "upstreams.refused_statuses", words: noDedupe},
	{path: "upstreams.retry", group: true, words: noDedupe},
	{path: "upstreams.retry.mode", kind: protection, off: "off"},
	{path: "upstreams.retry.max_attempts", kind: aWhole, off: "1"},
	{path: "upstreams.retry.on", list: true, kind: oneOf("not-sent", "refused", "reset", "overloaded", "failed", "timed-out")},
	{path: "upstreams.retry.backoff.base", kind: aDuration},
	{path: "upstreams.retry.backoff.max", kind: aDuration},
	{path: "upstreams.retry.budget.ratio", kind: aNumber},
	{path: "upstreams.retry.budget.reserve"},
	{path: "upstreams.retry.efficacy", kind: aNumber},

	{path: "upstreams.limit.mode", value: "observe", fault: true, words: `"observe" is not possible in this version, enforce or off`},
	{path: "upstreams.limit.algorithm", kind: oneOf("adaptive", "gradient2", "vegas", "aimd", "fixed"), words: "accepted, not acted on: in this version the limit is max and does not adapt"},
	{path: "upstreams.limit.initial", kind: aWhole},
	{path: "upstreams.limit.min", kind: aWhole},
	{path: "upstreams.limit.queue.standing", kind: aDuration},
	{path: "upstreams.limit.critical_share", kind: aNumber},

	{path: "upstreams.breaker.mode", kind: protection, off: "off"},
	{path: "upstreams.breaker.min_calls", kind: aWhole},
	{path: "upstreams.breaker.slow.over", kind: aDuration},
	{path: "upstreams.breaker.slow.ratio", kind: aNumber},
	{path: "upstreams.breaker.failed.ratio", kind: aNumber},
	{path: "upstreams.breaker.bad.ratio", kind: aNumber},
	{path: "upstreams.breaker.z", kind: aNumber},
	{path: "upstreams.breaker.open.for", kind: aDuration},
	{path: "upstreams.breaker.open.max", kind: aDuration},
	{path: "upstreams.breaker.open.probe_every", kind: aDuration},
	{path: "upstreams.breaker.half_open.probes", kind: aWhole},
	{path: "upstreams.breaker.half_open.ramp", kind: aNumber, list: true},
	{path: "upstreams.breaker.half_open.stage", kind: aDuration},
	{path: "upstreams.breaker.half_open.stage_calls", kind: aWhole},

	{path: "upstreams.health.path", kind: aText, off: ""},
	{path: "upstreams.health.interval", kind: aDuration},
	{path: "upstreams.health.eject_after", kind: aWhole, off: "0"},
	{path: "upstreams.health.eject_for", kind: aDuration},
	{path: "upstreams.health.max_ejected", kind: aNumber},
	{path: "upstreams.health.slow_start", kind: aDuration},
	{path: "upstreams.deadline.margin", kind: aDuration},
	{path: "upstreams.deadline.quantile", kind: aNumber},

	{path: "routes.priority", kind: oneOf("critical", "high", "normal", "sheddable"), off: "normal"},
	{path: "routes.attempt_timeout", value: "auto", words: "accepted, not acted on: in this version auto is the default"},
	{path: "routes.body", kind: oneOf("buffer", "stream"), off: "buffer", fault: true, words: `"stream" is not possible in this version, only buffer`},
	{path: "routes.deadline.mode", kind: protection, off: "off"},
	{path: "routes.idempotency", group: true, words: unprotected},
	{path: "routes.idempotency.mode", kind: protection, off: "off"},
	{path: "routes.idempotency.scope"},
	{path: "routes.idempotency.required", kind: aTruth},
	{path: "routes.idempotency.methods", kind: aText, list: true},
	{path: "routes.idempotency.fingerprint", kind: oneOf("raw", "json")},
	{path: "routes.idempotency.on_pending", kind: oneOf("reject", "wait")},
	{path: "routes.rate_limit.mode", kind: protection, off: "off"},
	{path: "routes.rate_limit.per"},
	{path: "routes.rate_limit.rate", kind: aNumber},
	{path: "routes.rate_limit.burst", kind: aWhole},
	{path: "routes.when_open", kind: oneOf("reject", "defer"), off: "reject", fault: true, words: `"defer" is not possible in this version, only reject`},
	{path: "routes.defer.ttl", kind: aDuration},
	{path: "routes.defer.allow_plaintext", kind: aTruth},
}

// protection is the mode that every protection has.
var protection = oneOf("enforce", "observe", "off")

// asks reports whether one value of a later key asks for something.
func (l *later) asks(value any) bool {
	off, err := l.kind.read(l.off)
	return err != nil || value != off
}

// asks reports whether a value of a later key asks for anything: a mapping whose
// mode is off, or in which all is off or empty, does not.
func (d *document) asks(n *yaml.Node, k *key, depth int) bool {
	if d.nodes++; d.nodes > mostNodes || depth > mostDepth {
		return false
	}
	n = resolved(n)
	if n.Kind != yaml.MappingNode || k.keys == nil {
		if n.Kind != yaml.ScalarNode {
			return len(n.Content) > 0
		}
		if k.kind == nil || isNull(n) {
			return !isNull(n)
		}
		value, err := k.kind.read(n.Value)
		return err != nil || k.list || k.later.asks(value)
	}
	asked := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := resolved(n.Content[i]), resolved(n.Content[i+1])
		if name.Value == "mode" && value.Value == "off" {
			return false
		}
		below := k.keys[name.Value]
		asked = asked || name.ShortTag() == tagMerge || below != nil && d.asks(value, below, depth+1)
	}
	return asked
}
