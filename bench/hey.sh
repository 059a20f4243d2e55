#!/usr/bin/env bash
# Load with hey: GET and POST (JSON of 512 bytes), the backend alone and through
# the gateway. Takes the hey on the PATH, or builds the version pinned here.
# Settings: those of lib.sh, and
#   REQUESTS  of each of the four runs   (20000)
# shellcheck source=bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need curl

hey_version=v0.1.5
hey=$(command -v hey || true)
if [ -z "$hey" ]; then
    hey=$root/bin/hey
    [ -x "$hey" ] || GOBIN=$root/bin go install "github.com/rakyll/hey@$hey_version"
fi

load() { bounded "$hey" -n "${REQUESTS:-20000}" -c "$connections" "$@"; }
get() { load "$1"; }
post() { load -m POST -T application/json -D "$bench/charge.json" "$1"; }
# "  [201]	20000 responses", a line for each status; errors in a list of their own.
requests_in() { awk '/^ *\[[0-9]+\]\t[0-9]+ responses/ {n += $2} END {print n + 0}' "$1"; }
failures_in() { grep -qE '^ *\[[345][0-9]{2}\]|^Error distribution' "$1"; }

measure_all
