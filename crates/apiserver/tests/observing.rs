//! What operators see: metrics, the audit log, the profile endpoint.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use http::{Method, Request};
use http_body_util::Full;
use modelplane_apiserver::{ApiServer, Identity, Options, Profile};
use serde_json::{Value, json};
use support::{Caller, server};
use tower::ServiceExt as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn metrics_count_requests_watches_and_revisions() {
    let server = server().await;
    let admin = Caller::new(&server);
    for name in ["a", "b"] {
        assert_eq!(admin.post(MAPS, &json!({"metadata": {"name": name}})).await.code, 201);
    }
    assert_eq!(admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await.code, 409);
    assert_eq!(admin.get("/apis/none/v1/made-up-by-a-client").await.code, 404);
    let request = Request::get(format!("{MAPS}?watch=true")).body(Full::<bytes::Bytes>::default()).unwrap();
    let watch = admin.0.clone().oneshot(request).await.unwrap();
    let text = admin.get("/metrics").await.text;
    let has = |text: &str, wanted: &str| {
        assert!(text.lines().any(|line| line.starts_with(wanted)), "{wanted}:\n{text}")
    };
    has(&text, "apiserver_request_total{verb=\"create\",resource=\"configmaps\",code=\"201\"} 2");
    has(&text, "apiserver_request_total{verb=\"create\",resource=\"configmaps\",code=\"409\"} 1");
    has(&text, "apiserver_request_duration_seconds_count{verb=\"create\",resource=\"configmaps\"} 3");
    has(&text, "apiserver_watchers{resource=\"configmaps\"} 1");
    has(&text, "store_revision ");
    assert!(!text.contains("made-up"), "clients cannot make labels");
    drop(watch);
    has(&admin.get("/metrics").await.text, "apiserver_watchers{resource=\"configmaps\"} 0");
    let stranger = Caller(server.in_process(Identity::new("eve", ["system:authenticated"])));
    assert_eq!(stranger.get("/metrics").await.code, 403);
}

#[tokio::test]
async fn the_audit_log_has_every_request_with_who_what_and_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let mut options = Options::in_memory(Profile::ControlPlane);
    options.audit_log = Some(path.clone());
    let server = ApiServer::start(options).await.unwrap();
    let before = std::fs::read_to_string(&path).unwrap().lines().count();
    let admin = Caller::new(&server);
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "do not log this"}});
    assert_eq!(admin.post("/api/v1/namespaces/default/secrets", &secret).await.code, 201);
    let eve = Caller(server.in_process(Identity::new("eve", ["system:authenticated"])));
    assert_eq!(eve.get("/api/v1/namespaces/default/secrets/s").await.code, 403);
    let acting = Request::get(MAPS).header("Impersonate-User", "bob").body(Full::default()).unwrap();
    assert_eq!(admin.raw(acting).await.code, 403);
    assert_eq!(admin.send(Method::GET, "/version", "", "").await.code, 200);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("do not log this") && !text.contains("ZG8gbm90"));
    let events: Vec<Value> =
        text.lines().skip(before).map(|line| serde_json::from_str(line).unwrap()).collect();
    // Controllers write between, under names of their own.
    let of = |user: &str| events.iter().filter(|event| event["user"]["username"] == user).collect::<Vec<_>>();
    let admins = of("kubernetes-admin");
    assert_eq!(admins.len(), 3, "{text}");
    assert_eq!(
        (&admins[0]["verb"], &admins[0]["objectRef"]["resource"]),
        (&json!("create"), &json!("secrets"))
    );
    assert_eq!(admins[0]["responseStatus"]["code"], 201);
    assert_eq!(admins[1]["impersonatedUser"]["username"], "bob");
    assert_eq!(admins[1]["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!((&admins[2]["requestURI"], admins[2].get("objectRef")), (&json!("/version"), None));
    let eves = of("eve");
    assert_eq!((eves.len(), &eves[0]["responseStatus"]["code"]), (1, &json!(403)));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn an_audit_log_that_cannot_be_opened_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::in_memory(Profile::ControlPlane);
    options.audit_log = Some(folder.path().join("missing/audit.log"));
    let error = ApiServer::start(options).await.err().unwrap().to_string();
    assert!(error.contains("audit.log"), "{error}");
}

#[tokio::test]
async fn the_profile_is_served_only_if_asked_for_and_to_whom_may_see_it() {
    let off = server().await;
    assert_eq!(Caller::new(&off).get("/debug/profile").await.code, 404);
    let mut options = Options::in_memory(Profile::ControlPlane);
    options.debug_profile = true;
    let server = ApiServer::start(options).await.unwrap();
    let admin = Caller::new(&server);
    assert_eq!(admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await.code, 201);
    let stranger = Caller(server.in_process(Identity::reader()));
    assert_eq!(stranger.get("/debug/profile").await.code, 403);
    let report = admin.get("/debug/profile").await.value;
    assert!(report["requests"]["create"]["count"].as_u64().unwrap() >= 1, "{report}");
    assert!(report["store"]["objects"].as_u64().unwrap() > 10, "{report}");
    assert!(report["runtime"]["workers"].as_array().is_some_and(|workers| !workers.is_empty()), "{report}");
    if cfg!(target_os = "linux") {
        assert!(report["process"]["residentBytes"].as_u64().unwrap() > 1 << 20, "{report}");
        assert!(report["process"]["peakResidentBytes"].is_u64(), "{report}");
    }
    for (path, code) in [("/debug/profile?seconds=1000", 400), ("/debug/profile?seconds=x", 400)] {
        assert_eq!(admin.get(path).await.code, code, "{path}");
    }
    let (between, created) = tokio::join!(admin.get("/debug/profile?seconds=1"), async {
        tokio::task::yield_now().await;
        admin.post(MAPS, &json!({"metadata": {"name": "b"}})).await.code
    });
    assert_eq!(created, 201);
    assert_eq!(
        between.value["requests"]["create"]["count"], 1,
        "only what happened between: {}",
        between.text
    );
}
