//! Watches: what a watcher sees, from where, and in which form.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use modelplane_apiserver::ApiServer;
use serde_json::{Value, json};
use support::{Caller, WIDGETS, widget, with_widgets};
use tower::ServiceExt as _;

/// A running watch, read event by event.
struct Events {
    body: axum::body::Body,
    rest: Vec<u8>,
}

async fn watch(caller: &Caller, path: &str, accept: &str) -> Events {
    let request =
        Request::builder().uri(path).header("accept", accept).body(Full::<bytes::Bytes>::default()).unwrap();
    let response = caller.0.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    Events { body: response.into_body(), rest: Vec::new() }
}

impl Events {
    /// The next event; `None` when the server ended the watch.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(Duration::from_secs(60), self.body.frame()).await.unwrap()?;
            self.rest.extend_from_slice(frame.unwrap().data_ref().unwrap());
        }
    }

    async fn kinds_and_names(&mut self, count: usize) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for _ in 0..count {
            let event = self.next().await.unwrap();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            found.push((text(&event["type"]), text(&event["object"]["metadata"]["name"])));
        }
        found
    }
}

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

async fn create(caller: &Caller, name: &str, label: &str) -> Value {
    let mut object = widget(name);
    object["metadata"]["labels"] = json!({"team": label});
    caller.post(WIDGETS, &object).await.value
}

async fn setup() -> (ApiServer, Caller) {
    with_widgets().await
}

#[tokio::test]
async fn a_watch_starts_with_what_there_is_or_after_a_revision() {
    let (_server, caller) = setup().await;
    let first = create(&caller, "a", "x").await;
    create(&caller, "b", "x").await;
    let mut all = watch(&caller, &format!("{WIDGETS}?watch=true"), "*/*").await;
    assert_eq!(all.kinds_and_names(2).await, [pair("ADDED", "a"), pair("ADDED", "b")]);
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let mut later = watch(&caller, &format!("{WIDGETS}?watch=true&resourceVersion={version}"), "*/*").await;
    caller.merge(&format!("{WIDGETS}/a"), &json!({"spec": {"size": "large"}})).await;
    caller.delete(&format!("{WIDGETS}/b")).await;
    let expected = [pair("ADDED", "b"), pair("MODIFIED", "a"), pair("DELETED", "b")];
    assert_eq!(later.kinds_and_names(3).await, expected);
    assert_eq!(all.kinds_and_names(2).await, expected[1..]);
}

#[tokio::test]
async fn objects_come_and_go_as_they_start_and_stop_to_match() {
    let (_server, caller) = setup().await;
    create(&caller, "a", "x").await;
    let mut events = watch(&caller, &format!("{WIDGETS}?watch=1&labelSelector=team%3Dy"), "*/*").await;
    let path = format!("{WIDGETS}/a");
    for label in ["y", "y", "x"] {
        let patch = json!({"metadata": {"labels": {"team": label}}, "spec": {"replicas": label.len()}});
        caller.merge(&path, &patch).await;
    }
    caller.merge(&path, &json!({"metadata": {"labels": {"team": "y"}}})).await;
    caller.delete(&path).await;
    let expected = [pair("ADDED", "a"), pair("DELETED", "a"), pair("ADDED", "a"), pair("DELETED", "a")];
    assert_eq!(events.kinds_and_names(4).await, expected);
}

#[tokio::test]
async fn a_streamed_list_ends_with_a_bookmark() {
    let (_server, caller) = setup().await;
    create(&caller, "a", "x").await;
    let path = format!(
        "{WIDGETS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut events = watch(&caller, &path, "*/*").await;
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    let end = events.next().await.unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(end["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    let without_rule = caller.get(&format!("{WIDGETS}?watch=true&sendInitialEvents=true")).await;
    assert_eq!(without_rule.code, 422);
}

#[tokio::test]
async fn a_watch_ends_after_its_timeout_with_a_bookmark() {
    let (_server, caller) = setup().await;
    create(&caller, "a", "x").await;
    let path = format!("{WIDGETS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true");
    let mut events = watch(&caller, &path, "*/*").await;
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    assert_eq!(events.next().await.unwrap()["type"], "BOOKMARK");
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn watched_tables_name_their_columns_once() {
    let (_server, caller) = setup().await;
    create(&caller, "a", "x").await;
    create(&caller, "b", "x").await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut events = watch(&caller, &format!("{WIDGETS}?watch=true"), accept).await;
    let first = events.next().await.unwrap();
    assert_eq!(first["object"]["columnDefinitions"].as_array().unwrap().len(), 4);
    let second = events.next().await.unwrap();
    assert!(second["object"]["columnDefinitions"].is_null());
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn a_revision_from_another_life_of_the_server_has_expired() {
    let (_server, caller) = setup().await;
    let mut events = watch(&caller, &format!("{WIDGETS}?watch=true&resourceVersion=100000"), "*/*").await;
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn many_watches_see_what_one_sees() {
    let (_server, caller) = setup().await;
    let everything = format!("{WIDGETS}?watch=true");
    let selected = format!("{WIDGETS}?watch=true&labelSelector=team%3Dx");
    let mut alone = watch(&caller, &everything, "*/*").await;
    create(&caller, "a", "x").await;
    assert_eq!(alone.kinds_and_names(1).await, [pair("ADDED", "a")]);
    let mut many = Vec::new();
    for _ in 0..6 {
        many.push(watch(&caller, &everything, "*/*").await);
    }
    let mut by_label = watch(&caller, &selected, "*/*").await;
    for events in many.iter_mut().chain([&mut by_label]) {
        assert_eq!(events.kinds_and_names(1).await, [pair("ADDED", "a")]);
    }
    let moved = json!({"metadata": {"labels": {"team": "y"}}});
    caller.merge(&format!("{WIDGETS}/a"), &moved).await;
    let seen = alone.next().await.unwrap();
    assert_eq!(
        (&seen["type"], &seen["object"]["metadata"]["labels"]),
        (&json!("MODIFIED"), &json!({"team": "y"}))
    );
    for events in &mut many {
        assert_eq!(events.next().await.unwrap(), seen);
    }
    let lost = by_label.next().await.unwrap();
    assert_eq!(
        (&lost["type"], &lost["object"]["metadata"]["labels"]),
        (&json!("DELETED"), &json!({"team": "x"}))
    );
}

#[tokio::test]
async fn watches_end_when_the_definition_changes_or_the_server_stops() {
    let (server, caller) = setup().await;
    let mut events = watch(&caller, &format!("{WIDGETS}?watch=true"), "*/*").await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.org";
    let changed = caller.merge(definition, &json!({"spec": {"names": {"shortNames": ["w"]}}})).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    assert_eq!(events.next().await, None);
    let mut events = watch(&caller, &format!("{WIDGETS}?watch=true"), "*/*").await;
    server.shutdown().await;
    assert_eq!(events.next().await, None);
}
