//! Bodies that kubectl 1.32 sent as protobuf are stored as their JSON would be.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use std::path::Path;

use http::Method;
use serde_json::json;
use support::{Caller, WIDGETS, server, with_widgets};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A recorded body; `modelplane-apimachinery` says how they were made.
fn body(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apimachinery/testdata/protobuf");
    std::fs::read(folder.join(name).with_extension("bin")).unwrap()
}

#[tokio::test]
async fn recorded_bodies_create_objects() {
    let server = server().await;
    let caller = Caller::new(&server);
    let within = |group: &str, plural: &str| format!("{group}/namespaces/default/{plural}");
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    for (name, path) in [
        ("namespace", "/api/v1/namespaces".to_owned()),
        ("configmap", within("/api/v1", "configmaps")),
        ("secret", within("/api/v1", "secrets")),
        ("serviceaccount", within("/api/v1", "serviceaccounts")),
        ("service-clusterip", within("/api/v1", "services")),
        ("quota", within("/api/v1", "resourcequotas")),
        ("role", within(RBAC, "roles")),
        ("rolebinding", within(RBAC, "rolebindings")),
        ("clusterrole-aggregate", format!("{RBAC}/clusterroles")),
        ("clusterrolebinding", format!("{RBAC}/clusterrolebindings")),
        ("deployment", within("/apis/apps/v1", "deployments")),
        ("job", within("/apis/batch/v1", "jobs")),
        ("cronjob", within("/apis/batch/v1", "cronjobs")),
        ("ingress", within("/apis/networking.k8s.io/v1", "ingresses")),
        ("pdb", within("/apis/policy/v1", "poddisruptionbudgets")),
        ("priorityclass", "/apis/scheduling.k8s.io/v1/priorityclasses".to_owned()),
        ("can-i", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned()),
        ("whoami", "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned()),
    ] {
        let path = format!("{path}?fieldManager=kubectl-create&fieldValidation=Strict");
        let created = caller.send(Method::POST, &path, PROTOBUF, body(name)).await;
        assert_eq!(created.code, 201, "{name}: {}", created.text);
    }
    let deployment = caller.get("/apis/apps/v1/namespaces/default/deployments/web").await.value;
    assert_eq!(deployment["spec"]["replicas"], 3);
}

#[tokio::test]
async fn protobuf_and_json_store_the_same_object() {
    let server = server().await;
    let caller = Caller::new(&server);
    let path = "/apis/apps/v1/namespaces/default/deployments?dryRun=All";
    let json = std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../apimachinery/testdata/protobuf/deployment-zero.json"),
    );
    let mut answers = vec![
        caller.send(Method::POST, path, PROTOBUF, body("deployment-zero")).await,
        caller.send(Method::POST, path, "application/json", json.unwrap()).await,
    ];
    for answer in &mut answers {
        assert_eq!(answer.code, 201, "{}", answer.text);
        let metadata = answer.value["metadata"].as_object_mut().unwrap();
        for field in ["uid", "creationTimestamp", "managedFields"] {
            metadata.remove(field);
        }
    }
    assert_eq!(answers[0].value, answers[1].value);
    assert_eq!(answers[0].value["spec"]["replicas"], 0);
}

#[tokio::test]
async fn a_body_that_is_no_object_of_a_builtin_kind_is_refused() {
    let (_server, caller) = with_widgets().await;
    let refused = caller.send(Method::POST, WIDGETS, PROTOBUF, body("namespace")).await;
    assert!(matches!(refused.code, 400 | 415), "{}", refused.text);
    let truncated = body("namespace")[..40].to_vec();
    let refused = caller.send(Method::POST, "/api/v1/namespaces", PROTOBUF, truncated).await;
    assert_eq!((refused.code, &refused.value["reason"]), (400, &json!("BadRequest")), "{}", refused.text);
}
