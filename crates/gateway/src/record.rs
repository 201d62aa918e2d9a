//! What is known of one exchange, from its request to the end of its response: counted and logged when it is over,
//! however it ends.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::body::RequestSource;
use crate::callers::CallerLease;
use crate::endpoint::Endpoint;
use crate::headers::TraceId;
use crate::metrics::Series;
use crate::refusal::Refusal;
use crate::routes::table::Service;
use crate::server::{Client, Shared};
use crate::sse::EventReader;
use crate::usage::{Usage, UsageScanner};

/// One exchange.
pub(crate) struct Record {
    shared: Arc<Shared>,
    client: Client,
    started: Instant,
    method: Method,
    uri: Uri,
    trace: Option<TraceId>,
    /// The request's body, for its size.
    pub(crate) request: Option<Arc<RequestSource>>,
    /// The service, once known.
    pub(crate) service: Option<Arc<str>>,
    /// The caller's place, if callers are known.
    pub(crate) caller: Option<CallerLease>,
    /// Attempts made.
    pub(crate) attempts: u32,
    answered: Option<Answered>,
    status: StatusCode,
    refusal: Option<&'static str>,
    outcome: &'static str,
    bytes: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    meter: Meter,
}

/// The endpoint that answered.
struct Answered {
    endpoint: Arc<Endpoint>,
    series: Arc<Series>,
    service: Arc<Service>,
}

/// Reads usage off a body that passes by.
#[derive(Debug, Default)]
enum Meter {
    #[default]
    None,
    Whole(UsageScanner),
    Events(EventReader),
}

impl std::fmt::Debug for Record {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Record").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Record {
    /// The record of a request that has just arrived.
    pub(crate) fn new(shared: Arc<Shared>, client: Client, method: Method, uri: Uri) -> Box<Self> {
        Box::new(Self {
            shared,
            client,
            started: Instant::now(),
            method,
            uri,
            trace: None,
            request: None,
            service: None,
            caller: None,
            attempts: 0,
            answered: None,
            status: StatusCode::OK,
            refusal: None,
            outcome: "cut off",
            bytes: 0,
            first: None,
            last: None,
            meter: Meter::None,
        })
    }

    /// The exchange is part of a trace.
    pub(crate) fn trace(&mut self, trace: TraceId) {
        self.trace = Some(trace);
    }

    /// The gateway answers itself.
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        self.status = refusal.status;
        self.refusal = Some(refusal.code);
        self.outcome = "refused";
        self.shared.metrics.refused(refusal.code);
    }

    /// The gateway answers itself, and not with an error.
    pub(crate) fn served(&mut self) {
        self.outcome = "complete";
    }

    /// An endpoint answers with this head.
    pub(crate) fn answered(
        &mut self,
        endpoint: Arc<Endpoint>,
        series: Arc<Series>,
        service: Arc<Service>,
        head: (StatusCode, &HeaderMap),
    ) {
        let (status, headers) = head;
        self.status = status;
        if status.is_success() {
            self.meter = Meter::of(headers);
        }
        self.answered = Some(Answered { endpoint, series, service });
    }

    /// A piece of the response's body is passed on.
    pub(crate) fn passed(&mut self, data: &Bytes) {
        self.bytes += data.len() as u64;
        let is_token = self.meter.feed(data);
        if self.first.is_some() && !is_token {
            return;
        }
        let now = Instant::now();
        self.last = Some(now);
        if self.first.is_none() {
            self.first = Some(now);
            if let Some(answered) = &self.answered {
                let took = now - self.started;
                answered.series.first_token.observe(took);
                if answered.service.policy.overflow.time_to_first_token.is_some() {
                    answered.endpoint.live.observe_first_token(took, now);
                }
            }
        }
    }

    /// The response is complete.
    pub(crate) fn completed(&mut self) {
        self.outcome = "complete";
    }

    /// The response breaks off, which is the endpoint's failure as much as not answering is.
    pub(crate) fn broke(&mut self, reason: &'static str) {
        self.outcome = reason;
        if let Some(Answered { endpoint, series, service }) = &self.answered {
            series.broken.add(1);
            let now = Instant::now();
            let ejected = endpoint.live.failed(&service.policy.outliers, service.may_eject(now), now);
            series.ejections.add(ejected.into());
        }
    }

    /// Tokens used, if the response says so or can be counted.
    fn usage(&self) -> Option<Usage> {
        match &self.meter {
            Meter::None => None,
            Meter::Whole(whole) => whole.usage,
            // An event per token is how engines stream.
            Meter::Events(events) => {
                events.usage.or(Some(Usage { completion: events.events, ..Usage::default() }))
            }
        }
    }

    fn count(&self, ended: Instant) {
        let Some(answered) = &self.answered else { return };
        let series = &answered.series;
        series.responses[usize::from(self.status.as_u16() / 100).min(5)].add(1);
        series.duration.observe(ended - self.started);
        if let (Meter::Events(events), Some(first), Some(last)) = (&self.meter, self.first, self.last)
            && let intervals @ 1.. = u32::try_from(events.events.saturating_sub(1)).unwrap_or(u32::MAX)
        {
            series.token_interval.observe((last - first) / intervals);
        }
        let Some(usage) = self.usage() else { return };
        series.tokens.add(usage);
        if let (Some(lease), Some(service)) = (&self.caller, &self.service) {
            lease.caller.charge(usage.prompt + usage.completion, ended);
            self.shared.metrics.used(&lease.caller.config.id, service, usage);
        }
    }

    /// One line of the access log. The query is left out: clients put keys there.
    fn log(&self, ended: Instant) {
        let usage = self.usage().unwrap_or_default();
        // To the microsecond: more digits are noise.
        let milliseconds = |instant: Instant| (instant - self.started).as_micros() as f64 / 1e3;
        tracing::info!(
            target: "modelplane_gateway::access",
            client = %self.client.address,
            method = %self.method,
            path = self.uri.path(),
            status = self.status.as_u16(),
            outcome = self.outcome,
            refusal = self.refusal,
            service = self.service.as_deref(),
            endpoint = self.answered.as_ref().map(|answered| &*answered.endpoint.id),
            caller = self.caller.as_ref().map(|lease| lease.caller.config.id.as_str()),
            attempts = self.attempts,
            duration_ms = milliseconds(ended),
            first_byte_ms = self.first.map(milliseconds),
            request_bytes = self.request.as_ref().map_or(0, |request| request.received()),
            response_bytes = self.bytes,
            prompt_tokens = usage.prompt,
            completion_tokens = usage.completion,
            cached_tokens = usage.cached,
            trace = self.trace.as_ref().map(TraceId::as_str),
        );
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let ended = Instant::now();
        self.count(ended);
        self.log(ended);
    }
}

impl Meter {
    fn of(headers: &HeaderMap) -> Self {
        let is = |name, prefix: &[u8]| {
            headers.get(name).is_some_and(|value| {
                value.as_bytes().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
            })
        };
        if headers.contains_key(CONTENT_ENCODING) && !is(CONTENT_ENCODING, b"identity") {
            return Self::None;
        }
        if is(CONTENT_TYPE, b"text/event-stream") {
            return Self::Events(EventReader::default());
        }
        if is(CONTENT_TYPE, b"application/json") {
            return Self::Whole(UsageScanner::default());
        }
        Self::None
    }

    /// Takes in a piece and says whether it is a token of its own.
    fn feed(&mut self, data: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::Events(events) => events.feed(data),
            Self::Whole(whole) => {
                whole.feed(data);
                false
            }
        }
    }
}
