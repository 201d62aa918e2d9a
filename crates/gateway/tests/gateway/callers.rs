//! Keys, rights and limits of callers; models by name (issue 7, items 2 and 6).

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use modelplane_gateway::Snapshot;
use modelplane_gateway::routes::config::{AllowedServices, CallerConfig, CallerLimits};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::*;

const CHAT: &str = "/ml-team/chat/v1/chat/completions";

fn caller(key: &str, services: AllowedServices, limits: CallerLimits) -> CallerConfig {
    CallerConfig { id: format!("ml-team/{key}"), digest: Sha256::digest(key).into(), services, limits }
}

fn with_callers(endpoint: &Endpoint, callers: Vec<CallerConfig>) -> Snapshot {
    Snapshot { callers: Some(callers), ..on(endpoint) }
}

fn request(path: &str, header: (&str, &str), body: &str) -> Request<Full<Bytes>> {
    let request = Request::post(path).header("host", "g").header(header.0, header.1);
    request.body(Full::from(body.to_owned())).unwrap()
}

#[tokio::test]
async fn callers_are_told_what_is_wrong_with_their_key() {
    let endpoint = Endpoint::named("one").await;
    let other = AllowedServices::Only(vec!["ml-team/other".to_owned()]);
    let callers = vec![
        caller("good", AllowedServices::All, CallerLimits::default()),
        caller("elsewhere", other, CallerLimits::default()),
    ];
    let gateway = Running::start(with_callers(&endpoint, callers)).await;
    let cases = [
        (("authorization", "Bearer good"), StatusCode::OK, ""),
        (("x-api-key", "good"), StatusCode::OK, ""),
        (("authorization", "Bearer bad"), StatusCode::UNAUTHORIZED, "invalid_api_key"),
        (("accept", "*/*"), StatusCode::UNAUTHORIZED, "missing_api_key"),
        (("authorization", "Bearer elsewhere"), StatusCode::FORBIDDEN, "model_not_allowed"),
    ];
    for (header, status, code) in cases {
        let answer = ask(gateway.address, request(CHAT, header, "{}")).await;
        assert_eq!(answer.status, status, "{header:?}");
        if status != StatusCode::OK {
            assert_eq!(answer.code(), code, "{header:?}");
        } else {
            let seen = endpoint.last();
            assert!(!seen.headers.contains_key("authorization") && !seen.headers.contains_key("x-api-key"));
        }
    }
    let answer = ask(gateway.address, request("/nowhere/at-all/x", ("accept", "*/*"), "{}")).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "strangers learn nothing of what is served");
}

