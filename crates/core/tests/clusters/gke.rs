//! GKECluster: inputs that go missing, and ranges that collide.

use modelplane_core::contract::Ready;
use serde_json::{Value, json};

use crate::support::body;
use crate::{Case, ready, warnings};

fn cluster(spec: &Value) -> Value {
    let mut composite = json!({
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "GKECluster",
        "metadata": {"name": "west", "namespace": "modelplane-system"},
        "spec": {
            "region": "us-central1",
            "nodePools": [{
                "name": "gpu", "role": "GPU", "machineType": "a3-highgpu-8g", "zones": ["us-central1-a"],
                "gpu": {"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": 8},
            }],
        },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        composite["spec"][field] = value.clone();
    }
    composite
}

fn provider_config() -> Value {
    json!({"metadata": {"name": "default"}, "spec": {"projectID": "my-project"}})
}

fn composed(spec: &Value) -> Case {
    Case::new(cluster(spec)).finding("gcp-provider-config", &[provider_config()])
}

#[test]
fn without_a_project_everything_stays_and_nothing_looks_ready() {
    let no_project = json!({"metadata": {"name": "default"}, "spec": {}});
    for (name, case, mentions) in [
        ("absent", Case::new(cluster(&json!({}))).finding("gcp-provider-config", &[]), "does not exist"),
        ("no projectID", composed(&json!({})).finding("gcp-provider-config", &[no_project]), "projectID"),
    ] {
        let case = case.observing("network", json!({"kind": "Network", "spec": {"forProvider": {}}}));
        case.check(|desired| {
            assert_eq!(desired.resources.keys().collect::<Vec<_>>(), ["network"], "{name}");
            assert_eq!(desired.ready, Ready::False, "{name}");
            let message = &desired.events[0].message;
            assert!(message.contains("ClusterProviderConfig default"), "{name}: {message}");
            assert!(message.contains(mentions), "{name}: {message}");
        });
    }
}

#[test]
fn the_project_of_the_cluster_outlives_its_provider_config() {
    let pool = json!({"workloadIdentityConfig": {"workloadPool": "old.svc.id.goog"}});
    let case = Case::new(cluster(&json!({})))
        .finding("gcp-provider-config", &[])
        .observing("cluster", json!({"spec": {"forProvider": pool}}));
    case.check(|desired| {
        assert_eq!(
            body(&desired, "cluster")["spec"]["forProvider"]["workloadIdentityConfig"],
            pool["workloadIdentityConfig"]
        );
        assert_eq!(desired.events.len(), 1);
        assert!(desired.resources.contains_key("nodepool-gpu"));
    });
}

#[test]
fn an_explicit_project_needs_no_provider_config_and_is_on_every_resource() {
    let case = Case::new(cluster(&json!({"project": "mine"})));
    case.check(|desired| {
        assert!(desired.events.is_empty());
        let pool = &body(&desired, "cluster")["spec"]["forProvider"]["workloadIdentityConfig"];
        assert_eq!(pool["workloadPool"], "mine.svc.id.goog");
        for key in ["network", "subnet", "cluster", "nodepool-system", "nodepool-gpu", "service-account"] {
            assert_eq!(body(&desired, key)["spec"]["forProvider"]["project"], "mine", "{key}");
        }
    });
    composed(&json!({})).check(|desired| {
        assert_eq!(body(&desired, "network")["spec"]["forProvider"].get("project"), None);
    });
}

#[test]
fn what_was_made_from_a_lost_answer_of_the_cloud_stays() {
    let class = json!({"kind": "Object", "spec": {"forProvider": {"manifest": {"kind": "StorageClass"}}}});
    let case = composed(&json!({}))
        .observing("network", json!({"kind": "Network"}))
        .observing("service-account", json!({"kind": "ServiceAccount"}))
        .observing("iam-binding", ready(json!({"kind": "ProjectIAMMember", "spec": {"a": "b"}})))
        .observing("storage-class-rwx", class.clone());
    case.check(|desired| {
        assert_eq!(body(&desired, "iam-binding")["spec"], json!({"a": "b"}));
        assert_eq!(body(&desired, "storage-class-rwx")["spec"], class["spec"]);
        assert_eq!(desired.resources["storage-class-rwx"].ready, Ready::True);
    });
}

#[test]
fn ranges_are_checked() {
    let malformed = composed(&json!({"networking": {"podCidr": "10.1.0.0/99"}}));
    malformed.answer(|answer| {
        let error = answer.expect_err("not a range").to_string();
        assert!(error.contains("podCidr") && error.contains("10.1.0.0/99"), "{error}");
    });
    let overlapping = composed(&json!({"networking": {"nodeCidr": "10.1.4.0/24"}}));
    overlapping.check(|desired| {
        let warnings = warnings(&desired);
        assert!(warnings.len() == 1 && warnings[0].contains("10.1.4.0/24"), "{warnings:?}");
        assert!(desired.resources.contains_key("subnet"));
    });
}
