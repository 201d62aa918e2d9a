//! Counters of requests, watches and the store, in the Prometheus text format at `/metrics`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use modelplane_store::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::profile;
use crate::registry::Resource;

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LatencyLabels {
    verb: &'static str,
    resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabels {
    resource: String,
}

type Latencies = Family<LatencyLabels, Histogram, fn() -> Histogram>;

/// The server's metrics.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    latencies: Latencies,
    watchers: Family<ResourceLabels, Gauge>,
    revision: Gauge<u64, AtomicU64>,
    compacted: Gauge<u64, AtomicU64>,
    by_verb: profile::Latencies,
    open_watches: Arc<AtomicUsize>,
}

/// Counts a watcher until it is dropped.
pub(crate) struct WatcherGuard(Gauge, Arc<AtomicUsize>);

impl WatcherGuard {
    /// The watches on the same resource, this one included.
    pub(crate) fn watches(&self) -> i64 {
        self.0.get()
    }
}

impl Drop for WatcherGuard {
    fn drop(&mut self) {
        self.0.dec();
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Metrics at zero.
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::default();
        let requests = Family::default();
        registry.register(
            "apiserver_request",
            "Requests by verb, resource and status code",
            requests.clone(),
        );
        let latencies: Latencies = Family::new_with_constructor(|| Histogram::new(BUCKETS));
        registry.register(
            "apiserver_request_duration_seconds",
            "Time to the response's head; watches excluded",
            latencies.clone(),
        );
        let watchers = Family::default();
        registry.register("apiserver_watchers", "Open watches by resource", watchers.clone());
        let revision = Gauge::default();
        registry.register("store_revision", "The latest revision", revision.clone());
        let compacted = Gauge::default();
        registry.register("store_compacted_revision", "The oldest revision kept", compacted.clone());
        Metrics {
            registry: Mutex::new(registry),
            requests,
            latencies,
            watchers,
            revision,
            compacted,
            by_verb: profile::Latencies::default(),
            open_watches: Arc::default(),
        }
    }

    /// Counts a finished request.
    pub(crate) fn request(&self, verb: &'static str, resource: &str, code: u16, took: Duration) {
        let resource = resource.to_owned();
        self.by_verb.observe(verb, took);
        if verb != "watch" {
            let labels = LatencyLabels { verb, resource: resource.clone() };
            self.latencies.get_or_create(&labels).observe(took.as_secs_f64());
        }
        self.requests.get_or_create(&RequestLabels { verb, resource, code }).inc();
    }

    /// Counts a watch while the guard lives.
    pub(crate) fn watcher(&self, resource: &Resource) -> WatcherGuard {
        let gauge = self.watchers.get_or_create_owned(&ResourceLabels { resource: resource.qualified() });
        gauge.inc();
        self.open_watches.fetch_add(1, Ordering::Relaxed);
        WatcherGuard(gauge, Arc::clone(&self.open_watches))
    }

    /// Requests by verb.
    pub(crate) fn latencies(&self) -> &profile::Latencies {
        &self.by_verb
    }

    /// The open watches.
    pub(crate) fn watches(&self) -> usize {
        self.open_watches.load(Ordering::Relaxed)
    }

    /// All metrics as text.
    pub(crate) fn text(&self, store: &Store) -> String {
        self.revision.set(store.revision());
        self.compacted.set(store.compacted());
        let mut text = String::new();
        // Writing to memory cannot fail.
        let _ = encode(&mut text, &self.registry());
        text
    }

    /// Publishes what something beside the server counts, too.
    pub(crate) fn publish(&self, collector: Box<dyn Collector>) {
        self.registry().register_collector(collector);
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
