//! Behaviour of the `ModelEndpoint` composition beyond the recorded pairs.

mod support;

use modelplane_core::compose::model_endpoint::compose;
use modelplane_core::contract::{ConditionStatus, Ready, Severity};
use serde_json::{Value, json};
use support::{Request, body};

fn request(url: Value, status: Value, resources: Value) -> Request {
    Request::from_json(&json!({
        "observed": {
            "composite": {"resource": {
                "apiVersion": "modelplane.ai/v1alpha1",
                "kind": "ModelEndpoint",
                "metadata": {"name": "ep", "namespace": "ns"},
                "spec": {"url": url},
                "status": status,
            }},
            "resources": resources,
        },
    }))
}

fn service(name: Option<&str>) -> Value {
    let mut service = json!({"resource": {
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "ns"},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}]},
    }});
    if let Some(name) = name {
        service["resource"]["metadata"]["name"] = json!(name);
    }
    service
}

fn slice() -> Value {
    json!({"resource": {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"namespace": "ns", "name": "ep-slice", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "FQDN",
    }})
}

#[test]
fn the_backend_is_built_step_by_step_and_never_withdrawn() {
    let both = json!({"service": service(Some("s")), "endpointslice": slice()});
    let cases = [
        ("nothing", json!({}), [Some(Ready::Unspecified), None], None),
        (
            "a Service",
            json!({"service": service(Some("s"))}),
            [Some(Ready::True), Some(Ready::Unspecified)],
            None,
        ),
        ("both", both, [Some(Ready::True), Some(Ready::True)], Some("s")),
        ("a Service without a name", json!({"service": service(None)}), [Some(Ready::True), None], None),
        (
            "a slice without a Service",
            json!({"endpointslice": slice()}),
            [Some(Ready::Unspecified), Some(Ready::Unspecified)],
            None,
        ),
        (
            "a slice and a Service without a name",
            json!({"service": service(None), "endpointslice": slice()}),
            [Some(Ready::True), Some(Ready::Unspecified)],
            None,
        ),
    ];
    for (reason, resources, ready, backend) in cases {
        let request = request(json!("http://h:81/v1"), json!({}), resources);
        let desired = compose(&request.observed()).expect("a valid endpoint");
        for (key, ready) in ["service", "endpointslice"].into_iter().zip(ready) {
            assert_eq!(desired.resources.get(key).map(|resource| resource.ready), ready, "{reason}: {key}");
        }
        let status = desired.status.as_ref().map(|status| status.document().to_json().expect("JSON"));
        let want = backend.map_or(json!({}), |name| json!({"routing": {"backendName": name}}));
        assert_eq!(status, Some(want), "{reason}");
    }
}

#[test]
fn an_unusable_url_keeps_the_backend_of_the_last_good_one() {
    let resources = json!({"service": service(Some("s")), "endpointslice": slice()});
    let status =
        json!({"routing": {"backendName": "s"}, "conditions": [{"type": "Ready", "status": "True"}]});
    for url in ["not-a-url", "http://[::1", "http://h:99999", "http://[1.2.3.4]/"] {
        let request = request(json!(url), status.clone(), resources.clone());
        let desired = compose(&request.observed()).expect("a readable endpoint");
        assert_eq!(body(&desired, "service"), resources["service"]["resource"], "{url}");
        assert_eq!(body(&desired, "endpointslice"), resources["endpointslice"]["resource"], "{url}");
        let kept = desired.status.as_ref().map(|status| status.document().to_json().expect("JSON"));
        assert_eq!(kept, Some(json!({"routing": {"backendName": "s"}})), "{url}");
        let condition = &desired.conditions[0];
        assert_eq!(
            (condition.status, condition.reason.as_ref()),
            (ConditionStatus::False, "InvalidURL"),
            "{url}"
        );
        let message = condition.message.as_deref().unwrap_or_default();
        assert!(message.contains("spec.url") && message.contains(url), "{message}");
        assert_eq!(desired.events[0].severity, Severity::Warning, "{url}");
        assert_eq!(desired.events[0].message, message, "{url}");
    }
}

#[test]
fn an_endpoint_without_a_url_is_refused_by_field() {
    let request = request(Value::Null, json!({}), json!({}));
    let error = compose(&request.observed()).expect_err("no URL").to_string();
    assert!(error.contains("ModelEndpoint ns/ep") && error.contains("url"), "{error}");
}
