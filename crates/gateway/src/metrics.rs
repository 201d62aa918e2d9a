//! Counters of the data plane and their text (Prometheus exposition format 0.0.4).
//!
//! Series are found once, when a table is built, and counted with atomics; nothing on a request's way takes a lock.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::endpoint::locked;
use crate::usage::Usage;

/// Upper bounds of durations, in seconds.
const SECONDS: [f64; 18] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    600.0,
];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Its value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How often durations fell below bounds.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// One more than there are bounds, for what is above all.
    buckets: [Counter; SECONDS.len() + 1],
    microseconds: Counter,
}

impl Histogram {
    /// Takes in a duration.
    pub(crate) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = SECONDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].add(1);
        self.microseconds.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
}

/// What is counted of one service on one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// Responses by the first digit of their status.
    pub(crate) responses: [Counter; 6],
    /// From the request to the end of the response.
    pub(crate) duration: Histogram,
    /// From the request to the first byte of the response's body.
    pub(crate) first_token: Histogram,
    /// Between two tokens of a stream, on average over the stream.
    pub(crate) token_interval: Histogram,
    /// Responses that broke off.
    pub(crate) broken: Counter,
    /// Attempts repeated elsewhere.
    pub(crate) retries: Counter,
    /// Requests that came here because a preferred tier was full.
    pub(crate) overflows: Counter,
    /// Times the endpoint was ejected.
    pub(crate) ejections: Counter,
    /// Connections made.
    pub(crate) connections: Counter,
    /// Tokens used.
    pub(crate) tokens: Tokens,
}

/// Counted tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    prompt: Counter,
    completion: Counter,
    cached: Counter,
}

impl Tokens {
    /// Takes in an exchange's tokens.
    pub(crate) fn add(&self, usage: Usage) {
        self.prompt.add(usage.prompt);
        self.completion.add(usage.completion);
        self.cached.add(usage.cached);
    }

    fn kinds(&self) -> [(&'static str, u64); 3] {
        [("prompt", self.prompt.get()), ("completion", self.completion.get()), ("cached", self.cached.get())]
    }
}

/// `namespace/name` of a caller's Secret, and of a service.
type CallerAndService = (String, Arc<str>);

/// Counters of the whole gateway.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers the gateway gave itself, by `error.code`.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    /// Tokens by caller and service.
    callers: Mutex<BTreeMap<CallerAndService, Tokens>>,
    /// Connections from clients, ever.
    pub(crate) accepted: Counter,
    /// Connections from clients that have ended.
    pub(crate) ended: Counter,
    /// Requests that were no HTTP.
    pub(crate) malformed: Counter,
}

/// What is read off the gateway at the moment its metrics are asked for.
pub(crate) struct Gauges {
    /// Parts of the configuration that cannot be used.
    pub(crate) problems: usize,
    /// Bytes of requests' bodies that are kept.
    pub(crate) kept_bytes: usize,
}

impl Metrics {
    /// Counts a refusal.
    pub(crate) fn refused(&self, code: &'static str) {
        *locked(&self.refusals).entry(code).or_default() += 1;
    }

    /// Counts a caller's tokens.
    pub(crate) fn used(&self, caller: &str, service: &Arc<str>, usage: Usage) {
        locked(&self.callers).entry((caller.to_owned(), service.clone())).or_default().add(usage);
    }
}

/// The series of one service on one endpoint, with its names and what is read off the endpoint.
pub(crate) struct Row {
    /// The service.
    pub(crate) service: Arc<str>,
    /// The endpoint.
    pub(crate) endpoint: Arc<str>,
    /// The counters.
    pub(crate) series: Arc<Series>,
    /// Requests in flight.
    pub(crate) in_flight: u32,
    /// Requests waiting in the engine.
    pub(crate) queued: u32,
    /// Whether it takes traffic.
    pub(crate) healthy: bool,
}

/// One metric of a series.
struct Family {
    name: &'static str,
    help: &'static str,
    read: fn(&Row) -> u64,
    kind: &'static str,
}

const FAMILIES: [Family; 8] = [
    Family {
        name: "retries_total",
        help: "Attempts repeated elsewhere.",
        read: |row| row.series.retries.get(),
        kind: "counter",
    },
    Family {
        name: "overflows_total",
        help: "Requests that came to the endpoint because a preferred tier was full.",
        read: |row| row.series.overflows.get(),
        kind: "counter",
    },
    Family {
        name: "ejections_total",
        help: "Times the endpoint was ejected.",
        read: |row| row.series.ejections.get(),
        kind: "counter",
    },
    Family {
        name: "broken_responses_total",
        help: "Responses that broke off.",
        read: |row| row.series.broken.get(),
        kind: "counter",
    },
    Family {
        name: "endpoint_connections_total",
        help: "Connections made to the endpoint.",
        read: |row| row.series.connections.get(),
        kind: "counter",
    },
    Family {
        name: "requests_in_flight",
        help: "Requests in flight at the endpoint.",
        read: |row| row.in_flight.into(),
        kind: "gauge",
    },
    Family {
        name: "requests_queued",
        help: "Requests waiting in the endpoint's engine: as it reports, else those that wait for their first byte.",
        read: |row| row.queued.into(),
        kind: "gauge",
    },
    Family {
        name: "endpoint_healthy",
        help: "1 unless the endpoint is ejected after failures.",
        read: |row| row.healthy.into(),
        kind: "gauge",
    },
];

/// A histogram of a series.
struct HistogramFamily {
    name: &'static str,
    help: &'static str,
    read: fn(&Series) -> &Histogram,
}

