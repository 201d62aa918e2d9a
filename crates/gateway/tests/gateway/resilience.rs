//! What happens when endpoints fail, fill up, or answer slowly (issue 7, items 3 and 4).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Frame;
use modelplane_gateway::routes::config::{
    Affinity, AffinityKey, Balancing, EndpointConfig, EntryConfig, Locality, Outliers, Overflow, Probe,
    ServiceConfig, Timeouts,
};

use crate::support::*;

const CHAT: &str = "/ml-team/chat/v1/chat/completions";

/// An address nobody listens on.
async fn dead(name: &str) -> EndpointConfig {
    let endpoint = Endpoint::named("dead").await;
    endpoint.config(name)
}

fn tiers(tiers: Vec<Vec<EndpointConfig>>) -> ServiceConfig {
    let mut service = chat(vec![]);
    for (tier, endpoints) in (0..).zip(tiers) {
        let endpoints = endpoints.into_iter().map(Arc::new).collect();
        service.entries.push(EntryConfig { weight: 1, tier, endpoints });
    }
    service
}

/// An endpoint that refuses with a status while told to.
async fn refusing(status: u16, retry_after: &'static str) -> (Endpoint, Arc<AtomicBool>) {
    let refuses = Arc::new(AtomicBool::new(true));
    let told = refuses.clone();
    let endpoint = Endpoint::answering(move |_| {
        if !told.load(Ordering::SeqCst) {
            return Response::new(full("took it"));
        }
        Response::builder().status(status).header("retry-after", retry_after).body(full("no")).unwrap()
    })
    .await;
    (endpoint, refuses)
}

#[tokio::test]
async fn a_dead_endpoint_costs_no_request() {
    let living = Endpoint::named("living").await;
    let service = chat(vec![(1, vec![dead("dead").await, living.config("living")])]);
    let gateway = Running::start(only(service)).await;
    for _ in 0..40 {
        // Even one that is not idempotent, since nothing was sent.
        let answer = post(gateway.address, "/ml-team/chat/v1/responses", "{}").await;
        assert_eq!((answer.status, answer.text()), (StatusCode::OK, "living"));
    }
}

#[tokio::test]
async fn nothing_but_dead_endpoints_is_a_bad_gateway() {
    let gateway = Running::start(only(chat(vec![(1, vec![dead("dead").await])]))).await;
    let answer = post(gateway.address, CHAT, "{}").await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::BAD_GATEWAY, "endpoint_unreachable"));
}

#[tokio::test]
async fn a_refusal_is_repeated_elsewhere_with_the_whole_body() {
    for status in [429, 503] {
        let (full_up, _) = refusing(status, "60").await;
        let other = Endpoint::named("other").await;
        let mut service = tiers(vec![vec![full_up.config("full")], vec![other.config("other")]]);
        service.policy.balancing = Balancing::RoundRobin;
        let gateway = Running::start(only(service)).await;
        let body = "x".repeat(100_000);
        for _ in 0..3 {
            let answer = post(gateway.address, CHAT, body.clone()).await;
            assert_eq!((answer.status, answer.text()), (StatusCode::OK, "other"));
            assert_eq!(other.last().body, body);
        }
        assert_eq!(full_up.hits(), 1, "it is left alone for the time it asked for");
    }
}

#[tokio::test]
async fn the_last_refusal_reaches_the_client_as_it_is() {
    let (endpoint, refuses) = refusing(429, "7").await;
    let gateway = Running::start(on(&endpoint)).await;
    let answer = post(gateway.address, CHAT, "{}").await;
    assert_eq!((answer.status, answer.text()), (StatusCode::TOO_MANY_REQUESTS, "no"));
    assert_eq!(answer.headers["retry-after"], "7");
    refuses.store(false, Ordering::SeqCst);
    assert_eq!(post(gateway.address, CHAT, "{}").await.text(), "took it", "the only endpoint is asked again");
}

/// An endpoint that accepts a request and hangs up without answering.
async fn hanging_up() -> (EndpointConfig, Arc<std::sync::atomic::AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind(loopback()).await.unwrap();
    let hits = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (address, count) = (listener.local_addr().unwrap(), hits.clone());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 64];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut head).await.ok();
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let address =
        modelplane_gateway::routes::config::Address::plain(address.ip().to_string(), address.port());
    (EndpointConfig::new("ml-team", "hanging-up", address), hits)
}

