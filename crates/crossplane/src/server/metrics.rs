//! Prometheus metrics of the function server.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: String,
}

/// Counts and times calls.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    calls: Family<KindLabel, Counter>,
    fatal: Family<KindLabel, Counter>,
    refused: Counter,
    latency: Family<KindLabel, Histogram>,
    request_bytes: Family<KindLabel, Histogram>,
}

/// 100 µs to 6.5 s.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(1e-4, 4.0, 9))
}

/// 1 KiB to 64 MiB.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1024.0, 4.0, 9))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics with nothing counted yet.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("modelplane_function");
        let calls = Family::default();
        registry.register("calls", "Calls answered, by kind of the composite", calls.clone());
        let fatal = Family::default();
        registry.register("fatal_results", "Calls answered with a fatal result", fatal.clone());
        let refused = Counter::default();
        registry.register("refused_calls", "Calls whose message is no RunFunctionRequest", refused.clone());
        let latency = Family::new_with_constructor(seconds as fn() -> Histogram);
        registry.register("latency_seconds", "Time from request to response", latency.clone());
        let request_bytes = Family::new_with_constructor(sizes as fn() -> Histogram);
        registry.register("request_bytes", "Size of requests", request_bytes.clone());
        Self { registry, calls, fatal, refused, latency, request_bytes }
    }

    /// Counts an answered call.
    pub(super) fn answered(&self, kind: &str, request_bytes: usize, elapsed: Duration, fatal: bool) {
        let label = KindLabel { kind: kind.to_owned() };
        self.calls.get_or_create(&label).inc();
        self.latency.get_or_create(&label).observe(elapsed.as_secs_f64());
        self.request_bytes.get_or_create(&label).observe(request_bytes as f64);
        if fatal {
            self.fatal.get_or_create(&label).inc();
        }
    }

    /// Counts a call that could not be read.
    pub(super) fn refused(&self) {
        self.refused.inc();
    }

    /// The metrics in OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(_) => String::new(),
        }
    }
}
