//! Sending a request to an endpoint, and to another one if that failed harmlessly.

use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode, Version};

use crate::balance::{self, Choice, Draw, NoChoice};
use crate::body::{ClientFailure, RequestBody};
use crate::endpoint::{Endpoint, locked};
use crate::headers::{self, Forwarded};
use crate::model;
use crate::policy::{Exchange, client_failed};
use crate::random;
use crate::refusal::Refusal;
use crate::reply::ReplyBody;
use crate::retry::Failure;
use crate::routes::config::AffinityKey;
use crate::routes::path;
use crate::routes::table::Service;
use crate::tunnel::Tunnel;
use crate::upstream::{self, Answer, Driven, Outgoing, SendError};

/// What a request is routed to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The service.
    pub(crate) service: Arc<Service>,
    /// Length of the path's prefix that names the service; 0 when the model's name did.
    pub(crate) prefix: usize,
    /// Whether the model's name did, so that it must become the endpoint's own.
    pub(crate) by_model: bool,
    /// Where the model's name stands in the body, if it was looked for.
    pub(crate) model: Option<Range<usize>>,
}

/// How long an endpoint that says it is full without saying for how long counts as full.
const REFUSAL: Duration = Duration::from_secs(1);

/// Longest time an endpoint that says it is full is taken at its word.
const LONGEST_REFUSAL: Duration = Duration::from_secs(60);

/// Forwards a request.
pub(crate) async fn forward(mut exchange: Box<Exchange>, target: Target) -> Response<ReplyBody> {
    exchange.record.service = Some(target.service.id.clone());
    let host = exchange.host();
    headers::remove_hop_by_hop(&mut exchange.head.headers);
    let (client, trace) = (exchange.client, exchange.trace.take());
    let forwarded = Forwarded::of(&exchange.head.headers, client.address, client.secure, host, trace);
    let affinity = match affinity(&exchange, &target.service).await {
        Ok(affinity) => affinity,
        Err(failure) => return exchange.refuse(&client_failed(&failure)),
    };
    let budget = &target.service.policy.retries;
    locked(&target.service.state.budget).earn(budget.budget_percent);
    let attempts =
        Attempts { left: budget.attempts, exchange, forwarded, target, affinity, tried: Vec::new() };
    attempts.run().await
}

/// What keeps a request with others.
async fn affinity(exchange: &Exchange, service: &Service) -> Result<Option<u64>, ClientFailure> {
    let Some(affinity) = &service.policy.affinity else { return Ok(None) };
    Ok(match &affinity.key {
        AffinityKey::Header(name) => {
            exchange.head.headers.get(name).map(|value| random::hash(value.as_bytes()))
        }
        AffinityKey::Caller => Some(match exchange.caller() {
            Some(caller) => random::hash(caller.config.id.as_bytes()),
            None => random::hash(exchange.client.address.ip().to_string().as_bytes()),
        }),
        AffinityKey::Prefix => match &exchange.body {
            Some(body) => model::prompt_hash(body).await?,
            None => None,
        },
    })
}

struct Attempts {
    exchange: Box<Exchange>,
    forwarded: Forwarded,
    target: Target,
    affinity: Option<u64>,
    tried: Vec<Arc<Endpoint>>,
    left: u32,
}

/// What an attempt came to.
enum Outcome {
    /// A response worth passing on.
    Answered(Answer),
    /// A response that another endpoint may improve on.
    Declined(Answer, Failure),
    /// No response.
    Failed(SendError),
}

impl Attempts {
    async fn run(mut self) -> Response<ReplyBody> {
        let mut choice = match self.choose() {
            Ok(choice) => choice,
            Err(none) => {
                let refusal = self.none(none);
                return self.exchange.refuse(&refusal);
            }
        };
        loop {
            self.exchange.record.attempts += 1;
            choice.series.overflows.add(choice.spilled.into());
            if self.exchange.upgrade.is_some() {
                return Box::pin(self.switch(choice)).await;
            }
            let started = Instant::now();
            let outcome = self.attempt(&choice).await;
            self.judge(&choice, &outcome, started);
            if let Some(body) = &self.exchange.body
                && let Some(failure) = body.failure()
                && matches!(outcome, Outcome::Failed(_))
            {
                return self.exchange.refuse(&client_failed(&failure));
            }
            let next = match &outcome {
                Outcome::Answered(_) => None,
                Outcome::Declined(_, failure) => self.again(&choice, *failure, false),
                Outcome::Failed(error) => self.again(&choice, failure_of(error), error.is_stale()),
            };
            match (next, outcome) {
                (Some(next), _) => choice = next,
                (None, Outcome::Answered(answer) | Outcome::Declined(answer, _)) => {
                    return self.pass(choice, answer);
                }
                (None, Outcome::Failed(error)) => return self.failed(&choice, &error),
            }
        }
    }

