//! What happens by itself: garbage collection, the end of namespaces and definitions, aggregated roles, the
//! expiry of events.
//!
//! Each controller is a task that follows the store and acts through the server's own API, as a client would.
//! They keep no state that a restart would lose: everything is worked out from the objects.

mod aggregation;
mod client;
mod definitions;
mod expiry;
mod feed;
mod garbage;
mod graph;
mod namespaces;

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::core::Core;

/// The running controllers of a server; they stop when this is dropped.
pub(crate) struct Controllers {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// Becomes true when controllers are to stop.
pub(crate) type Stop = watch::Receiver<bool>;

impl Controllers {
    /// Starts all controllers; needs a runtime.
    pub(crate) fn start(core: &Arc<Core>) -> Controllers {
        let (stop, stopping) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(garbage::run(Arc::clone(core), stopping.clone()));
        tasks.spawn(namespaces::run(Arc::clone(core), stopping.clone()));
        tasks.spawn(definitions::run(Arc::clone(core), stopping.clone()));
        tasks.spawn(aggregation::run(Arc::clone(core), stopping.clone()));
        tasks.spawn(expiry::run(Arc::clone(core), stopping));
        Controllers { stop, tasks }
    }

    /// Lets every controller finish what it is doing.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(finished) = self.tasks.join_next().await {
            if let Err(error) = finished {
                tracing::error!(%error, "a controller failed");
            }
        }
    }
}

/// Resolves when controllers are to stop.
async fn stopped(stop: &mut Stop) {
    // An error means that the sender is gone, which stops as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests;
