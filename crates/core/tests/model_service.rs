//! Behaviour of the `ModelService` composition beyond the recorded pairs.

mod support;

use modelplane_core::compose::model_service::compose;
use modelplane_core::contract::{Desired, Ready, Severity};
use serde_json::{Value, json};
use support::{Request, body};

fn endpoint(namespace: &str, name: &str, url: &str) -> Value {
    json!({"resource": {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelEndpoint",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"url": url, "rewritePath": format!("/{name}/")},
        "status": {"routing": {"backendName": format!("{name}-svc")}},
    }})
}

/// A service whose entries have these weights, with what its requirements found.
fn request(weights: &[i64], required: Value, resources: Value) -> Request {
    let entries: Vec<Value> = weights
        .iter()
        .map(|weight| json!({"weight": weight, "selector": {"matchLabels": {"app": "a"}}}))
        .collect();
    Request::from_json(&json!({
        "observed": {
            "composite": {"resource": {
                "apiVersion": "modelplane.ai/v1alpha1",
                "kind": "ModelService",
                "metadata": {"name": "chat", "namespace": "ns"},
                "spec": {"endpoints": entries},
                "status": {"address": "http://10.0.0.1/ns/chat"},
            }},
            "resources": resources,
        },
        "requiredResources": required,
    }))
}

fn gateway(address: &str) -> Value {
    json!({"items": [{"resource": {
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceGateway", "metadata": {"name": "default"},
        "status": {"address": address},
    }}]})
}

/// The same gateway, publishing a host name for HTTPS.
fn with_hostname(mut gateway: Value) -> Value {
    let tls = json!({"hostname": "ai.example.org", "certificateSecrets": ["ai"]});
    gateway["items"][0]["resource"]["spec"] = json!({"backend": "Modelplane", "modelplane": {"tls": tls}});
    gateway
}

fn route() -> Value {
    json!({"httproute": {"resource": {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "chat-1", "namespace": "ns"},
        "spec": {"rules": [{"backendRefs": [{"name": "a-svc", "port": 8081, "weight": 1}]}]},
        "status": {"parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]},
    }}})
}

fn status(desired: &Desired<'_>) -> Option<Value> {
    desired.status.as_ref().map(|status| status.document().to_json().expect("JSON"))
}

fn backends(desired: &Desired<'_>) -> Vec<(String, u64, u64)> {
    let route = body(desired, "httproute");
    let Some(refs) = route["spec"]["rules"][0].get("backendRefs") else { return Vec::new() };
    let number = |value: &Value| value.as_u64().expect("a number");
    let backend = |backend: &Value| {
        let name = backend["name"].as_str().expect("a name").to_owned();
        (name, number(&backend["port"]), number(&backend["weight"]))
    };
    refs.as_array().expect("a list").iter().map(backend).collect()
}

#[test]
fn a_route_is_kept_while_its_endpoints_are_unknown_or_gone() {
    let gone = json!({"endpoints-0": {"items": []}, "inference-gateway": gateway("10.0.0.1")});
    let cases = [
        ("not fetched", json!({}), "WaitingForInput", 0),
        ("some not fetched", json!({"endpoints-1": {"items": []}}), "WaitingForInput", 0),
        ("gone", gone, "NoEndpoints", 1),
    ];
    for (name, required, reason, warnings) in cases {
        let request = request(&[1], required, route());
        let desired = compose(&request.observed()).expect("a valid service");
        assert_eq!(backends(&desired), [("a-svc".to_owned(), 8081, 1)], "{name}");
        assert_eq!(desired.resources["httproute"].ready, Ready::True, "{name}");
        assert_eq!(status(&desired), Some(json!({"address": "http://10.0.0.1/ns/chat"})), "{name}");
        assert_eq!(desired.conditions[0].reason, reason, "{name}");
        assert_eq!(desired.events.len(), warnings, "{name}");
    }
}