#[tokio::test]
async fn a_request_whose_fate_is_unknown_is_repeated_only_if_that_is_harmless() {
    let (broken, hits) = hanging_up().await;
    let living = Endpoint::named("living").await;
    let service = tiers(vec![vec![broken], vec![living.config("living")]]);
    let gateway = Running::start(only(service)).await;
    assert_eq!(post(gateway.address, CHAT, "{}").await.text(), "living");
    assert_eq!(hits.load(Ordering::SeqCst), 1);
    let answer = post(gateway.address, "/ml-team/chat/v1/responses", "{}").await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::BAD_GATEWAY, "endpoint_unreachable"));
    assert_eq!(living.hits(), 1);
}

#[tokio::test]
async fn a_failing_endpoint_is_ejected_and_comes_back() {
    let fails = Arc::new(AtomicBool::new(true));
    let told = fails.clone();
    let flaky = Endpoint::answering(move |_| {
        let status = if told.load(Ordering::SeqCst) { 500 } else { 200 };
        Response::builder().status(status).body(full("flaky")).unwrap()
    })
    .await;
    let steady = Endpoint::named("steady").await;
    let mut service = chat(vec![(1, vec![flaky.config("flaky"), steady.config("steady")])]);
    service.policy.balancing = Balancing::RoundRobin;
    service.policy.outliers =
        Outliers { consecutive_failures: 3, ejection: Duration::from_millis(300), max_ejected_percent: 50 };
    let gateway = Running::start(only(service)).await;
    let mut failures = 0;
    for _ in 0..40 {
        failures += u32::from(post(gateway.address, "/ml-team/chat/x", "{}").await.status == 500);
    }
    assert_eq!(failures, 3, "an answer is an answer, but three in a row are enough");
    fails.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(400)).await;
    let before = flaky.hits();
    for _ in 0..200 {
        assert_eq!(post(gateway.address, "/ml-team/chat/x", "{}").await.status, 200);
    }
    let share = flaky.hits() - before;
    assert!((1..=60).contains(&share), "it returns slowly, {share} of 200");
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_in_time_is_given_up() {
    let endpoint = Endpoint::serving(|_| Box::pin(std::future::pending())).await;
    let mut service = chat(vec![(1, vec![endpoint.config("slow")])]);
    service.policy.timeouts = Timeouts { first_byte: Duration::from_millis(100), ..Timeouts::default() };
    let gateway = Running::start(only(service)).await;
    let answer = post(gateway.address, "/ml-team/chat/v1/responses", "{}").await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::GATEWAY_TIMEOUT, "endpoint_timeout"));
}

#[tokio::test]
async fn a_stream_that_pauses_for_too_long_is_cut_off() {
    let (endpoint, mut feeds) = Endpoint::fed().await;
    let mut service = chat(vec![(1, vec![endpoint.config("slow")])]);
    service.policy.timeouts = Timeouts { idle: Duration::from_millis(200), ..Timeouts::default() };
    let gateway = Running::start(only(service)).await;
    let mut client = Client::<Full<Bytes>>::connect(gateway.address).await;
    let mut response = client.send(Request::get("/ml-team/chat/x").body(Full::default()).unwrap()).await;
    let sender = soon(feeds.recv()).await.unwrap();
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        sender.send(Frame::data("x".into())).await.unwrap();
        soon(response.frame()).await.unwrap().unwrap();
    }
    assert!(soon(response.frame()).await.unwrap().is_err(), "cut off, not ended");
}

