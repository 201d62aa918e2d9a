#!/bin/sh
# Compares the gateway with nginx and haproxy in front of the same endpoint, in one run on one machine.
# Needs wrk, nginx and haproxy. SECONDS_EACH, RATE, IDLE and STREAMS may be set.
set -eu
cd "$(dirname "$0")/../.."
: "${SECONDS_EACH:=5}" "${RATE:=2000}" "${IDLE:=10000}" "${STREAMS:=2000}"
bench="${BENCH:-${CARGO_TARGET_DIR:-target}/release/examples/gateway_bench}"
[ -x "$bench" ] || cargo build --release --package modelplane-gateway --example gateway_bench
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"

# A proxy needs two descriptors for a connection and a few for itself.
most=$(($(ulimit -n) / 2 - 200))
[ "$IDLE" -le "$most" ] || IDLE=$most

directory=$(mktemp -d)
running=""
stop() { for process in $running; do kill "$process" 2>/dev/null || true; done; wait 2>/dev/null || true; running=""; }
trap 'stop; rm -rf "$directory"' EXIT INT TERM

endpoint=127.0.0.1:18000
listen=127.0.0.1:18080

start() {
    "$bench" endpoint $endpoint & running="$!"
    case $1 in
        gateway) "$bench" gateway $listen $endpoint 2 & proxy=$! ;;
        nginx)
            sed "s|@DIR@|$directory|; s|@LISTEN@|$listen|; s|@ENDPOINT@|$endpoint|g" benches/gateway/nginx.conf > "$directory/nginx.conf"
            nginx -c "$directory/nginx.conf" & proxy=$! ;;
        haproxy)
            sed "s|@LISTEN@|$listen|; s|@ENDPOINT@|$endpoint|g; s|@MOST@|$most|" benches/gateway/haproxy.cfg > "$directory/haproxy.cfg"
            haproxy -db -q -f "$directory/haproxy.cfg" & proxy=$! ;;
        none) proxy=$running ;;
    esac
    running="$running $proxy"
    sleep 1
}

# Resident memory of a process and its children, in KiB.
memory() {
    total=0
    for process in $1 $(pgrep -P "$1" || true); do
        size=$(awk '/^VmRSS/ {print $2}' "/proc/$process/status" 2>/dev/null || echo 0)
        total=$((total + size))
    done
    echo "$total"
}

# What a load holds open costs, per connection.
held() {
    before=$(memory "$proxy")
    "$bench" "$1" $listen "$2" 4 > "$directory/held" &
    load=$!
    until grep -q ready "$directory/held" 2>/dev/null; do sleep 0.2; kill -0 $load 2>/dev/null || break; done
    # Long enough for what is released after a moment of idling to be released.
    sleep 3
    after=$(memory "$proxy")
    wait $load || true
    awk -v before="$before" -v after="$after" -v count="$2" 'BEGIN { printf "%.1f KiB each", (after - before) / count }'
    sed -n 's/^first byte/, first byte/p' "$directory/held" | tr -d '\n'
    echo
}

for proxy_name in ${PROXIES:-none gateway nginx haproxy}; do
    echo "== $proxy_name"
    start "$proxy_name"
    target=$listen
    [ "$proxy_name" = none ] && target=$endpoint
    wrk -t1 -c64 -d"$SECONDS_EACH"s --latency -s benches/gateway/request.lua "http://$target/ml-team/chat/v1/chat/completions" \
        | grep -E 'Requests/sec|50%|99%|Non-2xx|Socket errors' | tr -s ' ' | tr '\n' ';'
    echo
    "$bench" rate $target "$RATE" "$SECONDS_EACH"
    if [ "$proxy_name" != none ]; then
        printf '%s idle connections: ' "$IDLE"; held idle "$IDLE"
        stop; start "$proxy_name"
        printf '%s live streams: ' "$STREAMS"; held streams "$STREAMS"
    fi
    stop
done
