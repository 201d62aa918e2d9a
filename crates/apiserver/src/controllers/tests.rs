//! Controllers on a server in memory, with requests as clients would make them.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use modelplane_store::{Options, Store};
use serde_json::{Value, json};

use super::*;
use crate::identity::Identity;
use crate::options::Profile;
use crate::service::{Caller, handle};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server in memory with running controllers.
struct Server {
    core: Arc<Core>,
    controllers: Controllers,
}

impl Server {
    async fn start() -> Server {
        let core = Core::new(Store::in_memory(Options::default()), Profile::Workload).unwrap();
        let core = Arc::new(core);
        let server = Server { controllers: Controllers::start(&core), core };
        server.namespace("default").await;
        server
    }

    async fn namespace(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.ok(Method::POST, "/api/v1/namespaces", &object).await;
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind)
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let response = handle(Arc::clone(&self.core), Caller::Known(Identity::admin()), request).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn ok(&self, method: Method, path: &str, body: &Value) -> Value {
        let (code, answer) = self.send(method, path, body).await;
        assert!(code < 300, "{path}: {code} {answer}");
        answer
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let (code, answer) = self.send(Method::GET, path, &Value::Null).await;
        (code == 200).then_some(answer)
    }

    /// Makes a ConfigMap; returns a reference to it as an owner.
    async fn map(&self, name: &str, owners: &[Value]) -> Value {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners},
        });
        let made = self.ok(Method::POST, MAPS, &object).await;
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": made["metadata"]["uid"],
            "blockOwnerDeletion": true,
        })
    }

    async fn delete(&self, path: &str, propagation: &str) {
        self.ok(Method::DELETE, path, &json!({"propagationPolicy": propagation})).await;
    }

    async fn until_gone(&self, path: &str) {
        self.until(path, |found| found.is_none()).await;
    }

    /// Waits until an object is as wanted.
    async fn until(&self, path: &str, wanted: impl Fn(Option<&Value>) -> bool) {
        let reached = async {
            while !wanted(self.get(path).await.as_ref()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(30), reached).await.is_err() {
            panic!("{path} stays as {:?}", self.get(path).await);
        }
    }

    /// Waits until the collector has seen everything before: a dangling object it must collect is gone.
    async fn settle(&self) {
        let gone = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "none"});
        self.map("canary", &[gone]).await;
        self.until_gone(&format!("{MAPS}/canary")).await;
    }
}

