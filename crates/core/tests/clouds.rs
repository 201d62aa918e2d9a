//! The clusters of AKS, Nebius, Vultr and DigitalOcean: what the recorded cases do not show.
//!
//! That nothing observed is dropped on broken input is tested for every kind in `nothing_observed_is_dropped`.

mod support;

use modelplane_core::compose;
use modelplane_core::contract::{Desired, Ready, Severity};
use serde_json::{Value, json};
use support::{Request, body};

/// A request for a cluster of a cloud, with these fields in its spec and these resources observed.
fn request(kind: &str, spec: &Value, resources: &[(&str, Value)]) -> Request {
    let mut request = Request::default();
    request.set_composite(&json!({
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": kind,
        "metadata": {"name": "east", "namespace": "modelplane-system"},
        "spec": spec,
    }));
    for (key, resource) in resources {
        request.set_resource(key, Some(resource));
    }
    request
}

fn composed<'r>(kind: &str, request: &'r Request) -> Desired<'r> {
    let compose = compose::composition("infrastructure.modelplane.ai/v1alpha1", kind).expect("a composition");
    compose(&request.observed()).unwrap_or_else(|error| panic!("{error}"))
}

fn keys<'d>(desired: &'d Desired<'_>) -> Vec<&'d str> {
    desired.resources.keys().map(AsRef::as_ref).collect()
}

fn is_ready(desired: &Desired<'_>, key: &str) -> bool {
    desired.resources[key].ready == Ready::True
}

fn status(desired: &Desired<'_>) -> Value {
    desired.status.as_ref().expect("a status").document().to_json().expect("an object")
}

fn ready() -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

fn doks(version: Option<&str>, pools: &Value) -> Value {
    let mut spec = json!({"region": "tor1", "nodePools": pools});
    if let Some(version) = version {
        spec["kubernetesVersion"] = version.into();
    }
    spec
}

fn doks_pool() -> Value {
    json!([{
        "name": "gpu", "role": "GPU", "size": "gpu-h100x8-640gb", "nodeCount": 2,
        "gpu": {"acceleratorType": "nvidia-h100"},
    }])
}

#[test]
fn a_digitalocean_cluster_is_composed_with_a_pool_of_its_own() {
    let request = request("DOKSCluster", &doks(None, &doks_pool()), &[]);
    let desired = composed("DOKSCluster", &request);
    assert_eq!(keys(&desired), ["cluster", "nodepool-gpu"]);
    let expected = json!({
        "apiVersion": "kubernetes.digitalocean.m.crossplane.io/v1alpha1",
        "kind": "Cluster",
        "spec": {
            "managementPolicies": ["Observe", "Create", "Update", "Delete"],
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "default"},
            "forProvider": {
                "name": "modelplane-system-east-doks-b68e7",
                "region": "tor1",
                "ha": true,
                "autoUpgrade": false,
                "nodePool": [{
                    "name": "modelplane-system",
                    "size": "g-4vcpu-16gb",
                    "autoScale": true,
                    "minNodes": 1,
                    "maxNodes": 2,
                    "labels": {"modelplane.ai/pool": "system"},
                }],
                "nvidiaGpuDevicePlugin": [{"enabled": false}],
            },
            "initProvider": {"version": "latest"},
            "writeConnectionSecretToRef": {"name": "east-kubeconfig-a087a"},
        },
    });
    assert_eq!(body(&desired, "cluster"), expected);
    let secret = json!({
        "type": "Kubeconfig", "name": "east-kubeconfig-a087a", "key": "attribute.kube_config.0.raw_config",
    });
    assert_eq!(status(&desired), json!({"secrets": [secret]}));
}

#[test]
fn digitalocean_taints_nodes_itself() {
    let request = request("DOKSCluster", &doks(None, &doks_pool()), &[]);
    let pool = body(&composed("DOKSCluster", &request), "nodepool-gpu");
    let expected = json!({
        "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "default"},
        "forProvider": {
            "name": "gpu",
            "size": "gpu-h100x8-640gb",
            "clusterIdSelector": {"matchControllerRef": true},
            "labels": {"modelplane.ai/pool": "gpu", "modelplane.ai/gpu": "nvidia-h100"},
            "nodeCount": 2,
        },
    });
    assert_eq!(pool["spec"], expected);
}

#[test]
fn a_pinned_version_is_enforced_and_the_newest_only_seeded() {
    let cases = [
        ("a version that is pinned", Some("1.35.1-do.6"), json!("1.35.1-do.6"), Value::Null),
        ("the newest by name", Some("latest"), Value::Null, json!("latest")),
        ("no version", None, Value::Null, json!("latest")),
    ];
    for (name, version, enforced, seeded) in cases {
        let request = request("DOKSCluster", &doks(version, &doks_pool()), &[]);
        let cluster = body(&composed("DOKSCluster", &request), "cluster");
        assert_eq!(cluster["spec"]["forProvider"]["version"], enforced, "{name}");
        assert_eq!(cluster["spec"]["initProvider"]["version"], seeded, "{name}");
    }
}

