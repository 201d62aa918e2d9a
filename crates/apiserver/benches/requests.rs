//! Requests through the in-process service: create, update, get, a page of a list, and the fan-out of an event.

use std::hint::black_box;

use axum::body::Body;
use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use modelplane_apiserver::{ApiServer, Identity, InProcess, Options, Profile};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WATCHERS: usize = 1000;
const OBJECTS: usize = 5000;

fn map(name: &str, round: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "bench", "tier": "one"}},
        "data": {"round": round.to_string(), "text": "x".repeat(400)},
    })
}

async fn send(service: &InProcess, method: Method, path: &str, body: &Value) -> (u16, Bytes) {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).body(Full::new(body)).expect("a request");
    let response = service.clone().oneshot(request).await.expect("the service does not fail");
    let code = response.status().as_u16();
    (code, response.into_body().collect().await.expect("the body is in memory").to_bytes())
}

fn start(runtime: &Runtime) -> (ApiServer, InProcess) {
    let options = Options::in_memory(Profile::ControlPlane);
    let server = runtime.block_on(ApiServer::start(options)).expect("the server starts");
    let service = server.in_process(Identity::admin());
    (server, service)
}

fn writes(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (_server, service) = start(&runtime);
    let mut round = 0;
    criterion.bench_function("create", |bencher| {
        bencher.iter(|| {
            round += 1;
            let (code, _) =
                runtime.block_on(send(&service, Method::POST, MAPS, &map(&format!("m{round}"), round)));
            assert_eq!(code, 201);
        });
    });
    criterion.bench_function("update", |bencher| {
        bencher.iter(|| {
            round += 1;
            let path = format!("{MAPS}/m1");
            let (code, _) = runtime.block_on(send(&service, Method::PUT, &path, &map("m1", round)));
            assert_eq!(code, 200);
        });
    });
}

fn reads(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (_server, service) = start(&runtime);
    for index in 0..OBJECTS {
        runtime.block_on(send(&service, Method::POST, MAPS, &map(&format!("m{index}"), 0)));
    }
    let pages = [("get", format!("{MAPS}/m7")), ("list 500 of 5000", format!("{MAPS}?limit=500"))];
    for (name, path) in pages {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| black_box(runtime.block_on(send(&service, Method::GET, &path, &Value::Null))));
        });
    }
}

async fn next(body: &mut Body) -> Bytes {
    let frame = body.frame().await.expect("the watch goes on").expect("the watch does not fail");
    frame.into_data().expect("a watch sends data")
}

fn fan_out(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (_server, service) = start(&runtime);
    runtime.block_on(send(&service, Method::POST, MAPS, &map("m", 0)));
    let mut watchers: Vec<Body> = runtime.block_on(async {
        let mut watchers = Vec::new();
        for _ in 0..WATCHERS {
            let path = format!("{MAPS}?watch=true&resourceVersion=0");
            let request = Request::builder().uri(path).body(Full::<Bytes>::default()).expect("a request");
            let response = service.clone().oneshot(request).await.expect("the service does not fail");
            let mut body = response.into_body();
            // The object there is; the namespace holds no other.
            next(&mut body).await;
            watchers.push(body);
        }
        watchers
    });
    let mut round = 0;
    criterion.bench_function("update seen by 1000 watchers", |bencher| {
        bencher.iter(|| {
            round += 1;
            runtime.block_on(async {
                send(&service, Method::PUT, &format!("{MAPS}/m"), &map("m", round)).await;
                for watcher in &mut watchers {
                    black_box(next(watcher).await);
                }
            });
        });
    });
}

criterion_group!(benches, writes, reads, fan_out);
criterion_main!(benches);