#[test]
fn an_endpoint_with_an_unusable_url_does_not_stop_the_others() {
    let required = json!({
        "endpoints-0": {"items": [
            endpoint("ns", "a", "http://h:abc"),
            endpoint("ns", "b", "http://h:90"),
            endpoint("ns", "c", "http://h:abc"),
        ]},
        "inference-gateway": gateway("10.0.0.1"),
    });
    let request = request(&[1], required, route());
    let desired = compose(&request.observed()).expect("a valid service");
    let want = [("a-svc".to_owned(), 8081, 1), ("b-svc".to_owned(), 90, 1)];
    assert_eq!(backends(&desired), want, "a keeps its port, c never had one");
    let warnings: Vec<&str> = desired.events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(warnings.len(), 2);
    assert!(warnings[0].contains("ns/a: spec.url \"http://h:abc\""), "{warnings:?}");
    assert!(desired.events.iter().all(|event| event.severity == Severity::Warning));
}

#[test]
fn an_endpoint_belongs_to_the_first_entry_and_to_its_own_namespace() {
    let required = json!({
        "endpoints-0": {"items": [
            endpoint("ns", "a", "http://h"),
            endpoint("ns", "a", "http://h"),
            endpoint("elsewhere", "x", "http://h"),
        ]},
        "endpoints-1": {"items": [endpoint("ns", "a", "http://h"), endpoint("ns", "b", "https://h")]},
        "inference-gateway": gateway("10.0.0.1"),
    });
    let request = request(&[1, 3], required, json!({}));
    let desired = compose(&request.observed()).expect("a valid service");
    assert_eq!(backends(&desired), [("a-svc".to_owned(), 80, 1), ("b-svc".to_owned(), 443, 3)]);
    let filter = &body(&desired, "httproute")["spec"]["rules"][0]["backendRefs"][0]["filters"];
    assert_eq!(
        filter,
        &json!([{"type": "URLRewrite", "urlRewrite": {
            "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/a/"},
        }}])
    );
}

#[test]
fn the_address_is_the_gateways() {
    let items = json!({"items": [endpoint("ns", "a", "http://h")]});
    let cases = [
        ("an address", Some(gateway("10.0.0.9")), json!({"address": "http://10.0.0.9/ns/chat"})),
        ("a name", Some(gateway("gw.example")), json!({"address": "http://gw.example/ns/chat"})),
        ("an IPv6 address", Some(gateway("2001:db8::1")), json!({"address": "http://[2001:db8::1]/ns/chat"})),
        (
            "a name for HTTPS",
            Some(with_hostname(gateway("10.0.0.9"))),
            json!({"address": "https://ai.example.org/ns/chat"}),
        ),
        ("no gateway", Some(json!({"items": []})), json!({})),
        ("not fetched yet", None, json!({"address": "http://10.0.0.1/ns/chat"})),
    ];
    for (name, gateway, want) in cases {
        let mut required = json!({"endpoints-0": items});
        if let Some(gateway) = gateway {
            required["inference-gateway"] = gateway;
        }
        let request = request(&[1], required, json!({}));
        let desired = compose(&request.observed()).expect("a valid service");
        assert_eq!(status(&desired), Some(want), "{name}");
    }
}

#[test]
fn a_weight_out_of_range_is_refused_by_field() {
    for weight in [0, -1, 1_000_001] {
        let request = request(&[1, weight], json!({}), json!({}));
        let error = compose(&request.observed()).expect_err("a bad weight").to_string();
        assert!(error.contains("spec.endpoints[1].weight") && error.contains(&weight.to_string()), "{error}");
    }
}

#[test]
fn an_empty_selector_asks_for_all_endpoints() {
    let request = Request::from_json(&json!({"observed": {"composite": {"resource": {
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "chat", "namespace": "ns"},
        "spec": {"endpoints": [{"selector": {"matchLabels": {}}}]},
    }}}}));
    let desired = compose(&request.observed()).expect("a valid service");
    let requirement = &desired.requirements["endpoints-0"];
    assert_eq!(requirement.select, modelplane_core::contract::Match::All);
}