#[tokio::test]
async fn requests_and_tokens_per_minute_are_limited_with_the_time_to_wait() {
    let endpoint = Endpoint::answering(|_| {
        let body = json!({"usage": {"prompt_tokens": 40, "completion_tokens": 80}}).to_string();
        Response::builder().header("content-type", "application/json").body(full(body)).unwrap()
    })
    .await;
    let requests = CallerLimits { requests_per_minute: Some(2), ..CallerLimits::default() };
    let tokens = CallerLimits { tokens_per_minute: Some(60), ..CallerLimits::default() };
    let budget = CallerLimits { budget_tokens: Some(120), ..CallerLimits::default() };
    let callers = [("requests", requests), ("tokens", tokens), ("budget", budget)];
    let callers = callers.map(|(key, limits)| caller(key, AllowedServices::All, limits)).to_vec();
    let gateway = Running::start(with_callers(&endpoint, callers)).await;
    for (key, allowed, code) in [
        ("requests", 2, "requests_per_minute"),
        ("tokens", 1, "tokens_per_minute"),
        ("budget", 1, "insufficient_quota"),
    ] {
        for _ in 0..allowed {
            let answer = ask(gateway.address, request(CHAT, ("x-api-key", key), "{}")).await;
            assert_eq!(answer.status, StatusCode::OK, "{key}");
        }
        let refused = async {
            loop {
                // Tokens are charged when the response is over, a moment after the client has it.
                let answer = ask(gateway.address, request(CHAT, ("x-api-key", key), "{}")).await;
                if answer.status != StatusCode::OK {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let answer = soon(refused).await;
        assert_eq!((answer.status, answer.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, code));
        assert_eq!(answer.headers.contains_key("retry-after"), key != "budget");
    }
}

#[tokio::test]
async fn a_caller_has_only_so_many_requests_at_a_time() {
    let (endpoint, mut feeds) = Endpoint::fed().await;
    let limits = CallerLimits { concurrent_requests: Some(1), ..CallerLimits::default() };
    let gateway =
        Running::start(with_callers(&endpoint, vec![caller("key", AllowedServices::All, limits)])).await;
    let mut client = Client::connect(gateway.address).await;
    let first = client.send(request(CHAT, ("x-api-key", "key"), "{}")).await;
    let sender = soon(feeds.recv()).await.unwrap();
    let answer = ask(gateway.address, request(CHAT, ("x-api-key", "key"), "{}")).await;
    assert_eq!(answer.code(), "concurrent_requests");
    drop((sender, first, client));
    let free_again = async {
        while ask_head(gateway.address).await != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(free_again).await;
}

async fn ask_head(address: std::net::SocketAddr) -> StatusCode {
    let mut client = Client::connect(address).await;
    client.send(request(CHAT, ("x-api-key", "key"), "{}")).await.status()
}

#[tokio::test]
async fn a_request_is_routed_by_the_model_it_names() {
    let endpoint = Endpoint::answering(|seen| {
        let body = match seen.target.as_str() {
            "/ml-team/one/v1/models" => json!({"object": "list", "data": [{"id": "llama-3"}]}).to_string(),
            _ => "ok".to_owned(),
        };
        Response::new(full(body))
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let bodies = [
        (r#"{"model":"ml-team/chat","messages":[]}"#, r#"{"model":"llama-3","messages":[]}"#),
        (
            r#"{"messages":[{"model":"x"}],"model" : "ml-team\/chat"}"#,
            r#"{"messages":[{"model":"x"}],"model" : "llama-3"}"#,
        ),
    ];
    for path in ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"] {
        for (body, want) in bodies {
            let answer = post(gateway.address, path, body).await;
            assert_eq!((answer.status, answer.text()), (StatusCode::OK, "ok"));
            let seen = endpoint.last();
            assert_eq!(seen.target, format!("/ml-team/one{path}"));
            assert_eq!(seen.body, want, "the name the endpoint itself lists");
        }
    }
    for (body, status, code) in [
        (r#"{"model":"ml-team/none"}"#, StatusCode::NOT_FOUND, "model_not_found"),
        (r#"{"messages":[]}"#, StatusCode::BAD_REQUEST, "missing_model"),
        ("", StatusCode::BAD_REQUEST, "missing_model"),
        ("\u{fffd} not json", StatusCode::BAD_REQUEST, "missing_model"),
    ] {
        let answer = post(gateway.address, "/v1/chat/completions", body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{body}");
    }
}

#[tokio::test]
async fn a_large_body_is_read_only_as_far_as_its_model() {
    let endpoint = Endpoint::named("one").await;
    let mut config = endpoint.config("one");
    config.model = Some("a-much-longer-name-than-before".to_owned());
    let gateway = Running::start(only(chat(vec![(1, vec![config])]))).await;
    let filler = "x".repeat(3_000_000);
    for body in [
        format!(r#"{{"model":"ml-team/chat","prompt":"{filler}"}}"#),
        format!(r#"{{"prompt":"{filler}","model":"ml-team/chat"}}"#),
    ] {
        let answer = post(gateway.address, "/v1/completions", body.clone()).await;
        assert_eq!(answer.status, StatusCode::OK);
        let want = body.replace("ml-team/chat", "a-much-longer-name-than-before");
        let seen = endpoint.last();
        assert!(seen.body == want, "the name is replaced and nothing else");
        assert_eq!(seen.headers["content-length"], want.len().to_string());
    }
}

#[tokio::test]
async fn models_are_listed_as_far_as_the_caller_may_use_them() {
    let endpoint = Endpoint::named("one").await;
    let mut secret = chat(vec![(1, vec![endpoint.config("one")])]);
    secret.name = "secret".to_owned();
    let mut snapshot = on(&endpoint);
    snapshot.services.push(secret);
    let gateway = Running::start(snapshot.clone()).await;
    let ids = |answer: &Whole| {
        let list: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let ids =
            list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids(&get(gateway.address, "/v1/models").await), ["ml-team/chat", "ml-team/secret"]);
    assert_eq!(get(gateway.address, "/v1/models/ml-team/chat").await.status, StatusCode::OK);
    assert_eq!(get(gateway.address, "/v1/models/ml-team/none").await.code(), "model_not_found");
    let only_chat = AllowedServices::Only(vec!["ml-team/chat".to_owned()]);
    snapshot.callers = Some(vec![caller("key", only_chat, CallerLimits::default())]);
    gateway.routes.publish(&snapshot);
    let list = |path: &str| {
        let request = Request::get(path).header("host", "g").header("x-api-key", "key");
        ask(gateway.address, request.body(Full::default()).unwrap())
    };
    assert_eq!(ids(&list("/v1/models").await), ["ml-team/chat"]);
    assert_eq!(list("/v1/models/ml-team/secret").await.status, StatusCode::NOT_FOUND);
}
