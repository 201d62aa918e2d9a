//! Where routes come from.

pub mod kubernetes;
pub mod translate;

use std::sync::Arc;

use crate::routes::config::Snapshot;
use crate::server::Shared;

/// Publishes what the gateway routes, again and again as it changes.
pub trait RouteSource: Send + 'static {
    /// Runs until the gateway stops and drops the future.
    fn run(self, sink: RouteSink) -> impl Future<Output = ()> + Send;
}

/// A snapshot is a source that never changes.
impl RouteSource for Snapshot {
    async fn run(self, sink: RouteSink) {
        sink.publish(&self);
        std::future::pending().await
    }
}

/// Where a source publishes.
#[derive(Clone, Debug)]
pub struct RouteSink(pub(crate) Arc<Shared>);

impl RouteSink {
    /// Routes by a snapshot from now on. Requests under way finish as they were routed.
    pub fn publish(&self, snapshot: &Snapshot) {
        self.0.publish(snapshot);
    }
}
