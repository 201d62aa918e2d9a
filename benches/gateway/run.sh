#!/bin/sh
# Compares the gateway with nginx, haproxy and, where it is installed, LiteLLM's proxy, in front of the same endpoint, in
# one run on one machine. Prints a table in Markdown. Needs wrk, nginx, haproxy and python3; for LiteLLM, LITELLM is to
# name the program of a virtual environment (pip install 'litellm[proxy]').
#
# PROXIES, ROUNDS, SECONDS_EACH, RATE, IDLE and STREAMS may be set; `compare.py --help` tells what they mean.
set -eu
cd "$(dirname "$0")/../.."
bench="${BENCH:-${CARGO_TARGET_DIR:-target}/release/examples/gateway_bench}"
[ -n "${BENCH:-}" ] || cargo build --release --package modelplane-gateway --example gateway_bench
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
exec python3 benches/gateway/compare.py "$bench"
