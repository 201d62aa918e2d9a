//! `InferenceGateway`: gates, teardown order and address (spec gateway-and-routing §§2, 7).

use modelplane_core::compose::inference_gateway::compose;
use modelplane_core::contract::{Ready, Severity};
use serde_json::{Value, json};

use crate::support::{Request, body};
use crate::{bare, with_condition};

fn request(traefik: Value, status: Value, resources: Value) -> Request {
    let composite = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceGateway", "metadata": {"name": "default"},
        "spec": {"backend": "Traefik", "traefik": traefik}, "status": status,
    });
    Request::from_json(&json!({"observed": {"composite": {"resource": composite}, "resources": resources}}))
}

fn plain() -> Value {
    json!({"version": "40.2.0"})
}

fn metallb() -> Value {
    json!({"version": "40.2.0", "loadBalancer": "MetalLB", "metallb": {"addressPool": "10.0.0.1-10.0.0.9"}})
}

/// Keys composed, without those of the definitions.
fn keys(traefik: Value, resources: Value) -> Vec<String> {
    let request = request(traefik, Value::Null, resources);
    let desired = compose(&request.observed()).expect("valid");
    let keys = desired.resources.keys().filter(|key| !key.starts_with("gateway-api-crd-"));
    keys.map(|key| key.to_string()).collect()
}

/// The definitions, served, and the provider config.
fn prerequisites() -> Value {
    let names = [
        "backendtlspolicies",
        "gatewayclasses",
        "gateways",
        "grpcroutes",
        "httproutes",
        "listenersets",
        "referencegrants",
        "tlsroutes",
    ];
    let mut resources = json!({"provider-config-helm": bare()});
    for name in names {
        let key = format!("gateway-api-crd-{name}.gateway.networking.k8s.io");
        resources[key] = with_condition("Established");
    }
    resources
}

#[test]
fn traefik_waits_for_its_provider_config_and_every_definition() {
    assert_eq!(keys(plain(), json!({})), ["provider-config-helm"]);
    let mut resources = prerequisites();
    resources["gateway-api-crd-gateways.gateway.networking.k8s.io"] = bare();
    assert_eq!(keys(plain(), resources.clone()), ["provider-config-helm"]);
    resources["traefik"] = bare();
    let kept = ["provider-config-helm", "traefik", "usage-pc-by-traefik"];
    assert_eq!(keys(plain(), resources), kept, "an installed one stays");
    assert_eq!(keys(plain(), prerequisites()), kept);
}

#[test]
fn the_release_goes_after_its_gateway_and_its_class() {
    let mut resources = prerequisites();
    resources["traefik"] = with_condition("Ready");
    let request = request(plain(), Value::Null, resources);
    let desired = compose(&request.observed()).expect("valid");
    for (key, kind, name) in [
        ("usage-traefik-by-gateway-class", "GatewayClass", "traefik"),
        ("usage-traefik-by-gateway", "Gateway", "modelplane"),
    ] {
        let usage = body(&desired, key);
        assert_eq!(usage["kind"], "Usage");
        assert_eq!(usage["metadata"], json!({"namespace": "modelplane-system"}));
        assert_eq!(usage["spec"]["of"]["kind"], "Release", "the release is what is protected");
        assert_eq!(
            usage["spec"]["by"],
            json!({
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": kind,
                "resourceRef": {"name": name},
            })
        );
    }
    for key in ["usage-gateway-by-traefik", "usage-gateway-class-by-traefik"] {
        assert!(!desired.resources.contains_key(key), "{key} would deadlock with its opposite");
    }
    assert_eq!(desired.events[0].severity, Severity::Normal, "the new Gateway is announced");
}

#[test]
fn the_gateway_is_ready_once_accepted() {
    let resources = json!({"gateway": with_condition("Accepted"), "gateway-class": with_condition("Ready")});
    let request = request(plain(), Value::Null, resources);
    let desired = compose(&request.observed()).expect("valid");
    assert_eq!(desired.resources["gateway"].ready, Ready::True);
    assert_eq!(desired.resources["gateway-class"].ready, Ready::Unspecified);
    assert_eq!(desired.conditions[0].reason, "Installing", "Traefik itself does not run");
}

#[test]
fn metallb_is_installed_in_order() {
    assert_eq!(keys(metallb(), json!({})), ["namespace-metallb", "provider-config-helm"]);
    let installed = ["metallb", "namespace-metallb", "provider-config-helm", "usage-pc-by-metallb"];
    assert_eq!(keys(metallb(), json!({"provider-config-helm": bare()})), installed);
    let running = keys(metallb(), json!({"metallb": with_condition("Ready")}));
    assert!(running.contains(&"metallb-pool".to_owned()) && running.contains(&"metallb-l2".to_owned()));
    let kept = keys(metallb(), json!({"metallb-l2": bare()}));
    assert!(kept.contains(&"metallb-l2".to_owned()), "either of the two keeps both");
}