#[tokio::test]
async fn traffic_overflows_to_the_next_tier_at_the_limit_and_is_refused_beyond_the_last() {
    let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let slow = |name: &'static str| {
        let arrived = arrived.clone();
        Endpoint::serving(move |_| {
            let (sender, body) = channel();
            arrived.send((name, sender)).unwrap();
            Box::pin(async { Response::new(body) })
        })
    };
    let (own, bought) = (slow("own").await, slow("bought").await);
    let mut service = tiers(vec![vec![own.config("own")], vec![bought.config("bought")]]);
    service.policy.overflow = Overflow { concurrent_requests: Some(2), ..Overflow::default() };
    let gateway = Running::start(only(service)).await;
    let mut held = Vec::new();
    let mut order = Vec::new();
    for _ in 0..4 {
        let mut client = Client::<Full<Bytes>>::connect(gateway.address).await;
        let response = client.send(Request::get("/ml-team/chat/x").body(Full::default()).unwrap()).await;
        let (name, sender) = soon(arrivals.recv()).await.unwrap();
        order.push(name);
        held.push((client, response, sender));
    }
    assert_eq!(order, ["own", "own", "bought", "bought"]);
    let answer = get(gateway.address, "/ml-team/chat/x").await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "overloaded"));
    assert!(answer.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn near_endpoints_are_preferred_and_far_ones_stand_in() {
    let (near, far) = (Endpoint::named("near").await, Endpoint::named("far").await);
    let labelled = |endpoint: &Endpoint, name: &str, zone: &str| {
        let mut config = endpoint.config(name);
        config.labels.insert("zone".to_owned(), zone.to_owned());
        config
    };
    let service = |near: EndpointConfig| {
        let mut service = chat(vec![(1, vec![labelled(&far, "far", "b"), near])]);
        service.policy.locality =
            Some(Locality { label: "zone".to_owned(), preferred: vec!["a".to_owned()] });
        only(service)
    };
    let gateway = Running::start(service(labelled(&near, "near", "a"))).await;
    for _ in 0..10 {
        assert_eq!(get(gateway.address, "/ml-team/chat/x").await.text(), "near");
    }
    let mut gone = dead("near").await;
    gone.labels.insert("zone".to_owned(), "a".to_owned());
    gateway.routes.publish(&service(gone));
    for _ in 0..10 {
        assert_eq!(get(gateway.address, "/ml-team/chat/x").await.text(), "far");
    }
}

#[tokio::test]
async fn a_conversation_stays_on_one_endpoint() {
    let mut endpoints = Vec::new();
    for name in ["a", "b", "c", "d"] {
        endpoints.push((name, Endpoint::named(name).await));
    }
    let configs = || endpoints.iter().map(|(name, endpoint)| endpoint.config(name)).collect();
    let mut service = chat(vec![(1, configs())]);
    service.policy.affinity = Some(Affinity { key: AffinityKey::Prefix, load_percent: 125 });
    let gateway = Running::start(only(service)).await;
    let mut used = std::collections::BTreeSet::new();
    for conversation in 0..16 {
        let first = format!(r#"{{"role":"user","content":"question {conversation}"}}"#);
        let turns = [
            format!(r#"{{"model":"m","messages":[{first}]}}"#),
            format!(
                r#"{{"temperature":1,"messages":[{first},{{"role":"assistant","content":"yes"}}],"stream":false}}"#
            ),
        ];
        let mut answers = Vec::new();
        for turn in turns {
            answers.push(post(gateway.address, CHAT, turn).await.text().to_owned());
        }
        assert_eq!(answers[0], answers[1]);
        used.insert(answers.remove(0));
    }
    assert!(used.len() >= 3, "conversations spread: {used:?}");
}

#[tokio::test]
async fn probes_find_a_sick_endpoint_before_requests_do() {
    let sick = Endpoint::answering(|seen| {
        let status = if seen.target.ends_with("/health") { 503 } else { 200 };
        Response::builder().status(status).body(full("sick")).unwrap()
    })
    .await;
    let well = Endpoint::named("well").await;
    let mut service = chat(vec![(1, vec![sick.config("sick"), well.config("well")])]);
    service.policy.balancing = Balancing::RoundRobin;
    service.policy.outliers.consecutive_failures = 1;
    service.policy.probe = Some(Probe { path: "/health".to_owned(), interval: Duration::from_millis(100) });
    let gateway = Running::start(only(service)).await;
    let all_well = async {
        loop {
            let mut answers = Vec::new();
            for _ in 0..4 {
                answers.push(get(gateway.address, "/ml-team/chat/x").await.text().to_owned());
            }
            if answers.iter().all(|answer| answer == "well") {
                return;
            }
        }
    };
    soon(all_well).await;
    assert!(sick.seen.lock().unwrap().iter().any(|seen| seen.target == "/ml-team/sick/health"));
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_along() {
    struct Tell(tokio::sync::mpsc::UnboundedSender<&'static str>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.send("dropped").ok();
        }
    }
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let endpoint = Endpoint::serving(move |_| {
        tell.send("arrived").unwrap();
        let held = Tell(tell.clone());
        Box::pin(async move {
            let _held = held;
            std::future::pending().await
        })
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    let request = format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\ncontent-length: 2\r\n\r\n{{}}");
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    assert_eq!(soon(told.recv()).await, Some("arrived"));
    drop(stream);
    assert_eq!(soon(told.recv()).await, Some("dropped"), "nobody computes an answer for no one");
}

#[tokio::test]
async fn slow_first_tokens_move_traffic_to_the_next_tier() {
    let slow = Endpoint::serving(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Response::new(full("slow"))
        })
    })
    .await;
    let other = Endpoint::named("other").await;
    let mut service = tiers(vec![vec![slow.config("slow")], vec![other.config("other")]]);
    service.policy.overflow =
        Overflow { time_to_first_token: Some(Duration::from_millis(50)), ..Overflow::default() };
    let gateway = Running::start(only(service)).await;
    assert_eq!(post(gateway.address, CHAT, "{}").await.text(), "slow");
    let mut others = 0;
    for _ in 0..20 {
        others += usize::from(post(gateway.address, CHAT, "{}").await.text() == "other");
    }
    assert!(others >= 14, "but for a request now and then: {others} of 20");
}
