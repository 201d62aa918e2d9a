//! What long-running commands share: the runtime, the log, and the signal to stop.

use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::outcome::CommandError;

/// A runtime with a thread for each core.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::new(format!("cannot start the runtime: {error}")))
}

/// Logs lines for people to stderr.
pub(crate) fn start_logging(debug: bool, usual: LevelFilter) {
    let level = if debug { LevelFilter::DEBUG } else { usual };
    // The transport's own debugging drowns everything else.
    let filter = Targets::new().with_default(LevelFilter::WARN).with_target("modelplane", level);
    let targets = ["apiserver", "engine", "gateway", "simulator", "store", "core", "cli"]
        .map(|name| (format!("modelplane_{name}"), level));
    let filter = filter.with_targets(targets);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).without_time();
    tracing_subscriber::registry().with(filter).with(lines).init();
}

/// Done once the process is asked to stop.
pub(crate) async fn asked_to_stop() {
    let interrupted = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminated) => {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
        Err(_) => drop(interrupted.await),
    }
}