#[test]
fn metallb_is_withdrawn_from_the_inside_out() {
    let all = ["namespace-metallb", "metallb", "usage-pc-by-metallb", "metallb-pool", "metallb-l2"];
    let observed = |keys: &[&str]| -> Value {
        keys.iter().map(|key| ((*key).to_owned(), bare())).collect::<serde_json::Map<_, _>>().into()
    };
    let passes: [(&[&str], &[&str]); 3] = [
        (&all, &["metallb", "namespace-metallb", "provider-config-helm", "usage-pc-by-metallb"]),
        (&all[..3], &["namespace-metallb", "provider-config-helm", "usage-pc-by-metallb"]),
        (&["namespace-metallb"], &["provider-config-helm"]),
    ];
    for (present, kept) in passes {
        assert_eq!(keys(plain(), observed(present)), kept, "with {present:?} observed");
    }
}

#[test]
fn a_load_balancer_without_addresses_stays_as_it_is_and_is_reported() {
    for metallb in [Value::Null, json!({"addressPool": ""})] {
        let traefik = json!({"version": "40.2.0", "loadBalancer": "MetalLB", "metallb": metallb});
        let resources = json!({"metallb": bare(), "metallb-pool": bare()});
        let request = request(traefik, Value::Null, resources);
        let desired = compose(&request.observed()).expect("the rest goes on");
        assert!(desired.resources.contains_key("metallb") && desired.resources.contains_key("metallb-pool"));
        assert!(desired.events[0].message.contains("spec.traefik.metallb.addressPool"));
    }
}

#[test]
fn a_backend_without_its_settings_is_an_error_that_names_them() {
    let request = request(Value::Null, Value::Null, json!({"traefik": bare()}));
    let error = compose(&request.observed()).expect_err("nothing says which version");
    assert!(error.message.contains("spec.traefik"), "{error}");
}

#[test]
fn the_address_stays_while_the_gateway_is_not_observed() {
    let gateway = |status: Value| json!({"gateway": {"resource": {"status": status}}});
    let cases = [
        ("not observed", json!({}), Some("10.0.0.42")),
        ("no address any more", gateway(json!({"addresses": []})), None),
        ("another", gateway(json!({"addresses": [{"value": "10.0.0.43"}]})), Some("10.0.0.43")),
        ("without a value", gateway(json!({"addresses": [{"type": "IPAddress"}]})), None),
        ("malformed", gateway(json!({"addresses": {}})), None),
    ];
    for (name, resources, expected) in cases {
        let request = request(plain(), json!({"address": "10.0.0.42"}), resources);
        let desired = compose(&request.observed()).expect("valid");
        let status = desired.status.as_ref().expect("always written");
        assert_eq!(status.document().text_at(&["address"]), expected, "{name}");
    }
}

/// A gateway with the Modelplane backend and what is observed of it.
fn modelplane(settings: Value, resources: Value) -> Request {
    let composite = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceGateway", "metadata": {"name": "default"},
        "spec": {"backend": "Modelplane", "modelplane": settings},
    });
    Request::from_json(&json!({"observed": {"composite": {"resource": composite}, "resources": resources}}))
}

#[test]
fn the_modelplane_backend_runs_as_a_deployment_behind_a_service() {
    let request = modelplane(json!({"replicas": 3, "image": "example.org/gateway:1"}), prerequisites());
    let desired = compose(&request.observed()).expect("valid");
    let deployment = body(&desired, "gateway-deployment");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "example.org/gateway:1");
    assert!(!container["args"].to_string().contains("--listen-tls"), "no HTTPS unless asked for");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&body(&desired, "gateway-service")["spec"]["selector"], labels);
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(body(&desired, "gateway")["spec"]["gatewayClassName"], "modelplane");
    assert_eq!(body(&desired, "gateway-class-modelplane")["metadata"]["name"], "modelplane");
    assert_eq!(desired.resources["gateway-deployment"].ready, Ready::when(false));
}

#[test]
fn https_is_served_on_a_listener_of_its_own() {
    let tls = json!({"hostname": "ai.example.org", "certificateSecrets": ["ai-example-org"]});
    let request = modelplane(json!({ "tls": tls }), prerequisites());
    let desired = compose(&request.observed()).expect("valid");
    let gateway = body(&desired, "gateway");
    assert_eq!(gateway["spec"]["listeners"][1]["hostname"], "ai.example.org");
    assert_eq!(gateway["spec"]["listeners"][1]["tls"]["certificateRefs"][0]["name"], "ai-example-org");
    assert_eq!(body(&desired, "gateway-service")["spec"]["ports"][1]["port"], 443);
}

#[test]
fn the_backend_in_service_stays_until_the_new_one_runs() {
    let mut resources = prerequisites();
    for key in ["traefik", "usage-pc-by-traefik", "gateway-class"] {
        resources[key] = bare();
    }
    resources["gateway"] = json!({"resource": {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "modelplane"},
        "spec": {"gatewayClassName": "traefik"},
    }});
    let request = modelplane(json!({}), resources.clone());
    let desired = compose(&request.observed()).expect("valid");
    assert_eq!(body(&desired, "gateway")["spec"]["gatewayClassName"], "traefik", "Traefik still answers");
    for key in
        ["traefik", "usage-pc-by-traefik", "gateway-class", "provider-config-helm", "gateway-deployment"]
    {
        assert!(desired.resources.contains_key(key), "{key}");
    }
    resources["gateway-deployment"] = with_condition("Available");
    let request = modelplane(json!({}), resources);
    let desired = compose(&request.observed()).expect("valid");
    assert_eq!(body(&desired, "gateway")["spec"]["gatewayClassName"], "modelplane");
    assert!(!desired.resources.contains_key("traefik"), "withdrawn once the new one runs");
}
