//! OpenTelemetry traces, if they are asked for: a span per call with a child for each of its parts, sent in batches
//! to a collector over OTLP/gRPC ([`super::otlp`]).
//!
//! A call never waits for the collector. What does not fit the queue, or cannot be delivered, is counted and dropped.
//! A caller's `traceparent` (W3C Trace Context) is the parent; if it says "not sampled", there is no span.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::crypto::SecureRandom;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use super::codec::BytesCodec;
use super::metrics::Metrics;
use super::otlp;
use crate::Answer;

/// Spans waiting to be sent.
const QUEUE: usize = 4096;
/// Calls in one batch, at most.
const BATCH: usize = 256;
/// How long a batch waits for more.
const LINGER: Duration = Duration::from_secs(2);
/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Where traces go.
#[derive(Debug, Clone)]
pub struct Collector {
    /// `http://host:4317` or `https://…`.
    pub endpoint: String,
    /// Authority of an https collector, as PEM.
    pub authority: Option<PathBuf>,
}

/// Why a collector cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// Its address is none.
    #[error("{endpoint:?} is not the address of a collector; write http://HOST:4317 or https://HOST:4317")]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// An https collector needs an authority to trust.
    #[error("{endpoint} needs --otlp-certificate: this program brings no certificate authorities")]
    NoAuthority {
        /// The collector.
        endpoint: String,
    },
    /// The authority cannot be read.
    #[error("cannot read {path}")]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The authority cannot be used.
    #[error("TLS for the collector cannot be set up")]
    Tls(#[from] tonic::transport::Error),
}

/// Identifies a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanContext {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    sampled: bool,
}

/// A span of a call that has begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    pub(super) context: SpanContext,
    pub(super) parent: Option<[u8; 8]>,
    pub(super) started: SystemTime,
}

/// A call as its span tells it.
#[derive(Debug)]
pub(super) struct CallSpan {
    pub(super) begun: Begun,
    /// One more span for each part of the call.
    pub(super) parts: [[u8; 8]; 3],
    pub(super) elapsed: Duration,
    pub(super) answer: Summary,
    pub(super) request_bytes: usize,
}

/// The answer without its bytes.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) tag: String,
    pub(super) fatal: Option<String>,
    pub(super) work: modelplane_core::contract::Work,
    pub(super) timings: crate::Timings,
    pub(super) response_bytes: usize,
}

/// Hands spans to the task that sends them.
#[derive(Debug, Clone)]
pub(super) struct Tracer {
    queue: mpsc::Sender<CallSpan>,
    random: &'static dyn SecureRandom,
    metrics: Arc<Metrics>,
}

impl Tracer {
    /// Starts sending; the task ends once all tracers are gone and what they handed over is sent.
    pub(super) fn start(
        collector: &Collector,
        metrics: Arc<Metrics>,
    ) -> Result<(Self, JoinHandle<()>), CollectorError> {
        let channel = connect(collector)?;
        let (queue, spans) = mpsc::channel(QUEUE);
        let task = tokio::spawn(send_all(channel, spans, Arc::clone(&metrics)));
        let random = rustls::crypto::ring::default_provider().secure_random;
        Ok((Self { queue, random, metrics }, task))
    }

    /// Begins the span of a call; none if the caller does not want it sampled.
    pub(super) fn begin(&self, traceparent: Option<&str>) -> Option<Begun> {
        let parent = traceparent.and_then(SpanContext::parse);
        if parent.is_some_and(|parent| !parent.sampled) {
            return None;
        }
        let trace = match parent {
            Some(parent) => parent.trace,
            None => self.random_id()?,
        };
        let context = SpanContext { trace, span: self.random_id()?, sampled: true };
        Some(Begun { context, parent: parent.map(|parent| parent.span), started: SystemTime::now() })
    }

    /// Ends it.
    pub(super) fn end(&self, begun: Begun, answer: &Answer, request_bytes: usize, elapsed: Duration) {
        let ids = (self.random_id(), self.random_id(), self.random_id());
        let (Some(read), Some(compose), Some(encode)) = ids else { return };
        let span = CallSpan {
            begun,
            parts: [read, compose, encode],
            elapsed,
            answer: Summary::of(answer),
            request_bytes,
        };
        if self.queue.try_send(span).is_err() {
            self.metrics.spans_lost(1);
        }
    }

    /// A random id that is not all zeros, which would be none; `None` if the system has no randomness.
    fn random_id<const N: usize>(&self) -> Option<[u8; N]> {
        let mut id = [0; N];
        self.random.fill(&mut id).ok()?;
        id.iter().any(|byte| *byte != 0).then_some(id)
    }
}

