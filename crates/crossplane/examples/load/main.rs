//! Loads a function server over gRPC, as Crossplane would.
//!
//! ```text
//! cargo build --release -p modelplane-cli
//! cargo run --release -p modelplane-crossplane --example load -- figures target/release/modelplane
//! cargo run --release -p modelplane-crossplane --example load -- soak target/release/modelplane 10
//! ```
//!
//! `figures` prints what docs/benchmarks.md records: time to listening, idle memory, latency at two sizes of fleet,
//! calls per second. `soak MINUTES` sends calls of every size, 1 in 20 of them malformed, as fast as they are
//! answered, and ends with exit code 1 if a well-formed call failed or memory grew (Linux only).

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

mod client;
mod figures;
#[path = "../../../core/benches/support/fleet.rs"]
mod fleet;
mod server;
mod soak;

use std::error::Error;
use std::path::Path;

/// Errors end the program; nothing handles them by kind.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: load figures|soak PROGRAM [MINUTES]";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["figures", program] => figures::run(Path::new(program)).await,
        ["soak", program, minutes] => soak::run(Path::new(program), minutes.parse()?).await,
        _ => Err(USAGE.into()),
    }
}
