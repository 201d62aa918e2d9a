//! Behaviour of the `ModelCache` composition beyond the recorded pairs: phases, held state, what reaches the Job.

mod support;

use modelplane_core::compose::model_cache::compose;
use modelplane_core::contract::{Desired, Ready};
use serde_json::{Value, json};
use support::{Request, body};

fn cluster(name: &str, provider_config: Option<&str>, storage_class: Option<&str>) -> Value {
    let mut status = json!({});
    if let Some(name) = provider_config {
        status["providerConfigRef"] = json!({"name": name});
    }
    if let Some(name) = storage_class {
        status["cache"] = json!({"storageClassName": name});
    }
    json!({"resource": {
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceCluster", "metadata": {"name": name},
        "status": status,
    }})
}

fn matched(name: &str) -> Value {
    cluster(name, Some("pc"), Some("rwx"))
}

fn object(kind: &str, status: Value, ready: bool) -> Value {
    json!({"resource": {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": {"name": "o"},
        "spec": {"forProvider": {"manifest": {"kind": kind}}, "providerConfigRef": {"name": "old-pc"}},
        "status": {
            "atProvider": {"manifest": {"kind": kind, "status": status}},
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        },
    }})
}

fn bound() -> Value {
    object("PersistentVolumeClaim", json!({"phase": "Bound"}), true)
}

fn job(condition: &str) -> Value {
    object("Job", json!({"conditions": [{"type": condition, "status": "True"}]}), condition == "Complete")
}

/// A request; `status` is that of the cache, `required` what was fetched.
fn request(source: Value, status: Value, required: Value, resources: Value) -> Request {
    let mut source = source;
    source["sizeGiB"] = json!(20);
    Request::from_json(&json!({
        "observed": {
            "composite": {"resource": {
                "apiVersion": "modelplane.ai/v1alpha1",
                "kind": "ModelCache",
                "metadata": {"name": "w", "namespace": "ml"},
                "spec": {"source": "HuggingFace", "huggingFace": source},
                "status": status,
            }},
            "resources": resources,
        },
        "requiredResources": required,
    }))
}

fn open() -> Value {
    json!({"repo": "org/m"})
}

fn gated() -> Value {
    json!({"repo": "org/m", "authSecret": {"name": "hf", "key": "token"}})
}

fn staged_on(cluster: &str) -> Value {
    json!({"clusters": [{"name": cluster, "phase": "Ready"}], "summary": {"ready": "1/1"}})
}

fn keys<'d>(desired: &'d Desired<'_>) -> Vec<&'d str> {
    desired.resources.keys().map(AsRef::as_ref).collect()
}

fn status(desired: &Desired<'_>) -> Value {
    desired.status.as_ref().expect("a status").document().to_json().expect("JSON")
}

fn reasons<'d>(desired: &'d Desired<'_>) -> Vec<&'d str> {
    desired.conditions.iter().map(|condition| condition.reason.as_ref()).collect()
}

#[test]
fn a_clusters_phase_follows_its_volume_job_and_history() {
    let cases = [
        ("nothing", json!({}), json!({}), "Pending", vec!["hydrate-a", "pvc-a"]),
        ("bound", json!({"pvc-a": bound()}), json!({}), "Hydrating", vec!["hydrate-a", "pvc-a"]),
        (
            "complete",
            json!({"pvc-a": bound(), "hydrate-a": job("Complete")}),
            json!({}),
            "Ready",
            vec!["pvc-a"],
        ),
        (
            "complete, but the volume is not bound",
            json!({"hydrate-a": job("Complete")}),
            json!({}),
            "Pending",
            vec!["hydrate-a", "pvc-a"],
        ),
        ("ready before", json!({"pvc-a": bound()}), staged_on("a"), "Ready", vec!["pvc-a"]),
        (
            "another was ready",
            json!({"pvc-a": bound()}),
            staged_on("b"),
            "Hydrating",
            vec!["hydrate-a", "pvc-a"],
        ),
        ("the volume is lost", json!({}), staged_on("a"), "Pending", vec!["hydrate-a", "pvc-a"]),
        (
            "failed",
            json!({"pvc-a": bound(), "hydrate-a": job("Failed")}),
            staged_on("a"),
            "Failed",
            vec!["hydrate-a", "pvc-a"],
        ),
    ];
    for (reason, resources, before, phase, want) in cases {
        let required = json!({"clusters": {"items": [matched("a")]}});
        let request = request(open(), before, required, resources);
        let desired = compose(&request.observed()).expect("a valid cache");
        assert_eq!(status(&desired)["clusters"], json!([{"name": "a", "phase": phase}]), "{reason}");
        assert_eq!(keys(&desired), want, "{reason}");
    }
}

#[test]
fn staged_weights_survive_a_cluster_that_loses_what_staging_needs() {
    let cases = [
        ("no provider config", cluster("a", None, Some("rwx"))),
        ("no storage class", cluster("a", Some("pc"), None)),
        ("no status at all", cluster("a", None, None)),
    ];
    for (reason, cluster) in cases {
        let required = json!({"clusters": {"items": [cluster]}});
        let resources = json!({"pvc-a": bound()});
        let request = request(open(), staged_on("a"), required, resources.clone());
        let desired = compose(&request.observed()).expect("a valid cache");
        assert_eq!(keys(&desired), ["pvc-a"], "{reason}");
        assert_eq!(body(&desired, "pvc-a")["spec"], resources["pvc-a"]["resource"]["spec"], "{reason}");
        assert_eq!(desired.resources["pvc-a"].ready, Ready::True, "{reason}");
        assert_eq!(status(&desired)["summary"]["ready"], "1/1", "{reason}");
        assert!(status(&desired)["clusters"][0]["message"].is_string(), "{reason}: says that it is held");
        assert_eq!(reasons(&desired), ["Matched", "Staged"], "{reason}");
    }
}