impl Summary {
    fn of(answer: &Answer) -> Self {
        Self {
            kind: answer.kind.clone(),
            namespace: answer.namespace.clone(),
            name: answer.name.clone(),
            tag: answer.tag.clone(),
            fatal: answer.fatal.clone(),
            work: answer.work,
            timings: answer.timings,
            response_bytes: answer.bytes.len(),
        }
    }
}

impl SpanContext {
    /// Reads a `traceparent`; what is malformed counts as absent (W3C Trace Context §3.2).
    fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().splitn(4, '-');
        let [version]: [u8; 1] = hex(parts.next()?)?;
        let (trace, span) = (hex::<16>(parts.next()?)?, hex::<8>(parts.next()?)?);
        let rest = parts.next()?;
        // Later versions may append fields, version 0 has none.
        let (flags, more) = rest.split_once('-').map_or((rest, false), |(flags, _)| (flags, true));
        let [flags]: [u8; 1] = hex(flags)?;
        let valid = version != 0xff && !(version == 0 && more) && trace != [0; 16] && span != [0; 8];
        valid.then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }

    /// The trace's id as it is written.
    pub(super) fn trace_id(&self) -> String {
        self.trace.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Exactly N bytes of lower-case hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let lower = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * N || !digits.iter().all(lower) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// A channel that connects when it is first used, and again whenever it has to.
fn connect(collector: &Collector) -> Result<Channel, CollectorError> {
    let bad = || CollectorError::Endpoint { endpoint: collector.endpoint.clone() };
    let endpoint = Endpoint::from_shared(collector.endpoint.clone()).map_err(|_| bad())?;
    let endpoint = match (endpoint.uri().scheme_str(), &collector.authority) {
        (Some("http"), _) => endpoint,
        (Some("https"), Some(path)) => {
            let read = std::fs::read(path);
            let pem = read.map_err(|source| CollectorError::Authority { path: path.clone(), source })?;
            endpoint.tls_config(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))?
        }
        (Some("https"), None) => {
            return Err(CollectorError::NoAuthority { endpoint: collector.endpoint.clone() });
        }
        _ => return Err(bad()),
    };
    Ok(endpoint.timeout(TIMEOUT).connect_timeout(TIMEOUT).connect_lazy())
}

/// Sends what arrives, until nothing can arrive any more.
async fn send_all(channel: Channel, mut spans: mpsc::Receiver<CallSpan>, metrics: Arc<Metrics>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut failing = false;
    while spans.recv_many(&mut batch, BATCH).await > 0 {
        let deadline = tokio::time::Instant::now() + LINGER;
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            match tokio::time::timeout_at(deadline, spans.recv_many(&mut batch, room)).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
        }
        match send(&channel, otlp::encode(&batch)).await {
            Ok(()) => failing = false,
            Err(error) => {
                metrics.spans_lost(batch.len());
                if !failing {
                    tracing::warn!(%error, "the trace collector cannot be reached; spans are dropped meanwhile");
                }
                failing = true;
            }
        }
        batch.clear();
    }
}

async fn send(channel: &Channel, request: Vec<u8>) -> Result<(), tonic::Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
    let path = http::uri::PathAndQuery::from_static(EXPORT);
    grpc.unary(tonic::Request::new(request), path, BytesCodec).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparents_are_read_as_the_standard_says() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let span = "b7ad6b7169203331";
        let cases = [
            ("sampled", format!("00-{trace}-{span}-01"), Some(true)),
            ("not sampled", format!("00-{trace}-{span}-00"), Some(false)),
            ("a later version with more", format!("01-{trace}-{span}-01-more"), Some(true)),
            ("version 0 has no more", format!("00-{trace}-{span}-01-more"), None),
            ("an invalid version", format!("ff-{trace}-{span}-01"), None),
            ("capitals", format!("00-{}-{span}-01", trace.to_uppercase()), None),
            ("no trace", format!("00-{}-{span}-01", "0".repeat(32)), None),
            ("no span", format!("00-{trace}-{}-01", "0".repeat(16)), None),
            ("too short", format!("00-{trace}-{span}"), None),
            ("not hexadecimal", format!("00-{trace}-{span}-0é"), None),
        ];
        for (name, header, sampled) in cases {
            let context = SpanContext::parse(&header);
            assert_eq!(context.map(|context| context.sampled), sampled, "{name}");
            if let Some(context) = context {
                assert_eq!(context.trace_id(), trace, "{name}");
            }
        }
    }
}
