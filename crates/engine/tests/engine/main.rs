//! The engine over API servers: our own in this process, and where the folder in `MODELPLANE_E2E_BIN` has
//! them, etcd, kube-apiserver and the garbage collector of kube-controller-manager. Tests that need those
//! are skipped without.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests fail loudly and say what they skip")]

mod composites;
mod deletion;
mod fleet;
mod guard;
mod helm;
mod network;
mod objects;
mod player;
mod real;
mod relay;
mod render;
mod support;
