//! `ServingStack`: gates, readiness, address and table of versions (spec serving-stack §§4–8, 12).

use modelplane_api::serving_stack::StackVersions;
use modelplane_core::compose::serving_stack::compose;
use modelplane_core::contract::Ready;
use modelplane_core::versions;
use serde_json::{Value, json};

use crate::support::{Request, body};
use crate::{bare, with_condition};

fn request(spec: Value, status: Value, resources: Value) -> Request {
    let composite = json!({
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1", "kind": "ServingStack",
        "metadata": {"name": "test-backend", "namespace": "test-ns"}, "spec": spec, "status": status,
    });
    Request::from_json(&json!({"observed": {"composite": {"resource": composite}, "resources": resources}}))
}

fn kubeconfig() -> Value {
    json!({"secrets": [{"type": "Kubeconfig", "name": "kc", "key": "kubeconfig"}]})
}

/// Keys composed when these resources are observed.
fn keys(resources: Value) -> Vec<String> {
    let request = request(kubeconfig(), Value::Null, resources);
    let desired = compose(&request.observed()).expect("valid");
    desired.resources.keys().map(|key| key.to_string()).collect()
}

const UNGATED: [&str; 4] = [
    "provider-config-helm",
    "provider-config-kubernetes",
    "usage-envoy-gw-by-gateway-class",
    "usage-gateway-class-by-gateway",
];

#[test]
fn nothing_is_installed_before_both_provider_configs_exist() {
    assert_eq!(keys(json!({})), UNGATED);
    assert_eq!(keys(json!({"provider-config-helm": bare()})), UNGATED);
    let both = json!({"provider-config-helm": bare(), "provider-config-kubernetes": bare()});
    assert_eq!(keys(both).len(), 20);
}

#[test]
fn what_exists_is_kept_without_provider_configs_along_with_what_it_belongs_to() {
    let cases: [(&str, &[&str]); 5] = [
        ("prometheus", &["prometheus"]),
        ("ai-gateway", &["ai-gateway", "ai-gateway-crds"]),
        ("ai-gateway-crds", &["ai-gateway", "ai-gateway-crds"]),
        ("dra-driver-critical-pods-quota", &["dra-driver", "dra-driver-critical-pods-quota"]),
        (
            "gaie-crd-inferencepools.inference.networking.k8s.io",
            &["gaie-crd-inferencepools.inference.networking.k8s.io"],
        ),
    ];
    for (observed, kept) in cases {
        let composed = keys(json!({observed: bare()}));
        let mut expected: Vec<&str> = UNGATED.iter().chain(kept).copied().collect();
        expected.sort_unstable();
        assert_eq!(composed, expected, "{observed}");
    }
}

#[test]
fn a_part_is_ready_when_it_is_observed_so() {
    let resources = json!({"prometheus": with_condition("Ready"), "gateway": bare()});
    let request = request(kubeconfig(), Value::Null, resources);
    let desired = compose(&request.observed()).expect("valid");
    assert_eq!(desired.resources["prometheus"].ready, Ready::True);
    assert_eq!(desired.resources["gateway"].ready, Ready::Unspecified);
    assert_eq!(desired.resources["provider-config-helm"].ready, Ready::True);
}

#[test]
fn the_first_kubeconfig_and_the_first_identity_give_access() {
    let secrets = json!([
        {"type": "NebiusServiceAccountCredentials", "name": "sa", "key": "creds", "namespace": "elsewhere"},
        {"type": "Kubeconfig", "name": "kc", "key": "kubeconfig", "namespace": "ignored"},
        {"type": "Kubeconfig", "name": "second", "key": "kubeconfig"},
        {"type": "AWSWebIdentityCredentials", "name": "third", "key": "token"},
    ]);
    let request = request(json!({"secrets": secrets}), Value::Null, json!({}));
    let desired = compose(&request.observed()).expect("valid");
    let identity = json!({"namespace": "elsewhere", "name": "sa", "key": "creds"});
    let expected = json!({
        "credentials": {
            "source": "Secret",
            "secretRef": {"namespace": "test-ns", "name": "kc", "key": "kubeconfig"},
        },
        "identity": {"type": "NebiusServiceAccountCredentials", "source": "Secret", "secretRef": identity},
    });
    let config = body(&desired, "provider-config-kubernetes");
    assert_eq!(config["spec"], expected);
    assert_eq!(config["metadata"]["name"], "test-backend-cluster-63fde");
}

#[test]
fn a_stack_without_a_kubeconfig_is_an_error_that_names_the_field() {
    for secrets in [json!([]), json!([{"type": "AWSWebIdentityCredentials", "name": "a", "key": "b"}])] {
        let request = request(json!({"secrets": secrets}), Value::Null, json!({"prometheus": bare()}));
        let error = compose(&request.observed()).expect_err("no kubeconfig");
        assert!(error.message.contains("spec.secrets"), "{error}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn the_address_stays_while_the_gateway_is_not_reported() {
    let status = json!({"gateway": {"address": "10.9.8.7"}});
    let object = |manifest: Value| json!({"gateway": {"resource": {"status": {"atProvider": manifest}}}});
    let addresses = |list: Value| object(json!({"manifest": {"status": {"addresses": list}}}));
    let cases = [
        ("not observed", json!({}), Some("10.9.8.7")),
        ("nothing reported", object(json!({})), Some("10.9.8.7")),
        (
            "another address",
            addresses(json!([{"value": "10.0.0.1"}, {"value": "10.0.0.2"}])),
            Some("10.0.0.1"),
        ),
        ("no address any more", addresses(json!([])), None),
        ("only the first counts", addresses(json!([{}, {"value": "10.0.0.2"}])), None),
        ("malformed", addresses(json!("x")), None),
    ];
    for (name, resources, expected) in cases {
        let request = request(kubeconfig(), status.clone(), resources);
        let desired = compose(&request.observed()).expect("valid");
        let status = desired.status.as_ref().expect("always written");
        assert_eq!(status.document().text_at(&["gateway", "address"]), expected, "{name}");
    }
}

#[test]
fn the_driver_root_is_passed_on_only_if_it_is_unusual() {
    for (root, expected) in [("/", None), ("", None), ("/opt/nvidia", Some("/opt/nvidia"))] {
        let mut spec = kubeconfig();
        spec["nvidiaDriverRoot"] = root.into();
        let request = request(spec, Value::Null, json!({"dra-driver": bare()}));
        let values = body(&compose(&request.observed()).expect("valid"), "dra-driver");
        let values = &values["spec"]["forProvider"]["values"];
        assert_eq!(values.get("nvidiaDriverRoot").and_then(Value::as_str), expected, "{root:?}");
    }
}

#[test]
fn the_table_of_versions_has_the_defaults_of_the_api() {
    let api = StackVersions::default();
    let pairs = [
        (api.cert_manager(), versions::CERT_MANAGER.version),
        (api.envoy_gateway(), versions::ENVOY_GATEWAY.version),
        (api.prometheus(), versions::PROMETHEUS.version),
        (api.leader_worker_set(), versions::LEADER_WORKER_SET.version),
        (api.node_feature_discovery(), versions::NODE_FEATURE_DISCOVERY.version),
        (api.nvidia_dra_driver(), versions::NVIDIA_DRA_DRIVER.version),
        (api.gateway_api(), versions::GATEWAY_API.version),
    ];
    for (default, pinned) in pairs {
        assert_eq!(default, pinned);
    }
}