const HISTOGRAMS: [HistogramFamily; 3] = [
    HistogramFamily {
        name: "request_duration_seconds",
        help: "From the request to the end of the response.",
        read: |series| &series.duration,
    },
    HistogramFamily {
        name: "time_to_first_token_seconds",
        help: "From the request to the first byte of the response's body.",
        read: |series| &series.first_token,
    },
    HistogramFamily {
        name: "inter_token_latency_seconds",
        help: "Between two events of a stream, on average over the stream.",
        read: |series| &series.token_interval,
    },
];

/// The text of all metrics.
pub(crate) fn render(metrics: &Metrics, rows: &[Row], gauges: &Gauges) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    write(&mut text, metrics, rows, gauges).ok();
    text
}

fn write(text: &mut String, metrics: &Metrics, rows: &[Row], gauges: &Gauges) -> fmt::Result {
    head(text, "responses_total", "Responses passed on, by class of status.", "counter")?;
    for row in rows {
        for (class, count) in row.series.responses.iter().enumerate().filter(|(_, count)| count.get() > 0) {
            writeln!(
                text,
                "modelplane_gateway_responses_total{{{},code=\"{class}xx\"}} {}",
                labels(row),
                count.get()
            )?;
        }
    }
    for family in &FAMILIES {
        head(text, family.name, family.help, family.kind)?;
        for row in rows {
            writeln!(text, "modelplane_gateway_{}{{{}}} {}", family.name, labels(row), (family.read)(row))?;
        }
    }
    for family in &HISTOGRAMS {
        head(text, family.name, family.help, "histogram")?;
        for row in rows {
            histogram(text, family.name, &labels(row), (family.read)(&row.series))?;
        }
    }
    head(text, "tokens_total", "Tokens used, by endpoint.", "counter")?;
    for row in rows {
        for (kind, count) in row.series.tokens.kinds() {
            writeln!(text, "modelplane_gateway_tokens_total{{{},kind=\"{kind}\"}} {count}", labels(row))?;
        }
    }
    head(text, "caller_tokens_total", "Tokens used, by caller.", "counter")?;
    for ((caller, service), tokens) in &*locked(&metrics.callers) {
        for (kind, count) in tokens.kinds() {
            let labels = format!("caller=\"{}\",service=\"{}\"", escaped(caller), escaped(service));
            writeln!(text, "modelplane_gateway_caller_tokens_total{{{labels},kind=\"{kind}\"}} {count}")?;
        }
    }
    head(text, "refusals_total", "Requests the gateway answered itself, by error code.", "counter")?;
    for (code, count) in &*locked(&metrics.refusals) {
        writeln!(text, "modelplane_gateway_refusals_total{{code=\"{code}\"}} {count}")?;
    }
    let open = metrics.accepted.get().saturating_sub(metrics.ended.get());
    let singles = [
        (
            "malformed_requests_total",
            "Requests refused because they were no HTTP.",
            "counter",
            metrics.malformed.get(),
        ),
        ("client_connections_total", "Connections accepted from clients.", "counter", metrics.accepted.get()),
        ("client_connections", "Connections from clients.", "gauge", open),
        (
            "kept_body_bytes",
            "Memory held by beginnings of requests' bodies.",
            "gauge",
            gauges.kept_bytes as u64,
        ),
        (
            "configuration_problems",
            "Objects that cannot be used; /debug/routes names them.",
            "gauge",
            gauges.problems as u64,
        ),
    ];
    for (name, help, kind, value) in singles {
        head(text, name, help, kind)?;
        writeln!(text, "modelplane_gateway_{name} {value}")?;
    }
    Ok(())
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) -> fmt::Result {
    writeln!(text, "# HELP modelplane_gateway_{name} {help}\n# TYPE modelplane_gateway_{name} {kind}")
}

fn labels(row: &Row) -> String {
    format!("service=\"{}\",endpoint=\"{}\"", escaped(&row.service), escaped(&row.endpoint))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn histogram(text: &mut String, name: &str, labels: &str, histogram: &Histogram) -> fmt::Result {
    let mut count = 0;
    for (bucket, bound) in histogram.buckets.iter().zip(&SECONDS) {
        count += bucket.get();
        writeln!(text, "modelplane_gateway_{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
    }
    count += histogram.buckets[SECONDS.len()].get();
    let sum = histogram.microseconds.get() as f64 / 1e6;
    writeln!(text, "modelplane_gateway_{name}_bucket{{{labels},le=\"+Inf\"}} {count}")?;
    writeln!(
        text,
        "modelplane_gateway_{name}_sum{{{labels}}} {sum}\nmodelplane_gateway_{name}_count{{{labels}}} {count}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_bounds_them() {
        let sample = Histogram::default();
        for milliseconds in [1, 2, 1_000, 700_000] {
            sample.observe(Duration::from_millis(milliseconds));
        }
        let mut text = String::new();
        histogram(&mut text, "x", "a=\"b\"", &sample).unwrap();
        for line in [
            "modelplane_gateway_x_bucket{a=\"b\",le=\"0.001\"} 1",
            "modelplane_gateway_x_bucket{a=\"b\",le=\"0.0025\"} 2",
            "modelplane_gateway_x_bucket{a=\"b\",le=\"1\"} 3",
            "modelplane_gateway_x_bucket{a=\"b\",le=\"600\"} 3",
            "modelplane_gateway_x_bucket{a=\"b\",le=\"+Inf\"} 4",
            "modelplane_gateway_x_sum{a=\"b\"} 701.003",
            "modelplane_gateway_x_count{a=\"b\"} 4",
        ] {
            assert!(text.lines().any(|got| got == line), "{line} in {text}");
        }
    }
}