/// Kind, the rest of a spec and of a pool, key of the pool, and the paths of its fixed size and its bounds.
const SIZES: [(&str, &str, &str, &str, [&str; 2]); 3] = [
    ("DOKSCluster", "size", "nodepool-p", "/nodeCount", ["/minNodes", "/maxNodes"]),
    ("VultrCluster", "plan", "node-pool-p", "/nodeQuantity", ["/minNodes", "/maxNodes"]),
    (
        "NebiusCluster",
        "platform",
        "nodegroup-p",
        "/fixedNodeCount",
        ["/autoscaling/minNodeCount", "/autoscaling/maxNodeCount"],
    ),
];

#[test]
fn a_pool_is_fixed_unless_it_has_a_maximum() {
    let cases = [
        ("fixed", json!({"nodeCount": 3}), None),
        ("with a maximum", json!({"nodeCount": 3, "maxNodeCount": 5}), Some((3, 5))),
        ("with both bounds", json!({"nodeCount": 3, "minNodeCount": 1, "maxNodeCount": 5}), Some((1, 5))),
    ];
    for (kind, shape, key, fixed, [min, max]) in SIZES {
        for (name, size, bounds) in &cases {
            let mut pool = size.clone();
            pool["name"] = "p".into();
            pool["role"] = "System".into();
            pool[shape] = "x".into();
            pool["preset"] = "x".into();
            let spec = json!({"region": "r", "nodePools": [pool]});
            let request = request(kind, &spec, &[("cluster", ready())]);
            let composed = body(&composed(kind, &request), key);
            let parameters = &composed["spec"]["forProvider"];
            let number = |path: &str| parameters.pointer(path).and_then(Value::as_i64);
            assert_eq!(number(min).zip(number(max)), *bounds, "{kind}, {name}: bounds");
            if bounds.is_none() {
                assert_eq!(number(fixed), Some(3), "{kind}, {name}: size");
            }
        }
    }
}

#[test]
fn an_autoscaled_pool_on_digitalocean_is_only_seeded_with_a_size() {
    let pools = json!([{"name": "p", "role": "System", "size": "c-2", "nodeCount": 0, "maxNodeCount": 4}]);
    let request = request("DOKSCluster", &doks(None, &pools), &[]);
    let spec = body(&composed("DOKSCluster", &request), "nodepool-p")["spec"].clone();
    assert_eq!(spec["initProvider"], json!({"nodeCount": 0}));
    assert_eq!(spec["forProvider"]["nodeCount"], Value::Null);
    assert_eq!(spec["managementPolicies"], json!(["Observe", "Create", "Update", "Delete"]));
}

fn vultr(role: &str) -> Value {
    let pool = json!({"name": "p", "role": role, "plan": "vc2-6c-16gb", "gpu": {"acceleratorType": "x"}});
    json!({"region": "ams", "nodePools": [pool]})
}

#[test]
fn what_follows_a_vultr_cluster_stays_when_the_cluster_is_not_ready() {
    let all = ["cluster", "gpu-observer", "node-pool-p", "provider-config-kubernetes"];
    let cases = [
        ("nothing observed", vec![], vec!["cluster"]),
        ("the cluster, not ready", vec![("cluster", json!({}))], vec!["cluster"]),
        ("the cluster, ready", vec![("cluster", ready())], all.to_vec()),
        ("a pool", vec![("node-pool-old", json!({}))], all.to_vec()),
        ("the provider config", vec![("provider-config-kubernetes", json!({}))], all.to_vec()),
        ("the observer", vec![("gpu-observer", json!({}))], all.to_vec()),
    ];
    for (name, observed, expected) in cases {
        let request = request("VultrCluster", &vultr("GPU"), &observed);
        assert_eq!(keys(&composed("VultrCluster", &request)), expected, "{name}");
    }
}

#[test]
fn a_vultr_cluster_without_accelerators_does_not_wait_for_their_drivers() {
    for (role, expected) in [("GPU", false), ("System", true)] {
        let observed = [("cluster", ready()), ("gpu-observer", json!({}))];
        let request = request("VultrCluster", &vultr(role), &observed);
        assert_eq!(is_ready(&composed("VultrCluster", &request), "gpu-observer"), expected, "{role}");
    }
}

const NEBIUS_INSIDE: [&str; 4] = [
    "provider-config-helm",
    "provider-config-kubernetes",
    "release-csi-mounted-fs-path",
    "storage-class-rwx-fs",
];

