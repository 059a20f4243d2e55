# shellcheck shell=bash
# Sourced by the load recipes beside it. Starts the simulated backend and the
# gateway on free loopback ports, and ends what it started when the recipe ends.
# Recipes send traffic to loopback only, for a bounded time or count.
#
# Settings, from the environment:
#   GATEWAY       the gateway's binary               (bin/gateway)
#   GATEWAY_ARGS  more flags for it, e.g. "--log.access=false"
#   CONNECTIONS   connections kept open              (32)
#   SERVICE_TIME  time that the backend takes        (0s)
set -euo pipefail

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$bench")
gateway=$(realpath -m "${GATEWAY:-$root/bin/gateway}")
# shellcheck disable=SC2034 # used by the recipes
connections=${CONNECTIONS:-32}
work=$(mktemp -d)
pids=()

finish() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null || die "$1 is missing ('make deps' installs it on Debian)"
}

# free_port prints a loopback port on which nothing listens.
free_port() {
    local port
    for _ in {1..100}; do
        port=$((20000 + RANDOM % 12000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
    die "found no free port"
}

# until_ready NAME PID LOG COMMAND... repeats COMMAND until it succeeds, for
# 10 seconds at most and while PID lives.
until_ready() {
    local name=$1 pid=$2 log=$3
    shift 3
    for _ in {1..100}; do
        "$@" && return
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 20 "$log" >&2
    die "$name did not become ready"
}

# start_backend sets backend_pid and backend, its host:port.
start_backend() {
    (cd "$root" && go build -o "$work/backend" ./bench/backend)
    "$work/backend" -service-time "${SERVICE_TIME:-0s}" >"$work/backend.log" 2>&1 &
    backend_pid=$!
    pids+=("$backend_pid")
    until_ready "the backend" "$backend_pid" "$work/backend.log" grep -q listening "$work/backend.log"
    backend=$(sed -n 's/.*listening on //p' "$work/backend.log")
}

# start_gateway puts the gateway in front of the backend; it sets gateway_pid
# and front, its host:port.
start_gateway() {
    [ -x "$gateway" ] || die "$gateway is missing; 'make build' makes it"
    front=127.0.0.1:$(free_port)
    local admin
    admin=127.0.0.1:$(free_port)
    # In a folder of its own, so that its state does not outlive the recipe.
    # shellcheck disable=SC2086 # GATEWAY_ARGS is a list of flags
    (cd "$work" && exec "$gateway" run --listen "$front" --upstream "http://$backend" \
        --admin.listen="$admin" ${GATEWAY_ARGS:-}) >"$work/gateway.log" 2>&1 &
    gateway_pid=$!
    pids+=("$gateway_pid")
    until_ready "the gateway" "$gateway_pid" "$work/gateway.log" \
        curl -fs -o /dev/null --max-time 1 "http://$admin/readyz"
}

# cpu_ticks PID prints the clock ticks of CPU time that a process has used.
cpu_ticks() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'
}

# cpu_per_request NAME TICKS REQUESTS prints the CPU time of one request.
cpu_per_request() {
    awk -v name="$1" -v ticks="$2" -v requests="$3" -v hz="$(getconf CLK_TCK)" 'BEGIN {
        if (requests > 0) printf "  CPU per request, %s: %.1f µs\n", name, ticks / hz / requests * 1e6
    }'
}

# bounded COMMAND... runs a load that has its own bound, and ends it should that
# bound fail.
bounded() { timeout 120 "$@"; }

# measure TITLE NAME PID COMMAND... runs one load, prints its output and the
# CPU time per request of PID. The recipe defines how its tool is called (get,
# post) and what it reports (requests_in, failures_in); a failed request fails
# the recipe.
measure() {
    local title=$1 name=$2 pid=$3 before after
    shift 3
    echo "== $title"
    before=$(cpu_ticks "$pid")
    "$@" | tee "$work/out"
    after=$(cpu_ticks "$pid")
    cpu_per_request "$name" $((after - before)) "$(requests_in "$work/out")"
    if failures_in "$work/out"; then
        die "some requests of '$title' failed"
    fi
    echo
}

# measure_all runs the GET and the POST load of the recipe, against the backend
# alone and then through the gateway, so that the difference is the gateway's.
measure_all() {
    start_backend
    start_gateway
    curl -fsS -o /dev/null -H 'Content-Type: application/json' \
        --data-binary "@$bench/charge.json" "http://$backend/v1/charges"
    local list='/v1/charges?limit=1'
    measure "GET, backend alone" backend "$backend_pid" get "http://$backend$list"
    measure "POST, backend alone" backend "$backend_pid" post "http://$backend/v1/charges"
    measure "GET, through the gateway" gateway "$gateway_pid" get "http://$front$list"
    measure "POST, through the gateway" gateway "$gateway_pid" post "http://$front/v1/charges"
}
