//! Running a controller: workers that take objects off its queue, with back-off and counting.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use modelplane_core::simulate::ObjectKey;
use tokio::task::JoinSet;

use crate::client::ClientError;
use crate::metrics::{ControllerMetrics, count};
use crate::queue::WorkQueue;

/// The wait from which on a failure is no longer one of coming up.
const PERSISTS: Duration = Duration::from_secs(3);
/// Longest time, at first, between two looks for what is on its way.
const WAITING_BACKOFF: Duration = Duration::from_millis(800);

/// When an object is looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Once something changes.
    OnChange,
    /// After that time, or once something changes.
    After(Duration),
}

/// Why a reconcile did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A request failed.
    #[error("{action}: {source}")]
    Request {
        /// What was tried.
        action: &'static str,
        /// What the API server said.
        source: ClientError,
    },
    /// Some things were done and others not, as the object's status says; trying again may help.
    #[error("{0}")]
    Incomplete(String),
    /// Something is not there yet, and on its way as a rule.
    #[error("{0}")]
    Waiting(String),
    /// Anything else, already explained.
    #[error("{0}")]
    Other(String),
}

/// Something that brings objects into the state they ask for.
pub trait Controller: Send + Sync + 'static {
    /// Its name, for logs.
    const NAME: &'static str;

    /// Looks at one object and does what is to be done.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<Next, ReconcileError>> + Send;

    /// Its counters.
    fn metrics(&self) -> &ControllerMetrics;
}

/// Says what was tried when a request failed.
pub(crate) trait Trying<T> {
    /// The same with what was tried.
    fn trying(self, action: &'static str) -> Result<T, ReconcileError>;
}

impl<T> Trying<T> for Result<T, ClientError> {
    fn trying(self, action: &'static str) -> Result<T, ReconcileError> {
        self.map_err(|source| ReconcileError::Request { action, source })
    }
}

impl ReconcileError {
    /// Whether somebody else was faster, so that trying again at once is right.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Request { source, .. } if source.is_conflict())
    }
}

/// Starts `workers` workers.
pub(crate) fn run<C: Controller>(
    controller: &Arc<C>,
    queue: &WorkQueue,
    workers: usize,
    tasks: &mut JoinSet<()>,
) {
    for _ in 0..workers {
        let (controller, queue) = (Arc::clone(controller), queue.clone());
        tasks.spawn(async move {
            while let Some(key) = queue.next().await {
                work(controller.as_ref(), &queue, &key).await;
                queue.done(&key);
                controller.metrics().queue_depth.store(queue.depth() as u64, Ordering::Relaxed);
            }
        });
    }
}

async fn work<C: Controller>(controller: &C, queue: &WorkQueue, key: &ObjectKey) {
    let metrics = controller.metrics();
    metrics.queue_depth.store(queue.depth() as u64, Ordering::Relaxed);
    let start = Instant::now();
    let outcome = AssertUnwindSafe(controller.reconcile(key)).catch_unwind().await;
    let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    metrics.busy_micros.fetch_add(micros, Ordering::Relaxed);
    count(&metrics.reconciles);
    let error = match outcome {
        Ok(Ok(next)) => {
            queue.succeeded(key);
            if let Next::After(delay) = next {
                queue.add_after(key.clone(), delay);
            }
            tracing::debug!(controller = C::NAME, object = %key, micros, "reconciled");
            return;
        }
        Ok(Err(error)) => error,
        Err(_) => ReconcileError::Other("internal error; please report this".to_owned()),
    };
    if error.is_conflict() {
        let delay = queue.add_after_failure(key.clone());
        tracing::debug!(controller = C::NAME, object = %key, %error, ?delay, "somebody else was faster");
        return;
    }
    count(&metrics.errors);
    let delay = if matches!(error, ReconcileError::Waiting(_)) {
        queue.add_after_failure_within(key.clone(), WAITING_BACKOFF)
    } else {
        queue.add_after_failure(key.clone())
    };
    // A fleet that comes up waits for itself in many places; what goes on for longer is worth a line.
    if delay < PERSISTS {
        tracing::debug!(controller = C::NAME, object = %key, %error, ?delay, "reconcile failed");
    } else {
        tracing::warn!(controller = C::NAME, object = %key, %error, ?delay, "reconcile keeps failing");
    }
}