#[tokio::test]
async fn dependents_follow_their_last_owner_in_the_background() {
    let server = Server::start().await;
    let (one, two) = (server.map("one", &[]).await, server.map("two", &[]).await);
    let child = server.map("child", &[one.clone(), two]).await;
    server.map("grandchild", &[child]).await;
    server.delete(&format!("{MAPS}/one"), "Background").await;
    server
        .until(&format!("{MAPS}/child"), |child| {
            let owners = child.expect("it has an owner left")["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.len() == 1 && owners[0]["name"] == "two")
        })
        .await;
    server.delete(&format!("{MAPS}/two"), "Background").await;
    for name in ["child", "grandchild"] {
        server.until_gone(&format!("{MAPS}/{name}")).await;
    }
    server.controllers.stop().await;
}

#[tokio::test]
async fn an_owner_is_meant_by_uid_and_unresolvable_ones_keep_their_dependents() {
    let server = Server::start().await;
    let mut other = server.map("owner", &[]).await;
    other["uid"] = "another".into();
    server.map("dangling", &[other]).await;
    server.until_gone(&format!("{MAPS}/dangling")).await;
    let unknown = json!({"apiVersion": "x.example/v1", "kind": "Unknown", "name": "a", "uid": "b"});
    server.map("kept", &[unknown]).await;
    server.settle().await;
    assert!(server.get(&format!("{MAPS}/kept")).await.is_some());
}

#[tokio::test]
async fn foreground_deletion_waits_for_blocking_dependents() {
    let server = Server::start().await;
    let owner = server.map("owner", &[]).await;
    let child = server.map("child", &[owner]).await;
    server.map("grandchild", &[child]).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    server.ok(Method::PATCH, &format!("{MAPS}/grandchild"), &hold).await;
    server.delete(&format!("{MAPS}/owner"), "Foreground").await;
    let terminating =
        |found: Option<&Value>| found.is_some_and(|found| found["metadata"]["deletionTimestamp"].is_string());
    server.until(&format!("{MAPS}/grandchild"), terminating).await;
    for name in ["owner", "child"] {
        let found = server.get(&format!("{MAPS}/{name}")).await.expect("it waits for its dependent");
        assert_eq!(found["metadata"]["finalizers"], json!(["foregroundDeletion"]), "{name}");
    }
    let release = json!({"metadata": {"finalizers": null}});
    server.ok(Method::PATCH, &format!("{MAPS}/grandchild"), &release).await;
    for name in ["grandchild", "child", "owner"] {
        server.until_gone(&format!("{MAPS}/{name}")).await;
    }
}

#[tokio::test]
async fn foreground_deletion_of_a_circle_ends() {
    let server = Server::start().await;
    let one = server.map("one", &[]).await;
    let two = server.map("two", &[one]).await;
    let back = json!({"metadata": {"ownerReferences": [two]}});
    server.ok(Method::PATCH, &format!("{MAPS}/one"), &back).await;
    server.delete(&format!("{MAPS}/one"), "Foreground").await;
    for name in ["one", "two"] {
        server.until_gone(&format!("{MAPS}/{name}")).await;
    }
}

#[tokio::test]
async fn orphans_lose_their_owner_and_stay() {
    let server = Server::start().await;
    let owner = server.map("owner", &[]).await;
    for name in ["a", "b"] {
        server.map(name, std::slice::from_ref(&owner)).await;
    }
    server.delete(&format!("{MAPS}/owner"), "Orphan").await;
    server.until_gone(&format!("{MAPS}/owner")).await;
    server.settle().await;
    for name in ["a", "b"] {
        let found = server.get(&format!("{MAPS}/{name}")).await.expect("it is kept");
        let owners = found["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
        assert_eq!(owners, 0, "{name}");
    }
}

#[tokio::test]
async fn a_namespace_ends_when_its_contents_are_gone() {
    let server = Server::start().await;
    server.namespace("team").await;
    let maps = "/api/v1/namespaces/team/configmaps";
    for (name, finalizers) in [("free", json!([])), ("held", json!(["example.com/hold"]))] {
        let metadata = json!({"name": name, "finalizers": finalizers});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        server.ok(Method::POST, maps, &object).await;
    }
    server.delete("/api/v1/namespaces/team", "Background").await;
    server.until_gone(&format!("{maps}/free")).await;
    let says_why = |found: Option<&Value>| {
        let text = found.map(ToString::to_string).unwrap_or_default();
        text.contains("\"phase\":\"Terminating\"")
            && text.contains("Some resources are remaining: configmaps has 1 resource instances")
            && text.contains("finalizers remaining: example.com/hold in 1 resource instances")
    };
    server.until("/api/v1/namespaces/team", says_why).await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
    assert_eq!(server.send(Method::POST, maps, &object).await.0, 403);
    let release = json!({"metadata": {"finalizers": null}});
    server.ok(Method::PATCH, &format!("{maps}/held"), &release).await;
    server.until_gone("/api/v1/namespaces/team").await;
}

#[tokio::test]
async fn a_definition_ends_after_its_objects() {
    let server = Server::start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.example"},
        "spec": {
            "group": "x.example", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.ok(Method::POST, definitions, &definition).await;
    let things = "/apis/x.example/v1/namespaces/default/things";
    for name in ["a", "b"] {
        let thing = json!({"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": name}});
        server.ok(Method::POST, things, &thing).await;
    }
    server.delete(&format!("{definitions}/things.x.example"), "Background").await;
    server.until_gone(&format!("{definitions}/things.x.example")).await;
    assert_eq!(server.send(Method::GET, things, &Value::Null).await.0, 404);
    server.ok(Method::POST, definitions, &definition).await;
    let list = server.ok(Method::GET, things, &Value::Null).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn aggregated_roles_show_what_they_aggregate() {
    let server = Server::start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = |name: &str, more: Value| {
        let mut role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        });
        for (field, value) in more.as_object().unwrap() {
            role[field] = value.clone();
        }
        role
    };
    let selector = json!({"clusterRoleSelectors": [{"matchLabels": {"part": "whole"}}]});
    server.ok(Method::POST, roles, &role("whole", json!({"aggregationRule": selector}))).await;
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let part =
        role("part", json!({"metadata": {"name": "part", "labels": {"part": "whole"}}, "rules": rules}));
    server.ok(Method::POST, roles, &part).await;
    server.until(&format!("{roles}/whole"), |whole| whole.is_some_and(|whole| whole["rules"] == rules)).await;
}

#[tokio::test]
async fn events_expire_an_hour_after_they_last_happened() {
    let server = Server::start().await;
    let events = "/api/v1/namespaces/default/events";
    for (name, last) in [("old", "2020-01-01T00:00:00Z"), ("new", "2020-01-01T01:30:00Z")] {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"namespace": "default"}, "lastTimestamp": last,
        });
        let made = server.ok(Method::POST, events, &event).await;
        let key = format!("core/events/default/{name}");
        // As if it had been made then.
        let mut stored = made.clone();
        stored["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
        let entry = server.core.store.get(&key).unwrap().unwrap();
        let value = crate::object::encode::encode(&stored);
        let write = modelplane_store::Write::Update { key, value, expected: entry.modified };
        server.core.store.write(write).await.unwrap();
    }
    expiry::expire_events(&server.core, "2020-01-01T02:00:00Z".parse().unwrap()).await;
    assert!(server.get(&format!("{events}/old")).await.is_none());
    assert!(server.get(&format!("{events}/new")).await.is_some());
}
