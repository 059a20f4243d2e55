#!/usr/bin/env bash
# Load with wrk: GET and POST (JSON of 512 bytes), the backend alone and through
# the gateway. Settings: those of lib.sh, and
#   DURATION  seconds of each of the four runs   (5)
#   THREADS   of wrk                             (2)
# shellcheck source=bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need wrk
need curl

load() { bounded wrk --latency -d "${DURATION:-5}s" -t "${THREADS:-2}" -c "$connections" "$@"; }
get() { load "$1"; }
post() { load -s "$bench/charge.lua" "$1"; }
requests_in() { awk '/requests in/ {print $1}' "$1"; }
failures_in() { grep -qE 'Non-2xx|Socket errors' "$1"; }

measure_all
