//! The function server as Crossplane sees it: gRPC over loopback.

mod calls;
#[path = "../../../core/benches/support/fleet.rs"]
mod fleet;
mod limits;
mod support;
mod telemetry;
mod tls;