    fn choose(&self) -> Result<Choice, NoChoice> {
        let draw =
            Draw { now: Instant::now(), random: random::next(), affinity: self.affinity, tried: &self.tried };
        balance::choose(&self.target.service, draw)
    }

    /// The endpoint for another attempt, if there is to be one.
    fn again(&mut self, choice: &Choice, failure: Failure, stale: bool) -> Option<Choice> {
        let exchange = &self.exchange;
        let repeatable = exchange.body.as_ref().is_none_or(|body| body.is_repeatable());
        if self.left == 0 || !repeatable || !failure.is_safe(&exchange.head.method, exchange.head.uri.path())
        {
            return None;
        }
        // A stale connection says nothing about the endpoint, which may be the only one.
        if !stale {
            self.tried.push(choice.endpoint.clone());
        }
        let next = self.choose().ok()?;
        // Where nothing was sent, another attempt adds no load.
        if failure != Failure::Unsent && !locked(&self.target.service.state.budget).spend() {
            return None;
        }
        self.left -= 1;
        choice.series.retries.add(1);
        Some(next)
    }

    async fn attempt(&self, choice: &Choice) -> Outcome {
        let request = self.request(&choice.endpoint).await;
        let timeouts = &self.target.service.policy.timeouts;
        // Pinned here, or both ways to wait for it would carry room for it.
        let mut sending = pin!(upstream::send(request, self.exchange.client.worker, timeouts.connect));
        let sent = if timeouts.first_byte.is_zero() {
            sending.as_mut().await
        } else {
            let late = |_| Err(SendError::Timeout(timeouts.first_byte));
            tokio::time::timeout(timeouts.first_byte, sending.as_mut()).await.unwrap_or_else(late)
        };
        match sent {
            Err(error) => Outcome::Failed(error),
            Ok((mut answer, sent)) => {
                choice.series.connections.add(sent.dialled.into());
                if let Some(failure) = Failure::of(answer.status()) {
                    return Outcome::Declined(answer, failure);
                }
                match poll_fn(|cx| Poll::Ready(answer.body_mut().look_ahead(cx))).await {
                    Ok(()) => Outcome::Answered(answer),
                    Err(source) => Outcome::Failed(SendError::Broken { source, reused: false }),
                }
            }
        }
    }

    /// The request as this endpoint is to get it.
    async fn request<'a>(&'a self, endpoint: &'a Endpoint) -> Outgoing<'a> {
        let head = &self.exchange.head;
        let body = match &self.exchange.body {
            None => RequestBody::empty(),
            Some(source) => source.play(self.edit(endpoint).await),
        };
        Outgoing {
            method: &head.method,
            target: self.target(endpoint),
            headers: &head.headers,
            forwarded: Some(&self.forwarded),
            endpoint,
            body,
        }
    }

    /// The model's name as the endpoint knows it, and what it replaces.
    async fn edit(&self, endpoint: &Endpoint) -> Option<(Range<usize>, Bytes)> {
        let range = self.target.model.clone()?;
        let name = match &endpoint.config.model {
            Some(name) => name.as_str().into(),
            None if self.target.by_model => {
                Box::pin(model::name_at(endpoint, self.exchange.client.worker)).await?
            }
            None => return None,
        };
        let quoted = serde_json::to_string(&*name).ok()?;
        Some((range, quoted.into()))
    }

    /// What the endpoint is asked for.
    fn target(&self, endpoint: &Endpoint) -> String {
        let uri = &self.exchange.head.uri;
        let whole = uri.path();
        let rest = &whole[self.target.prefix..];
        path::rewrite(whole, rest, endpoint.rewrite_path.as_deref(), uri.query())
    }