#[test]
fn a_download_goes_on_while_its_cluster_is_held() {
    let required = json!({"clusters": {"items": [cluster("a", None, None)]}});
    let resources = json!({"pvc-a": bound(), "hydrate-a": job("Running")});
    let request = request(open(), json!({}), required, resources);
    let desired = compose(&request.observed()).expect("a valid cache");
    assert_eq!(keys(&desired), ["hydrate-a", "pvc-a"]);
    assert_eq!(reasons(&desired), ["Matched", "Hydrating"]);
}

#[test]
fn a_cluster_that_is_no_longer_selected_loses_its_volume() {
    let required = json!({"clusters": {"items": [matched("b")]}});
    let request = request(open(), staged_on("a"), required, json!({"pvc-a": bound()}));
    let desired = compose(&request.observed()).expect("a valid cache");
    assert_eq!(keys(&desired), ["hydrate-b", "pvc-b"]);
}

#[test]
fn everything_is_held_until_all_inputs_are_fetched() {
    let clusters = json!({"clusters": {"items": [matched("a")]}});
    let secret = json!({"auth-secret": {"items": []}});
    for (reason, source, required) in
        [("clusters", open(), json!({})), ("clusters", gated(), secret), ("the Secret", gated(), clusters)]
    {
        let resources = json!({"pvc-a": bound(), "auth-a": object("Secret", json!({}), true)});
        let request = request(source, staged_on("a"), required, resources);
        let desired = compose(&request.observed()).expect("a valid cache");
        assert_eq!(keys(&desired), ["auth-a", "pvc-a"], "{reason}");
        assert_eq!(status(&desired), staged_on("a"), "{reason}: the status remembers");
        assert!(desired.conditions.is_empty() && desired.events.is_empty(), "{reason}");
    }
}

#[test]
fn a_token_that_vanishes_does_not_stop_a_running_download() {
    let required = json!({"clusters": {"items": [matched("a"), matched("b")]}, "auth-secret": {"items": []}});
    let resources = json!({
        "pvc-a": bound(),
        "hydrate-a": job("Running"),
        "auth-a": object("Secret", json!({}), true),
    });
    let request = request(gated(), json!({}), required, resources);
    let desired = compose(&request.observed()).expect("a valid cache");
    assert_eq!(keys(&desired), ["auth-a", "hydrate-a", "pvc-a", "pvc-b"], "nothing new is started on b");
    assert_eq!(reasons(&desired), ["Matched", "AuthSecretMissing"]);
    let message = &desired.events[0].message;
    assert!(message.contains("ml/hf") && message.contains("token"), "{message}");
}

#[test]
fn a_cache_without_clusters_is_not_ready() {
    for items in [json!([]), json!([cluster("a", Some("pc"), None)])] {
        let request = request(open(), json!({}), json!({"clusters": {"items": items}}), json!({}));
        let desired = compose(&request.observed()).expect("a valid cache");
        assert_eq!(desired.ready, Ready::False);
        assert_eq!(reasons(&desired), ["NoClusters", "NoClusters"]);
    }
}

#[test]
fn repository_and_revision_never_reach_a_command_line() {
    let hostile = "org/m; touch /pwned $(HF_TOKEN) `id` \"'";
    let source = json!({"repo": hostile, "revision": "--token=$X", "authSecret": {"name": "hf"}});
    let required = json!({
        "clusters": {"items": [matched("a")]},
        "auth-secret": {"items": [{"resource": {"data": {"HF_TOKEN": "aGY="}}}]},
    });
    let request = request(source, json!({}), required, json!({}));
    let desired = compose(&request.observed()).expect("a valid cache");
    let job = body(&desired, "hydrate-a")["spec"]["forProvider"]["manifest"].clone();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let command = container["command"].to_string() + &container["args"].to_string();
    assert!(!command.contains("org/m") && !command.contains("--token"), "{command}");
    let variables: Vec<(&str, &Value)> = container["env"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|variable| (variable["name"].as_str().expect("a name"), &variable["value"]))
        .collect();
    let want = [
        ("HF_TOKEN", &Value::Null),
        ("MODELPLANE_REPO", &json!("org/m; touch /pwned $$(HF_TOKEN) `id` \"'")),
        ("MODELPLANE_REVISION", &json!("--token=$$X")),
    ];
    assert_eq!(variables, want, "Kubernetes expands $(NAME) in values, so dollars are doubled");
    let secret = body(&desired, "auth-a")["spec"]["forProvider"]["manifest"].clone();
    assert_eq!(secret["data"], json!({"HF_TOKEN": "aGY="}), "the token is copied verbatim");
}

#[test]
fn long_cache_names_stay_valid_label_values() {
    let name = "c".repeat(90);
    let mut document = json!({"observed": {"composite": {"resource": {
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelCache",
        "metadata": {"namespace": "ml"},
        "spec": {"source": "HuggingFace", "huggingFace": {"repo": "o/m", "sizeGiB": 1}},
    }}}, "requiredResources": {"clusters": {"items": [matched("a")]}}});
    document["observed"]["composite"]["resource"]["metadata"]["name"] = json!(name);
    let request = Request::from_json(&document);
    let desired = compose(&request.observed()).expect("a valid cache");
    for key in ["pvc-a", "hydrate-a"] {
        let metadata = body(&desired, key)["spec"]["forProvider"]["manifest"]["metadata"].clone();
        let label = metadata["labels"]["modelplane.ai/modelcache"].as_str().expect("a label").to_owned();
        assert!(
            label.len() <= 63 && metadata["name"].as_str().is_some_and(|name| name.len() <= 63),
            "{label}"
        );
    }
}