/// A request for a Nebius cluster whose inside exists, with a service account in use.
fn nebius(provider_config: Option<&Value>, in_use: Value) -> Request {
    let pool = json!({"name": "p", "role": "System", "platform": "cpu-d3", "preset": "4vcpu-16gb"});
    let resources: Vec<(&str, Value)> = NEBIUS_INSIDE
        .map(|key| (key, if key == "provider-config-kubernetes" { in_use.clone() } else { ready() }))
        .into();
    let mut request = request("NebiusCluster", &json!({"nodePools": [pool]}), &resources);
    let items: Vec<Value> = provider_config.into_iter().cloned().collect();
    request.set_required("nebius-provider-config", Some(&items));
    request
}

fn in_use() -> Value {
    let secret = json!({"namespace": "crossplane-system", "name": "in-use", "key": "k"});
    json!({"spec": {"identity": {"secretRef": secret}}})
}

#[test]
fn a_nebius_cluster_keeps_its_credentials_while_its_provider_config_is_unusable() {
    let with = |credentials: Value| json!({"spec": {"credentials": credentials}});
    let cases = [
        ("missing", None, Severity::Normal),
        ("not a Secret", Some(with(json!({"source": "Environment"}))), Severity::Warning),
        ("unknown source", Some(with(json!({"source": "Carrier"}))), Severity::Warning),
        ("no reference", Some(with(json!({"source": "Secret"}))), Severity::Warning),
        (
            "no namespace",
            Some(with(json!({"source": "Secret", "secretRef": {"name": "n", "key": "k"}}))),
            Severity::Warning,
        ),
        (
            "no key",
            Some(with(json!({"source": "Secret", "secretRef": {"name": "n", "namespace": "x"}}))),
            Severity::Warning,
        ),
        ("a text", Some(json!({"spec": "broken"})), Severity::Warning),
    ];
    for (name, config, severity) in cases {
        let request = nebius(config.as_ref(), in_use());
        let desired = composed("NebiusCluster", &request);
        assert_eq!(desired.events.len(), 1, "{name}: one event");
        assert_eq!(desired.events[0].severity, severity, "{name}");
        let helm = body(&desired, "provider-config-helm");
        assert_eq!(
            helm["spec"]["identity"]["secretRef"],
            in_use()["spec"]["identity"]["secretRef"],
            "{name}"
        );
        let published = json!({
            "type": "NebiusServiceAccountCredentials",
            "name": "in-use",
            "key": "k",
            "namespace": "crossplane-system",
        });
        assert_eq!(status(&desired)["secrets"][1], published, "{name}");
    }
}

#[test]
fn the_inside_of_a_nebius_cluster_stays_when_nobody_knows_its_credentials() {
    let request = nebius(None, json!({"spec": {"identity": "broken"}}));
    let desired = composed("NebiusCluster", &request);
    for key in NEBIUS_INSIDE {
        assert!(desired.resources.contains_key(key), "{key} is dropped");
        assert!(is_ready(&desired, key), "{key} is as ready as it was");
    }
}

#[test]
fn a_secret_beside_the_cluster_is_published_without_a_namespace() {
    let secret = json!({"name": "n", "key": "k"});
    let config = json!({
        "metadata": {"namespace": "modelplane-system"},
        "spec": {"credentials": {"source": "Secret", "secretRef": secret}},
    });
    let request = nebius(Some(&config), json!({}));
    let published = json!({"type": "NebiusServiceAccountCredentials", "name": "n", "key": "k"});
    assert_eq!(status(&composed("NebiusCluster", &request))["secrets"][1], published);
}

#[test]
fn a_nebius_fabric_shared_by_pools_is_composed_once() {
    let pool = |name: &str, fabric: &str| {
        json!({
            "name": name, "role": "System", "platform": "gpu-h200-sxm", "preset": "8gpu-128vcpu-1600gb",
            "fabric": {"type": "InfiniBand", "infiniband": {"fabric": fabric}},
        })
    };
    let pools = [pool("a", "fabric-6"), pool("b", "fabric-7"), pool("c", "fabric-6")];
    let request = request("NebiusCluster", &json!({"nodePools": pools}), &[]);
    let desired = composed("NebiusCluster", &request);
    let fabrics: Vec<&str> =
        keys(&desired).into_iter().filter(|key| key.starts_with("gpu-cluster")).collect();
    assert_eq!(fabrics, ["gpu-cluster-fabric-6", "gpu-cluster-fabric-7"]);
    let selected = body(&desired, "nodegroup-c")["spec"]["forProvider"]["template"]["gpuCluster"].clone();
    let labels = json!({"modelplane.ai/fabric": "fabric-6"});
    assert_eq!(selected, json!({"idSelector": {"matchControllerRef": true, "matchLabels": labels}}));
}

