//! Any request gets an answer, an error is a Status, and what is there stays readable.
//!
//! Input: a byte that chooses method and content type, the path and query up to a line break, then the body.

#![no_main]

use std::cell::OnceCell;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::fuzz_target;
use modelplane_apiserver::{ApiServer, Identity, InProcess, Options, Profile};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const TYPES: [&str; 7] = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
];

thread_local! {
    static SERVER: OnceCell<(Runtime, ApiServer, InProcess)> = const { OnceCell::new() };
}

fn start() -> (Runtime, ApiServer, InProcess) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = runtime.block_on(ApiServer::start(Options::in_memory(Profile::Workload))).expect("a server");
    let service = server.in_process(Identity::admin());
    (runtime, server, service)
}

async fn check(service: InProcess, request: Request<Full<Bytes>>) {
    let response = service.clone().oneshot(request).await.expect("the service does not fail");
    let code = response.status().as_u16();
    let is_json = response.headers().get("content-type").is_some_and(|kind| kind == "application/json");
    if code >= 400 && is_json {
        let body = response.into_body().collect().await.expect("errors are in memory").to_bytes();
        let status: Value = serde_json::from_slice(&body).expect("an error is JSON");
        assert_ne!(status["reason"], "InternalError", "an input must not be the server's fault");
        assert_eq!((&status["kind"], &status["code"]), (&"Status".into(), &code.into()));
    }
    let namespace = Request::get("/api/v1/namespaces/default").body(Full::<Bytes>::default()).expect("a request");
    let alive = service.oneshot(namespace).await.expect("the service does not fail");
    assert_eq!(alive.status(), 200);
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let Ok(path) = std::str::from_utf8(&rest[..end]) else { return };
    // The default namespace is the proof of life, and watches do not end.
    if path.contains("namespaces/default") && !path.contains("/default/") || path.contains("watch") {
        return;
    }
    let body = Bytes::copy_from_slice(rest.get(end + 1..).unwrap_or_default());
    let request = Request::builder()
        .method(METHODS[usize::from(choice) % METHODS.len()])
        .uri(path)
        .header("content-type", TYPES[usize::from(choice >> 4) % TYPES.len()])
        .body(Full::new(body));
    let Ok(request) = request else { return };
    SERVER.with(|server| {
        let (runtime, _, service) = server.get_or_init(start);
        runtime.block_on(check(service.clone(), request));
    });
});
