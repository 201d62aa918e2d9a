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
fuzz TARGET SECONDS="60":
    cd crates/cel && cargo +nightly fuzz run {{TARGET}} -- -max_total_time={{SECONDS}}

# What CI runs
ci:
    bash .ci/run