    /// Takes what an attempt came to into the endpoint's health and load.
    fn judge(&self, choice: &Choice, outcome: &Outcome, started: Instant) {
        let now = Instant::now();
        let live = &choice.endpoint.live;
        let answered = match outcome {
            Outcome::Answered(answer) | Outcome::Declined(answer, _) => Some(answer),
            Outcome::Failed(_)
                if self.exchange.body.as_ref().is_some_and(|body| body.failure().is_some()) =>
            {
                return;
            }
            Outcome::Failed(error) if error.is_stale() => return,
            Outcome::Failed(_) => None,
        };
        let working = match answered.map(|answer| (answer.status(), answer.headers())) {
            Some((StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, headers)) => {
                live.refused(now + refusal(headers));
                true
            }
            Some((status, _)) => {
                live.observe_latency(now - started);
                !matches!(status.as_u16(), 500 | 502 | 504)
            }
            None => false,
        };
        if working {
            return live.succeeded();
        }
        let service = &self.target.service;
        if live.failed(&service.policy.outliers, service.may_eject(now), now) {
            choice.series.ejections.add(1);
            tracing::warn!(endpoint = %choice.endpoint.id, service = %service.id, "an endpoint is ejected");
        }
    }

    /// Passes a response on.
    fn pass(self, choice: Choice, mut answer: Answer) -> Response<ReplyBody> {
        let mut record = self.exchange.record;
        headers::remove_hop_by_hop(answer.headers_mut());
        let head = (answer.status(), answer.headers());
        record.answered(choice.endpoint, choice.series, self.target.service.clone(), head);
        *answer.version_mut() = Version::HTTP_11;
        let idle = self.target.service.policy.timeouts.idle;
        ReplyBody::relay(answer, self.exchange.client.worker, choice.lease, idle, record)
    }

    /// Switches protocols, or passes on the response to a wish to.
    async fn switch(mut self, choice: Choice) -> Response<ReplyBody> {
        let Some(protocol) = self.exchange.upgrade.take() else {
            return self
                .exchange
                .refuse(&Refusal::bad_request("invalid_upgrade", "no protocol to switch to"));
        };
        let mut request = self.request(&choice.endpoint).await.relative();
        headers::set_upgrade(request.headers_mut(), protocol.clone());
        let timeouts = &self.target.service.policy.timeouts;
        let sent = upstream::send_upgrade(&choice.endpoint.live, request, timeouts.connect).await;
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => return self.failed(&choice, &error),
        };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return self.pass(choice, response.map(Driven::shared));
        }
        let theirs = hyper::upgrade::on(&mut response);
        let (mut head, _) = response.into_parts();
        headers::remove_hop_by_hop(&mut head.headers);
        headers::set_upgrade(&mut head.headers, protocol);
        let mut record = self.exchange.record;
        record.answered(choice.endpoint, choice.series, self.target.service, (head.status, &head.headers));
        let tunnel = Tunnel { endpoint: theirs, lease: choice.lease, record };
        Response::from_parts(head, ReplyBody::tunnel(tunnel))
    }

    fn none(&self, none: NoChoice) -> Refusal {
        let service = &self.target.service.id;
        match none {
            NoChoice::Empty => Refusal::unavailable(
                "no_endpoints",
                format!("ModelService {service:?} has no endpoint at the moment"),
            ),
            NoChoice::Full | NoChoice::Exhausted => Refusal::unavailable(
                "overloaded",
                format!("every endpoint of ModelService {service:?} is full"),
            ),
        }
    }

    fn failed(self, choice: &Choice, error: &SendError) -> Response<ReplyBody> {
        let endpoint = &choice.endpoint.id;
        tracing::info!(%endpoint, service = %self.target.service.id, %error, "an endpoint did not answer");
        let (status, code) = match error {
            SendError::Timeout(_) => (StatusCode::GATEWAY_TIMEOUT, "endpoint_timeout"),
            _ => (StatusCode::BAD_GATEWAY, "endpoint_unreachable"),
        };
        let message = format!("the endpoint of ModelService {:?} did not answer", self.target.service.id);
        self.exchange.refuse(&Refusal::new(status, code, message))
    }
}

fn failure_of(error: &SendError) -> Failure {
    match error {
        SendError::Connect(_) | SendError::Unsent(_) => Failure::Unsent,
        SendError::Broken { .. } | SendError::Timeout(_) => Failure::Unknown,
    }
}

/// For how long an endpoint says it is full.
fn refusal(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    seconds.map_or(REFUSAL, Duration::from_secs).min(LONGEST_REFUSAL)
}