#[test]
fn aks_installs_what_is_inside_the_cluster_once_there_is_one() {
    let pool = |fabric: &str| json!([{"name": "p", "role": "System", "vmSize": "x", "fabric": fabric}]);
    let cluster = ("cluster", json!({}));
    let operator = ("release-network-operator", json!({}));
    let cases = [
        ("InfiniBand, no cluster yet", "InfiniBand", None, (false, false)),
        ("InfiniBand, a cluster in any state", "InfiniBand", Some(cluster.clone()), (true, true)),
        (
            "InfiniBand, the operator outlives a cluster that is not seen",
            "InfiniBand",
            Some(operator),
            (true, false),
        ),
        ("no fabric", "None", Some(cluster), (false, true)),
    ];
    for (name, fabric, observed, expected) in cases {
        let spec = json!({"location": "eastus2", "nodePools": pool(fabric)});
        let observed: Vec<(&str, Value)> = observed.into_iter().collect();
        let request = request("AKSCluster", &spec, &observed);
        let desired = composed("AKSCluster", &request);
        let has = |key: &str| desired.resources.contains_key(key);
        assert_eq!((has("release-network-operator"), has("storage-class-rwx-fs")), expected, "{name}");
    }
}

#[test]
fn aks_networks_that_overlap_pods_or_services_are_reported() {
    let cases = [
        ("defaults", json!({}), vec![]),
        ("a subnet of its own", json!({"vnetCidr": "10.64.0.0/14", "subnetCidr": "10.64.0.0/18"}), vec![]),
        ("around the services", json!({"vnetCidr": "10.96.0.0/12"}), vec!["vnetCidr", "10.96.0.0/16"]),
        ("among the pods", json!({"subnetCidr": "10.244.7.0/24"}), vec!["subnetCidr", "10.244.0.0/16"]),
    ];
    for (name, networking, mentioned) in cases {
        let spec = json!({"location": "eastus2", "networking": networking, "nodePools": [
            {"name": "p", "role": "System", "vmSize": "x"},
        ]});
        let request = request("AKSCluster", &spec, &[]);
        let messages: Vec<String> =
            composed("AKSCluster", &request).events.into_iter().map(|event| event.message).collect();
        assert_eq!(messages.is_empty(), mentioned.is_empty(), "{name}: {messages:?}");
        for text in mentioned {
            assert!(messages.iter().any(|message| message.contains(text)), "{name}: {messages:?}");
        }
    }
}

#[test]
fn a_malformed_aks_network_changes_nothing() {
    let spec = json!({"location": "eastus2", "networking": {"vnetCidr": "10.0.0.0"}, "nodePools": [
        {"name": "p", "role": "System", "vmSize": "x"},
    ]});
    let request = request("AKSCluster", &spec, &[]);
    let compose = compose::composition("infrastructure.modelplane.ai/v1alpha1", "AKSCluster").expect("one");
    let error = compose(&request.observed()).expect_err("nothing can be wanted");
    assert!(error.message.contains("spec.networking.vnetCidr"), "{error}");
}

#[test]
fn an_inference_cluster_on_digitalocean_composes_its_cluster() {
    let mut request = Request::default();
    request.set_composite(&json!({
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": {"name": "east"},
        "spec": {
            "cluster": {"source": "DOKS", "doks": {"region": "tor1", "credentials": {"name": "do"}}},
            "nodePools": [{"name": "gpu", "className": "doks-h100-8x", "nodeCount": 2}],
        },
    }));
    let class = modelplane_core::catalog::show("doks-h100-8x").expect("a class of the catalog");
    let class: Value = serde_saphyr::from_str(class.yaml).expect("valid YAML");
    request.set_required("class-doks-h100-8x", Some(&[class]));
    request.set_required("model-replicas", Some(&[]));
    let observed = request.observed();
    let compose = compose::composition("modelplane.ai/v1alpha1", "InferenceCluster").expect("a composition");
    let desired = compose(&observed).unwrap_or_else(|error| panic!("{error}"));
    let expected = json!({
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "DOKSCluster",
        "metadata": {"name": "east", "namespace": "modelplane-system"},
        "spec": {
            "region": "tor1",
            "kubernetesVersion": "latest",
            "credentials": {"type": "ClusterProviderConfig", "name": "do"},
            "nodePools": [{
                "name": "gpu",
                "role": "GPU",
                "size": "gpu-h100x8-640gb",
                "nodeCount": 2,
                "gpu": {"acceleratorType": "nvidia-h100"},
            }],
        },
    });
    assert_eq!(body(&desired, "doks-cluster"), expected);
    assert_eq!(status(&desired)["gpuPools"][0]["nodes"], 2);
}
