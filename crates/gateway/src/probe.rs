//! Requests the gateway sends of its own accord: whether an endpoint serves, how long its engine's queue is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method};

use crate::body::RequestBody;
use crate::endpoint::Endpoint;
use crate::model;
use crate::routes::config::Probe;
use crate::routes::path;
use crate::routes::table::Service;
use crate::server::Shared;
use crate::upstream::pool::NOBODY;
use crate::upstream::{self, Outgoing};

/// How often due probes are looked for.
const TICK: Duration = Duration::from_millis(250);

/// Time between two looks at an engine's queue.
const QUEUE: Duration = Duration::from_secs(1);

/// Most bytes of an engine's metrics.
const METRICS_BYTES: usize = 4 << 20;

/// Gauges that engines report their queue's length in: vLLM, SGLang, TGI.
const QUEUES: [&str; 3] = ["vllm:num_requests_waiting", "sglang:num_queue_reqs", "tgi_queue_size"];

/// What is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Health,
    Queue,
}

/// Probes endpoints until dropped.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut due: HashMap<(Arc<str>, What), Instant> = HashMap::new();
    let mut probes = tokio::task::JoinSet::new();
    loop {
        tokio::time::sleep(TICK).await;
        while probes.try_join_next().is_some() {}
        let now = Instant::now();
        let table = shared.table.load_full();
        let mut wanted = HashMap::new();
        for service in table.services() {
            for (_, _, member) in service.members() {
                for (what, interval) in wants(service) {
                    let key = (member.endpoint.id.clone(), what);
                    wanted.entry(key).or_insert((service.clone(), member.endpoint.clone(), interval));
                }
            }
        }
        due.retain(|key, _| wanted.contains_key(key));
        for (key, (service, endpoint, interval)) in wanted {
            let next = due.entry(key.clone()).or_insert(now);
            if *next <= now {
                *next = now + interval;
                probes.spawn(probe(key.1, service, endpoint, interval));
            }
        }
    }
}

/// What a service wants to know of its endpoints, and how often.
fn wants(service: &Service) -> impl Iterator<Item = (What, Duration)> + use<> {
    let health = service.policy.probe.as_ref().map(|probe| (What::Health, probe.interval));
    let queue = service.policy.overflow.queue_depth.map(|_| (What::Queue, QUEUE));
    health.into_iter().chain(queue)
}

async fn probe(what: What, service: Arc<Service>, endpoint: Arc<Endpoint>, limit: Duration) {
    match what {
        What::Health => {
            let Some(Probe { path, .. }) = &service.policy.probe else { return };
            let status = ask(&endpoint, path, limit).await.map(|answer| answer.status());
            if status.is_some_and(|status| status.as_u16() < 500) {
                endpoint.live.succeeded();
            } else {
                let now = Instant::now();
                if endpoint.live.failed(&service.policy.outliers, service.may_eject(now), now) {
                    tracing::warn!(endpoint = %endpoint.id, "an endpoint is ejected after failed probes");
                }
            }
        }
        What::Queue => {
            let text = match ask(&endpoint, "/metrics", limit).await {
                Some(answer) => {
                    tokio::time::timeout(limit, model::read(answer, METRICS_BYTES)).await.ok().flatten()
                }
                None => None,
            };
            let text = text.as_deref().map(String::from_utf8_lossy);
            endpoint.live.observe_queue(text.and_then(|text| queue(&text)));
        }
    }
}

async fn ask(endpoint: &Endpoint, path: &str, limit: Duration) -> Option<upstream::Answer> {
    let target = path::rewrite(path, path, endpoint.rewrite_path.as_deref(), None);
    let (headers, body) = (HeaderMap::new(), RequestBody::empty());
    let request =
        Outgoing { method: &Method::GET, target, headers: &headers, forwarded: None, endpoint, body };
    let sending = upstream::send(request, NOBODY, limit);
    Some(tokio::time::timeout(limit, sending).await.ok()?.ok()?.0)
}

/// The queue's length in an engine's metrics, summed over its models.
fn queue(text: &str) -> Option<u32> {
    let value = |line: &str| {
        let rest = QUEUES.iter().find_map(|name| line.strip_prefix(name))?;
        let labels = rest.starts_with('{');
        let value = if labels { rest.rsplit_once('}')?.1 } else { rest };
        // Another metric whose name merely starts the same has neither labels nor a blank here.
        if !labels && !rest.starts_with([' ', '\t']) {
            return None;
        }
        value.split_ascii_whitespace().next()?.parse::<f64>().ok()
    };
    let values: Vec<f64> = text.lines().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>().clamp(0.0, f64::from(u32::MAX - 1)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_from_metrics() {
        let cases = [
            ("# HELP x\nvllm:num_requests_waiting{engine=\"0\",model_name=\"a}b\"} 3.0\n", Some(3)),
            (
                "vllm:num_requests_waiting{m=\"a\"} 3\nvllm:num_requests_waiting{m=\"b\"} 4 1700000000\n",
                Some(7),
            ),
            ("sglang:num_queue_reqs 2\n", Some(2)),
            ("tgi_queue_size_total 2\n", None),
            ("vllm:num_requests_waiting{m=\"a\"} NaN\n", Some(0)),
            ("vllm:num_requests_waiting\n", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(queue(text), want, "{text}");
        }
    }
}
