//! What the engine counts, for whoever runs it to publish: a collector of `prometheus_client`.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

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

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let of_all: [(&str, &str, &AtomicU64); 3] = [
            ("engine_applied", "Composed resources that were written", &self.applied),
            ("engine_unchanged", "Composed resources that needed no write", &self.unchanged),
            ("engine_collected", "Composed resources that were deleted as no longer wanted", &self.collected),
        ];
        for (name, help, counter) in of_all {
            let counter = ConstCounter::new(read(counter));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let watches = ConstGauge::new(read(&self.watches));
        let help = "Kinds being watched, on all API servers";
        watches.encode(encoder.encode_descriptor("engine_watches", help, None, watches.metric_type())?)?;

        let count = |counter: &AtomicU64| ConstCounter::new(read(counter));
        let help = "Reconciles that ended, however they did";
        self.encode_each(&mut encoder, ("engine_reconciles", help, None), |one| count(&one.reconciles))?;
        let help = "Reconciles that failed";
        self.encode_each(&mut encoder, ("engine_reconcile_errors", help, None), |one| count(&one.errors))?;
        let help = "Time spent in reconciles";
        self.encode_each(&mut encoder, ("engine_reconcile", help, Some(&Unit::Seconds)), |one| {
            ConstCounter::new(Duration::from_micros(read(&one.busy_micros)).as_secs_f64())
        })?;
        let help = "Objects that wait for a reconcile or are in one";
        self.encode_each(&mut encoder, ("engine_queue_depth", help, None), |one| {
            ConstGauge::new(read(&one.queue_depth))
        })
    }
}

impl Metrics {
    /// Encodes one metric of each controller; it is described by its name, its help and its unit.
    fn encode_each<M: EncodeMetric>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help, unit): (&str, &str, Option<&Unit>),
        metric: impl Fn(&ControllerMetrics) -> M,
    ) -> fmt::Result {
        let metrics = self.controllers().map(|(controller, of)| (controller, metric(of)));
        let mut family = encoder.encode_descriptor(name, help, unit, metrics[0].1.metric_type())?;
        for (controller, metric) in metrics {
            metric.encode(family.encode_family(&[("controller", controller)])?)?;
        }
        Ok(())
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn what_is_counted_is_published() {
        let metrics = Metrics::default();
        count(&metrics.applied);
        count(&metrics.objects.reconciles);
        metrics.objects.busy_micros.store(1_500_000, Ordering::Relaxed);
        metrics.usages.queue_depth.store(7, Ordering::Relaxed);
        let mut registry = Registry::default();
        registry.register_collector(Box::new(std::sync::Arc::new(metrics)));
        let mut text = String::new();
        encode(&mut text, &registry).expect("it is encoded");
        for line in [
            "engine_applied_total 1",
            "engine_reconciles_total{controller=\"object\"} 1",
            "engine_reconcile_seconds_total{controller=\"object\"} 1.5",
            "engine_queue_depth{controller=\"usage\"} 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
