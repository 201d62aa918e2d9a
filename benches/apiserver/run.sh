#!/bin/sh
# Compares the API server on a file store with kube-apiserver and etcd, in one run on one machine.
# Needs openssl and, for the comparison, the tools of `just e2e-tools` (MODELPLANE_E2E_BIN may say where they are).
# OBJECTS, WATCHERS, WRITES and ROUNDS may be set (see crates/apiserver/examples/load); SERVER and LOAD may name built
# binaries, DATA a folder on the disk to measure.
set -eu
cd "$(dirname "$0")/../.."
tools="${MODELPLANE_E2E_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/modelplane/e2e}"
examples="${CARGO_TARGET_DIR:-target}/release/examples"
: "${SERVER:=$examples/serve}" "${LOAD:=$examples/load}"
if [ ! -x "$SERVER" ] || [ ! -x "$LOAD" ]; then
    cargo build --release --package modelplane-apiserver --example serve --example load
fi
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"

# Not the system's folder for temporary files, which may be memory: both servers wait for the disk.
directory=$(mktemp -d "${DATA:-target}/bench-apiserver.XXXXXX")
directory=$(cd "$directory" && pwd)
running=""
stop() {
    # At once: without its etcd, kube-apiserver takes long to say goodbye.
    for process in $running; do kill -KILL "$process" 2>/dev/null || true; done
    for process in $running; do wait "$process" 2>/dev/null || true; done
    running=""
}
trap 'stop; rm -rf "$directory"' EXIT
trap 'exit 1' INT TERM

# Waits until a command succeeds.
until_it_does() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "it never came about: $*" >&2; exit 1; }
        sleep 0.2
    done
}

# A port that nothing listens on; the kernel gives none of the range below to outgoing connections.
port() {
    candidate=$1
    while ss -Hltn "sport = :$candidate" 2>/dev/null | grep -q .; do candidate=$((candidate + 1)); done
    echo "$candidate"
}

certificate() {
    name=$1 subject=$2 usage=$3
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$directory/$name.key" \
        -subj "$subject" -out "$directory/$name.csr" 2>/dev/null
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=%s\n' "$usage" > "$directory/$name.ext"
    openssl x509 -req -in "$directory/$name.csr" -CA "$directory/ca.crt" -CAkey "$directory/ca.key" \
        -CAcreateserial -days 2 -extfile "$directory/$name.ext" -out "$directory/$name.crt" 2>/dev/null
}

start_real() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=bench \
        -keyout "$directory/ca.key" -out "$directory/ca.crt" 2>/dev/null
    certificate server /CN=kube-apiserver serverAuth
    certificate admin /O=system:masters/CN=admin clientAuth
    clients=$(port 20379) peers=$(port 21380) secure=$(port 22443)
    "$tools/etcd" --data-dir="$directory/etcd" --log-level=error \
        --listen-client-urls="http://127.0.0.1:$clients" --advertise-client-urls="http://127.0.0.1:$clients" \
        --listen-peer-urls="http://127.0.0.1:$peers" --initial-advertise-peer-urls="http://127.0.0.1:$peers" \
        --initial-cluster="default=http://127.0.0.1:$peers" > "$directory/etcd.log" 2>&1 &
    running="$running $!"
    "$tools/kube-apiserver" --etcd-servers="http://127.0.0.1:$clients" \
        --bind-address=127.0.0.1 --secure-port="$secure" --endpoint-reconciler-type=none \
        --advertise-address=127.0.0.1 \
        --tls-cert-file="$directory/server.crt" --tls-private-key-file="$directory/server.key" \
        --client-ca-file="$directory/ca.crt" --service-account-issuer=https://kubernetes.default.svc \
        --service-account-signing-key-file="$directory/server.key" \
        --service-account-key-file="$directory/server.crt" \
        --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=RBAC > "$directory/kube-apiserver.log" 2>&1 &
    running="$running $!"
    cat > "$directory/real.yaml" <<YAML
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$secure", certificate-authority: "$directory/ca.crt"}}]
users: [{name: u, user: {client-certificate: "$directory/admin.crt", client-key: "$directory/admin.key"}}]
YAML
    until_it_does curl --silent --fail --cacert "$directory/ca.crt" --cert "$directory/admin.crt" \
        --key "$directory/admin.key" "https://127.0.0.1:$secure/readyz"
}

"$SERVER" "$directory/ours.yaml" "$directory/store" 2> "$directory/ours.log" &
running="$!"
until_it_does test -s "$directory/ours.yaml"
if [ -x "$tools/etcd" ] && [ -x "$tools/kube-apiserver" ]; then
    start_real
    "$LOAD" "modelplane=$directory/ours.yaml" "kube-apiserver + etcd=$directory/real.yaml"
else
    echo "SKIPPED: $tools has no etcd and kube-apiserver; there is nothing to compare with" >&2
    "$LOAD" "modelplane=$directory/ours.yaml"
fi
