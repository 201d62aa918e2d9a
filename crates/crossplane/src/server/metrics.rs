//! Prometheus metrics of the function server.

use std::time::Duration;

use modelplane_core::contract::Scheduled;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::standing::Standing;
use crate::Answer;

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
    response_bytes: Family<KindLabel, Histogram>,
    selector_evaluations: Counter,
    standing: Standing,
    placed: Gauge,
    unplaced: Gauge,
    lost_spans: Counter,
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
        let response_bytes = Family::new_with_constructor(sizes as fn() -> Histogram);
        registry.register("response_bytes", "Size of responses", response_bytes.clone());
        let selector_evaluations = Counter::default();
        registry.register(
            "selector_evaluations",
            "Selectors evaluated on devices",
            selector_evaluations.clone(),
        );
        let placed = Gauge::default();
        registry.register(
            "placed_replicas",
            "Replicas with a place, by the deployments' last calls",
            placed.clone(),
        );
        let unplaced = Gauge::default();
        registry.register(
            "unplaced_replicas",
            "Replicas asked for without a place, by the deployments' last calls",
            unplaced.clone(),
        );
        let lost_spans = Counter::default();
        registry.register("lost_spans", "Spans the trace collector did not get", lost_spans.clone());
        Self {
            registry,
            calls,
            fatal,
            refused,
            latency,
            request_bytes,
            response_bytes,
            selector_evaluations,
            standing: Standing::default(),
            placed,
            unplaced,
            lost_spans,
        }
    }

    /// Counts an answered call.
    pub(super) fn answered(&self, answer: &Answer, request_bytes: usize, elapsed: Duration) {
        let label = KindLabel { kind: known_kind(&answer.kind).to_owned() };
        self.calls.get_or_create(&label).inc();
        self.latency.get_or_create(&label).observe(elapsed.as_secs_f64());
        self.request_bytes.get_or_create(&label).observe(request_bytes as f64);
        self.response_bytes.get_or_create(&label).observe(answer.bytes.len() as f64);
        if answer.fatal.is_some() {
            self.fatal.get_or_create(&label).inc();
        }
        self.selector_evaluations.inc_by(answer.work.selector_evaluations);
        if let Some(scheduled) = answer.work.replicas {
            self.standing.record(&answer.namespace, &answer.name, scheduled);
        }
    }

    /// Counts spans the collector did not get.
    pub(super) fn spans_lost(&self, count: usize) {
        self.lost_spans.inc_by(count as u64);
    }

    /// Counts a call that could not be read.
    pub(super) fn refused(&self) {
        self.refused.inc();
    }

    /// The metrics in OpenMetrics text format.
    pub fn encode(&self) -> String {
        let Scheduled { placed, unplaced } = self.standing.total();
        self.placed.set(placed.cast_signed());
        self.unplaced.set(unplaced.cast_signed());
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(_) => String::new(),
        }
    }
}

/// The kind as a label: what callers make up must not become time series.
fn known_kind(kind: &str) -> &str {
    if modelplane_api::kind::ALL.iter().any(|known| known.kind == kind) { kind } else { "unknown" }
}
