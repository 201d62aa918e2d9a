//! What operators see: tokens, metrics, live routes (issue 7, item 7).

use std::net::SocketAddr;

use http::Response;
use modelplane_gateway::routes::config::{AllowedServices, CallerConfig, CallerLimits};
use modelplane_gateway::{Gateway, Snapshot};
use sha2::{Digest, Sha256};

use crate::support::*;

const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n";

/// A gateway with an admin listener: its address and the admin's.
fn start(snapshot: Snapshot) -> (SocketAddr, SocketAddr) {
    let mut options = options();
    options.listen_admin = Some(loopback());
    let gateway = Gateway::bind(options).unwrap();
    let addresses = (gateway.address(), gateway.admin_address().unwrap());
    gateway.routes().publish(&snapshot);
    tokio::spawn(gateway.serve(snapshot, std::future::pending()));
    addresses
}

/// Waits until a line is among the metrics.
async fn metrics_with(admin: SocketAddr, line: &str) {
    let mut last = String::new();
    let found = async {
        loop {
            last = get(admin, "/metrics").await.text().to_owned();
            if last.lines().any(|got| got == line) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(std::time::Duration::from_secs(5), found).await.is_err() {
        panic!("{line} is not in\n{last}");
    }
}

#[tokio::test]
async fn tokens_are_counted_whole_and_streamed_reported_or_not_and_no_byte_changes() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":20}}\n\ndata: [DONE]\n\n";
    let whole = r#"{"id":"x","usage":{"prompt_tokens":100,"completion_tokens":200,"prompt_tokens_details":{"cached_tokens":64}}}"#;
    let endpoint = Endpoint::answering(move |seen| {
        let (kind, body) = match seen.target.rsplit('/').next().unwrap() {
            "whole" => ("application/json", whole.to_owned()),
            "reported" => ("text/event-stream", format!("{STREAM}{usage}")),
            _ => ("text/event-stream", STREAM.to_owned()),
        };
        Response::builder().header("content-type", kind).body(full(body)).unwrap()
    })
    .await;
    let caller = CallerConfig {
        id: "ml-team/key".to_owned(),
        digest: Sha256::digest("key").into(),
        services: AllowedServices::All,
        limits: CallerLimits::default(),
    };
    let (address, admin) = start(Snapshot { callers: Some(vec![caller]), ..on(&endpoint) });
    for (path, want) in [
        ("whole", whole.to_owned()),
        ("reported", format!("{STREAM}{usage}")),
        ("unreported", STREAM.to_owned()),
    ] {
        let request = http::Request::post(format!("/ml-team/chat/{path}"))
            .header("host", "g")
            .header("x-api-key", "key");
        let answer = ask(address, request.body("{}".to_owned().into()).unwrap()).await;
        assert_eq!(answer.text(), want);
    }
    let labels = "service=\"ml-team/chat\",endpoint=\"ml-team/one\"";
    for (kind, count) in [("prompt", 110), ("completion", 222), ("cached", 64)] {
        metrics_with(admin, &format!("modelplane_gateway_tokens_total{{{labels},kind=\"{kind}\"}} {count}"))
            .await;
        let caller = format!("caller=\"ml-team/key\",service=\"ml-team/chat\",kind=\"{kind}\"");
        metrics_with(admin, &format!("modelplane_gateway_caller_tokens_total{{{caller}}} {count}")).await;
    }
    metrics_with(admin, &format!("modelplane_gateway_responses_total{{{labels},code=\"2xx\"}} 3")).await;
    metrics_with(admin, &format!("modelplane_gateway_time_to_first_token_seconds_count{{{labels}}} 3")).await;
    metrics_with(admin, &format!("modelplane_gateway_inter_token_latency_seconds_count{{{labels}}} 2")).await;
    metrics_with(admin, &format!("modelplane_gateway_requests_in_flight{{{labels}}} 0")).await;
    raw(address, b"NONSENSE\r\n\r\n").await;
    metrics_with(admin, "modelplane_gateway_malformed_requests_total 1").await;
    metrics_with(admin, "modelplane_gateway_configuration_problems 0").await;
    get(address, "/nowhere").await;
    metrics_with(admin, "modelplane_gateway_refusals_total{code=\"missing_api_key\"} 1").await;
}

#[tokio::test]
async fn the_live_table_says_why_an_endpoint_is_in_or_out() {
    let fine = Endpoint::named("fine").await;
    let full_up = Endpoint::answering(|_| {
        Response::builder().status(503).header("retry-after", "60").body(full("no")).unwrap()
    })
    .await;
    let broken = Endpoint::answering(|_| Response::builder().status(500).body(full("no")).unwrap()).await;
    let configs = vec![fine.config("fine"), full_up.config("full"), broken.config("broken")];
    let mut service = chat(vec![(1, configs)]);
    service.policy.outliers.consecutive_failures = 1;
    let (address, admin) = start(only(service));
    for _ in 0..6 {
        post(address, "/ml-team/chat/x", "{}").await;
    }
    let routes: serde_json::Value = serde_json::from_slice(&get(admin, "/debug/routes").await.body).unwrap();
    let states: Vec<_> = routes["services"][0]["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|endpoint| {
            endpoint["state"].as_str().unwrap().split([' ', '(']).take(3).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(states, ["in", "out: full ", "out: ejected after"]);
    let full = routes["services"][0]["endpoints"][1]["state"].as_str().unwrap();
    assert!(full.starts_with("out: full (says so itself for "), "{full}");
    assert_eq!(get(admin, "/readyz").await.text(), "ok\n");
    assert_eq!(get(admin, "/livez").await.text(), "ok\n");
}
