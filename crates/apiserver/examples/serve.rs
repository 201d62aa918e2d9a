//! The API server alone, for benchmarks and for trying things out:
//! `cargo run --release -p modelplane-apiserver --example serve -- <kubeconfig to write> [<store file>]`.
//!
//! Without a store file it keeps nothing. It serves a free loopback port until it is interrupted.

#![expect(clippy::print_stderr, reason = "it is a command")]

use std::error::Error;

use modelplane_apiserver::{ApiServer, DataLocation, Identity, Options, Profile};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let kubeconfig = arguments.next().ok_or("name a file for the kubeconfig")?;
    let mut options = Options::in_memory(Profile::Workload);
    options.debug_profile = true;
    if let Some(store) = arguments.next() {
        options.data = DataLocation::File(store.into());
    }
    let server = ApiServer::start(options).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}", listener.local_addr()?);
    std::fs::write(&kubeconfig, server.kubeconfig(&Identity::admin(), &url)?)?;
    eprintln!("serving {url}");
    let interrupted = async {
        // Without signals it runs until it is killed.
        let _ = tokio::signal::ctrl_c().await;
    };
    server.serve(listener, interrupted).await?;
    server.shutdown().await;
    Ok(())
}
