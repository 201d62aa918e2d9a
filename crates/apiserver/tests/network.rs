//! The server over TLS: certificates, slow and broken clients, a real client library.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use modelplane_apiserver::{Identity, Options, Profile};
use support::served::{Served, ask};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// More than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

async fn serve() -> Served {
    Served::start(Options::in_memory(Profile::ControlPlane)).await
}

/// Reads until something was said or the connection ended.
async fn until(stream: &mut (impl AsyncRead + Unpin), wanted: &str) -> String {
    let mut heard = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut chunk)).await.expect("nothing more came");
        let read = read.unwrap_or(0);
        heard.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&heard);
        if read == 0 || (!wanted.is_empty() && text.contains(wanted)) {
            return text.into_owned();
        }
    }
}

#[tokio::test]
async fn a_client_with_the_kubeconfig_works_and_one_without_is_refused() {
    let served = serve().await;
    let client = served.client(&Identity::admin()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let map = ConfigMap {
        metadata: ObjectMeta { generate_name: Some("map-".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let created = maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(created.metadata.name.unwrap().starts_with("map-"));
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let stranger = served.client_with_token(None).await;
    assert_eq!(ask(&stranger, "GET", "/api/v1/namespaces/default/configmaps").await.0, 401);
    served.stop().await;
}

#[tokio::test]
async fn only_livez_and_readyz_answer_without_credentials() {
    let served = serve().await;
    let stranger = served.client_with_token(None).await;
    let admin = served.client(&Identity::admin()).await;
    for (method, path, anonymous, authorized) in [
        ("GET", "/livez", 200, 200),
        ("GET", "/readyz", 200, 200),
        ("GET", "/readyz?verbose", 200, 200),
        ("POST", "/readyz", 401, 405),
        ("GET", "/livez/ping", 401, 200),
        ("GET", "/livez/unknown", 401, 404),
        ("GET", "/healthz", 401, 200),
        ("GET", "/version", 401, 200),
        ("GET", "/api", 401, 200),
        ("GET", "/apis", 401, 200),
        ("GET", "/openapi/v2", 401, 200),
        ("GET", "/metrics", 401, 200),
        ("GET", "/debug/profile", 401, 404),
        ("GET", "/api/v1/namespaces", 401, 200),
    ] {
        assert_eq!(ask(&stranger, method, path).await.0, anonymous, "{method} {path} without credentials");
        // The client makes its own error of a text that is no Status.
        if authorized != 404 {
            assert_eq!(ask(&admin, method, path).await.0, authorized, "{method} {path} as administrator");
        }
    }
    served.stop().await;
}

#[tokio::test]
async fn clients_that_say_nothing_hold_up_nobody() {
    let served = serve().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(b"\x16\x03").await.unwrap();
        silent.push(stream);
    }
    let admin = served.client(&Identity::admin()).await;
    assert_eq!(ask(&admin, "GET", "/api/v1/namespaces/default/configmaps").await.0, 200);
    // Plain HTTP is no TLS: the connection ends.
    let mut plain = TcpStream::connect(served.address).await.unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let answer = until(&mut plain, "").await;
    assert!(!answer.contains("HTTP/1.1 200"), "{answer}");
    // The handshake's own limit ends the silent ones.
    until(&mut silent[0], "").await;
    served.stop().await;
}

/// Lets the time that a slow client is given pass at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_let_go() {
    let served = serve().await;
    let mut slow = served.connect().await;
    slow.write_all(b"GET /api HTTP/1.1\r\nhost: x\r\nx-a: ").await.unwrap();
    slow.flush().await.unwrap();
    let admin = served.client(&Identity::admin()).await;
    assert_eq!(ask(&admin, "GET", "/api").await.0, 200);
    pass(Duration::from_secs(31)).await;
    let answer = until(&mut slow, "").await;
    assert!(!answer.contains(" 200 "), "{answer}");
    let admin = served.client(&Identity::admin()).await;
    assert_eq!(ask(&admin, "GET", "/api").await.0, 200);
    served.stop().await;
}

const HALF: &[u8] = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\n\
    content-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"metadata\":";

#[tokio::test]
async fn a_client_that_never_ends_its_body_gets_a_status() {
    let served = serve().await;
    let mut slow = served.connect().await;
    slow.write_all(HALF).await.unwrap();
    slow.flush().await.unwrap();
    // A request that came later is answered: the server has read the one before.
    let admin = served.client(&Identity::admin()).await;
    assert_eq!(ask(&admin, "GET", "/api").await.0, 200);
    pass(Duration::from_secs(61)).await;
    let answer = until(&mut slow, "\"code\":408").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("\"kind\":\"Status\"") && answer.contains("\"reason\":\"Timeout\""), "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn a_body_that_stops_halfway_changes_nothing() {
    let served = serve().await;
    let mut broken = served.connect().await;
    broken.write_all(HALF).await.unwrap();
    broken.shutdown().await.unwrap();
    let answer = until(&mut broken, "\"code\":400").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    let chunked = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
    let mut broken = served.connect().await;
    broken.write_all(chunked).await.unwrap();
    let answer = until(&mut broken, "\"code\":400").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client(&Identity::admin()).await);
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
    served.stop().await;
}

#[tokio::test]
async fn oversized_heads_and_bodies_are_refused() {
    let served = serve().await;
    let mut long = served.connect().await;
    let head = format!("GET /api HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "y".repeat(1 << 20));
    // The server may answer and close before all of it is sent.
    let _ = long.write_all(head.as_bytes()).await;
    let answer = until(&mut long, "").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let mut large = served.connect().await;
    let head =
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000\r\n\r\n";
    large.write_all(head.as_bytes()).await.unwrap();
    let answer = until(&mut large, "\"code\":413").await;
    assert!(answer.starts_with("HTTP/1.1 413"), "refused before the body was sent: {answer}");
    let admin = served.client(&Identity::admin()).await;
    assert_eq!(ask(&admin, "GET", "/api").await.0, 200);
    served.stop().await;
}
