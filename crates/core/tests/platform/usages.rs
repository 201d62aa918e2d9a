//! The usages step: spec serving-stack §9, clusters §2.

use modelplane_core::compose::usages::compose;
use modelplane_core::contract::{Ready, Severity};
use serde_json::{Value, json};

use crate::support::{Request, body};
use crate::with_condition;

fn request(desired: Value, resources: Value, namespace: Option<&str>) -> Request {
    let composite = json!({
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1", "kind": "ServingStack",
        "metadata": {"name": "stack", "namespace": namespace},
    });
    Request::from_json(&json!({
        "observed": {"composite": {"resource": composite}, "resources": resources},
        "desired": {"resources": desired},
    }))
}

fn release(extra: Value) -> Value {
    let mut release = json!({
        "apiVersion": "helm.m.crossplane.io/v1beta1",
        "kind": "Release",
        "spec": {"providerConfigRef": {"kind": "ProviderConfig", "name": "pc"}},
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        release[key] = value.clone();
    }
    json!({"resource": release, "ready": "READY_TRUE"})
}

#[test]
fn a_consumer_gets_a_label_and_a_usage() {
    let desired = json!({"cert-manager": release(json!({"metadata": {"labels": {"a": "b"}, "name": "x"}}))});
    let request = request(desired, json!({}), Some("infra"));
    let desired = compose(&request.observed()).expect("never fails");
    let labelled = body(&desired, "cert-manager");
    let labels = json!({"a": "b", "modelplane.ai/usage-consumer": "cert-manager"});
    assert_eq!(labelled["metadata"], json!({"name": "x", "labels": labels}));
    assert_eq!(labelled["spec"]["providerConfigRef"]["name"], "pc");
    assert_eq!(desired.resources["cert-manager"].ready, Ready::True);
    let by = json!({
        "matchControllerRef": true,
        "matchLabels": {"modelplane.ai/usage-consumer": "cert-manager"},
    });
    let expected = json!({
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "Usage",
        "metadata": {"namespace": "infra"},
        "spec": {
            "of": {
                "apiVersion": "helm.m.crossplane.io/v1beta1",
                "kind": "ProviderConfig",
                "resourceRef": {"name": "pc"},
            },
            "by": {"apiVersion": "helm.m.crossplane.io/v1beta1", "kind": "Release", "resourceSelector": by},
            "replayDeletion": true,
        },
    });
    assert_eq!(body(&desired, "usage-pc-cert-manager"), expected);
    assert_eq!(desired.resources["usage-pc-cert-manager"].ready, Ready::True);
}

#[test]
fn what_is_no_consumer_is_left_as_it_is() {
    let cases = [
        ("another group", release(json!({"apiVersion": "helm.crossplane.io/v1beta1"}))),
        ("another kind", release(json!({"kind": "ProviderConfig"}))),
        ("no provider config", release(json!({"spec": {}}))),
        ("an empty provider config", release(json!({"spec": {"providerConfigRef": {"name": ""}}}))),
    ];
    for (name, entry) in cases {
        let request = request(json!({"k": entry}), json!({}), Some("infra"));
        let desired = compose(&request.observed()).expect("never fails");
        assert_eq!(body(&desired, "k"), entry["resource"], "{name}");
        assert_eq!(desired.resources.len(), 1, "{name}");
        assert!(desired.events.is_empty(), "{name}");
    }
}

#[test]
fn an_unreadable_consumer_is_reported_and_its_usage_kept() {
    let cases = [
        ("metadata.labels", release(json!({"metadata": {"labels": ["a"]}}))),
        ("spec", release(json!({"spec": "x"}))),
        ("spec.providerConfigRef", release(json!({"spec": {"providerConfigRef": 7}}))),
        ("spec.providerConfigRef.name", release(json!({"spec": {"providerConfigRef": {"name": 7}}}))),
    ];
    for (field, entry) in cases {
        let usage = json!({"resource": {"kind": "Usage", "spec": {"replayDeletion": true}}});
        let observed = json!({"usage-pc-k": usage});
        let request = request(json!({"k": entry, "good": release(json!({}))}), observed, Some("infra"));
        let desired = compose(&request.observed()).expect("never fails");
        assert_eq!(body(&desired, "k"), entry["resource"], "{field}");
        assert_eq!(body(&desired, "usage-pc-k"), usage["resource"], "{field}");
        assert!(desired.resources.contains_key("usage-pc-good"), "{field}: one bad entry stops the others");
        let event = &desired.events[0];
        assert_eq!(event.severity, Severity::Warning);
        assert!(event.message.contains(field) && event.message.contains("resource k "), "{}", event.message);
    }
}

#[test]
fn a_usage_outlives_its_withdrawn_consumer() {
    let usage = with_condition("Ready");
    let both = json!({"usage-pc-k": usage, "k": with_condition("Ready")});
    let while_there = request(json!({}), both, Some("infra"));
    let desired = compose(&while_there.observed()).expect("never fails");
    assert!(desired.resources.contains_key("usage-pc-k"), "the consumer is still being deleted");
    let gone = request(json!({}), json!({"usage-pc-k": usage}), Some("infra"));
    let desired = compose(&gone.observed()).expect("never fails");
    assert!(desired.resources.is_empty(), "the consumer is gone");
}

#[test]
fn a_collision_is_reported_and_nothing_overwritten() {
    let taken = json!({"resource": {"kind": "Other"}});
    let request = request(json!({"k": release(json!({})), "usage-pc-k": taken}), json!({}), Some("infra"));
    let desired = compose(&request.observed()).expect("never fails");
    assert_eq!(body(&desired, "usage-pc-k"), taken["resource"]);
    assert!(body(&desired, "k").get("metadata").is_none(), "left unlabelled");
    assert_eq!(desired.events.len(), 1);
}

#[test]
fn without_a_namespace_nothing_is_added_and_nothing_lost() {
    let observed = json!({"usage-pc-k": with_condition("Ready")});
    let request = request(json!({"k": release(json!({}))}), observed, None);
    let desired = compose(&request.observed()).expect("never fails");
    assert_eq!(desired.resources.keys().collect::<Vec<_>>(), ["k", "usage-pc-k"]);
    assert!(body(&desired, "k").get("metadata").is_none());
}
