//! What the engine counts, for whoever runs it to publish.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters and gauges of one controller.
#[derive(Debug, Default)]
pub struct ControllerMetrics {
    /// Reconciles that ended, however they did.
    pub reconciles: AtomicU64,
    /// Reconciles that failed.
    pub errors: AtomicU64,
    /// Objects that wait or are being worked on.
    pub queue_depth: AtomicU64,
    /// Microseconds spent in reconciles.
    pub busy_micros: AtomicU64,
}

/// Counters of the engine.
#[derive(Debug, Default)]
pub struct Metrics {
    /// The composition controller.
    pub composites: ControllerMetrics,
    /// The driver of `Object`s.
    pub objects: ControllerMetrics,
    /// The driver of `Release`s.
    pub releases: ControllerMetrics,
    /// The controller of usages.
    pub usages: ControllerMetrics,
    /// The driver of clouds' managed resources.
    pub managed: ControllerMetrics,
    /// The controller of provider configs.
    pub provider_configs: ControllerMetrics,
    /// Composed resources that were written.
    pub applied: AtomicU64,
    /// Composed resources that needed no write.
    pub unchanged: AtomicU64,
    /// Composed resources that were no longer wanted and deleted.
    pub collected: AtomicU64,
    /// Kinds being watched, on all API servers.
    pub watches: AtomicU64,
}

impl Metrics {
    /// The controllers by name, in a fixed order.
    pub fn controllers(&self) -> [(&'static str, &ControllerMetrics); 6] {
        [
            ("composite", &self.composites),
            ("object", &self.objects),
            ("release", &self.releases),
            ("usage", &self.usages),
            ("managed", &self.managed),
            ("providerconfig", &self.provider_configs),
        ]
    }

    /// Whether no controller has anything to do right now.
    pub fn is_idle(&self) -> bool {
        self.controllers().iter().all(|(_, metrics)| metrics.queue_depth.load(Ordering::Relaxed) == 0)
    }
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
