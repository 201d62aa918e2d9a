//! What operators ask a gateway: whether it lives, its metrics, its live routes. On a listener of its own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::balance::overflow::Admission;
use crate::health::State;
use crate::metrics::{self, Gauges, Row};
use crate::policy::ORDER;
use crate::routes::table::{Member, Service};
use crate::server::{Phase, Shared};

/// Answers operators until dropped.
pub(crate) async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve_connection(shared.clone(), stream));
        } else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

async fn serve_connection(shared: Arc<Shared>, stream: TcpStream) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = answer(&shared, request.uri().path());
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(std::time::Duration::from_secs(60));
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "an operator's connection ended");
    }
}

fn answer(shared: &Shared, path: &str) -> Response<Full<Bytes>> {
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match path {
        "/livez" | "/healthz" => (StatusCode::OK, plain, "ok\n".to_owned()),
        "/readyz" => match readiness(shared) {
            Ok(()) => (StatusCode::OK, plain, "ok\n".to_owned()),
            Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, plain, format!("{reason}\n")),
        },
        "/metrics" => {
            let text = metrics::render(&shared.metrics, &rows(shared), &gauges(shared));
            (StatusCode::OK, "text/plain; version=0.0.4", text)
        }
        "/debug/routes" => (StatusCode::OK, "application/json", format!("{:#}\n", routes(shared))),
        _ => (
            StatusCode::NOT_FOUND,
            plain,
            "there are /livez, /readyz, /metrics and /debug/routes\n".to_owned(),
        ),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    response
}

fn readiness(shared: &Shared) -> Result<(), &'static str> {
    if *shared.phase.borrow() != Phase::Serving {
        return Err("draining");
    }
    if shared.is_published() { Ok(()) } else { Err("no routes yet") }
}

fn gauges(shared: &Shared) -> Gauges {
    let problems = shared.problems().len() + shared.table.load().problems.len();
    Gauges { problems, kept_bytes: shared.memory.used() }
}

fn rows(shared: &Shared) -> Vec<Row> {
    let table = shared.table.load();
    let now = Instant::now();
    let row = |service: &Service, member: &Member| Row {
        service: service.id.clone(),
        endpoint: member.endpoint.id.clone(),
        series: member.series.clone(),
        in_flight: member.endpoint.live.in_flight(),
        queued: member.endpoint.live.queued(),
        healthy: member.endpoint.live.share(now) > 0,
    };
    let services = table.services();
    services.flat_map(|service| service.members().map(|(_, _, member)| row(service, member))).collect()
}

/// The live table, and why each endpoint is in or out.
fn routes(shared: &Shared) -> Value {
    let table = shared.table.load();
    let now = Instant::now();
    let mut services: Vec<_> = table.services().collect();
    services.sort_by(|left, right| left.id.cmp(&right.id));
    let problems: Vec<_> = shared
        .problems()
        .iter()
        .chain(&table.problems)
        .map(|problem| json!({"object": problem.object, "reason": problem.reason}))
        .collect();
    let policies: Vec<_> = ORDER
        .iter()
        .map(|(policy, reason)| json!({"policy": format!("{policy:?}"), "why here": reason}))
        .collect();
    json!({
        "services": services.into_iter().map(|service| described(service, now)).collect::<Vec<_>>(),
        "hostnames": table.hostnames,
        "certificates": shared.certificates.count(),
        "callersIdentified": table.callers.is_some(),
        "problems": problems,
        "policies": policies,
    })
}

fn described(service: &Service, now: Instant) -> Value {
    let endpoints: Vec<_> = service
        .members()
        .map(|(tier, weight, member)| {
            let live = &member.endpoint.live;
            json!({
                "name": &*member.endpoint.id,
                "tier": tier,
                "weight": weight,
                "address": live.address.authority(),
                "rewritePath": member.endpoint.config.rewrite_path,
                "state": standing(service, member, now),
                "localityRank": member.rank,
                "inFlight": live.in_flight(),
                "waiting": live.waiting(),
                "queued": live.queued(),
                "latencyMs": live.latency().as_secs_f64() * 1e3,
            })
        })
        .collect();
    json!({"name": &*service.id, "endpoints": endpoints})
}

/// Whether an endpoint takes traffic, and if not, why.
fn standing(service: &Service, member: &Member, now: Instant) -> String {
    let live = &member.endpoint.live;
    match live.state(now) {
        State::Ejected { until } => {
            let left = until.saturating_duration_since(now).as_secs_f64();
            return format!("out: ejected after failures, returns in {left:.1} s");
        }
        State::Returning { .. } => return format!("in: returning, at {} % of its share", live.share(now)),
        State::In => {}
    }
    match live.admission(&service.policy.overflow, now) {
        Admission::Open => "in".to_owned(),
        Admission::Trickle => {
            format!(
                "out: gets a request now and then until it has been quiet{}",
                fullness(service, member, now)
            )
        }
        Admission::Full => format!("out: full{}", fullness(service, member, now)),
    }
}

/// What speaks for an endpoint being full.
fn fullness(service: &Service, member: &Member, now: Instant) -> String {
    let (live, limits) = (&member.endpoint.live, &service.policy.overflow);
    let mut reasons = Vec::new();
    if let Some(left) = live.refuses_for(now) {
        reasons.push(format!("says so itself for {:.1} s more", left.as_secs_f64()));
    }
    if let Some(limit) = limits.concurrent_requests {
        reasons.push(format!("{} of {limit} requests in flight", live.in_flight()));
    }
    if let Some(limit) = limits.queue_depth {
        reasons.push(format!("{} of {limit} requests queued", live.queued()));
    }
    if let Some(limit) = limits.time_to_first_token {
        reasons.push(format!("first token after {:.3} of {:.3} s", live.first_token(), limit.as_secs_f64()));
    }
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) }
}
