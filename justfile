# Everything one does with this repository. `just` lists it.

default:
    @just --list

# Format all code
fmt:
    cargo fmt --all

# Lints as CI runs them
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# All tests
test:
    cargo test --workspace --locked

# Make everything that is generated from the Rust types
generate:
    cargo xtask generate

# Rules that compilers do not check
tidy:
    cargo xtask tidy

# Licences and advisories (needs cargo-deny)
deny:
    cargo deny check

# Benchmarks; results belong in docs/benchmarks.md
bench *ARGS:
    cargo bench --workspace {{ARGS}}

# One fuzz target for some seconds (needs nightly and cargo-fuzz)
fuzz CRATE TARGET SECONDS="60":
    cd crates/{{CRATE}} && ASAN_OPTIONS=detect_leaks=0 cargo +nightly fuzz run {{TARGET}} -- -max_total_time={{SECONDS}}

# Build the real binaries for `just e2e` (needs Go); prints where they are
e2e-tools:
    e2e/tools/build

# Run against real Kubernetes and Crossplane; see e2e/README.md
e2e *ARGS:
    cargo build --locked --package modelplane-cli --package e2e
    cargo run --locked --quiet --package e2e -- {{ARGS}}

# What CI runs
ci:
    bash .ci/run
