//! InferenceCluster: what upstream loses, crashes on or reports too early (spec clusters §6).

use modelplane_core::contract::Ready;
use serde_json::{Value, json};

use crate::support::body;
use crate::{Case, condition, message, ready, status, warnings};

const EVERYTHING: [&str; 4] =
    ["cluster-provider-config-kubernetes", "gke-cluster", "serving-stack", "usage-gke-by-backend"];

fn cluster(source: &str, block: &str, pool: Value) -> Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": {"name": "west"},
        "spec": {
            "cluster": {"source": source, block: {"region": "r1", "location": "r1"}},
            "nodePools": [pool],
        },
    })
}

fn pool() -> Value {
    json!({"name": "gpu", "className": "h100", "nodeCount": 3, "zones": ["r1-a"]})
}

fn class() -> Value {
    let accelerator = json!({"type": "nvidia-h100", "count": 8});
    let recipe = |shape: &str| json!({shape: "shape", "accelerator": accelerator});
    json!({
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": "h100"},
        "spec": {
            "devices": [{"name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com"}],
            "provisioning": {
                "provider": "GKE",
                "gke": recipe("machineType"),
                "eks": recipe("instanceType"),
                "aks": recipe("vmSize"),
                "vultr": recipe("plan"),
                "nebius": {"platform": "gpu-h100-sxm", "preset": "8gpu", "accelerator": accelerator},
            },
        },
    })
}

fn child(status: Value) -> Value {
    json!({
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "GKECluster",
        "metadata": {"name": "west", "namespace": "modelplane-system"},
        "spec": {
            "region": "as-it-was",
            "nodePools": [],
            "crossplane": {"resourceRefs": [{"name": "network"}]},
        },
        "status": status,
    })
}

fn child_status() -> Value {
    json!({
        "secrets": [{"type": "Kubeconfig", "name": "kc", "key": "kubeconfig"}],
        "cache": {"storageClassName": "modelplane-rwx"},
    })
}

fn stack() -> Value {
    ready(json!({
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "ServingStack",
        "metadata": {"name": "west-stack", "namespace": "modelplane-system"},
        "spec": {"secrets": [{"type": "Kubeconfig", "name": "kc", "key": "kubeconfig"}]},
        "status": {"gateway": {"address": "10.0.0.9"}},
    }))
}

/// A GKE cluster that serves.
fn running() -> Case {
    let mut composite = cluster("GKE", "gke", pool());
    composite["status"] = json!({
        "gpuPools": [{"name": "gpu", "nodes": 7, "devices": [{"name": "as-it-was", "driver": "d"}]}],
        "cache": {"storageClassName": "modelplane-rwx"},
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    Case::new(composite)
        .observing("gke-cluster", ready(child(child_status())))
        .observing("serving-stack", stack())
        .observing("cluster-provider-config-kubernetes", json!({"kind": "ClusterProviderConfig"}))
        .observing("usage-gke-by-backend", json!({"kind": "Usage"}))
        .finding("class-h100", &[class()])
        .finding("model-replicas", &[])
}

fn keys(desired: &modelplane_core::contract::Desired<'_>) -> Vec<String> {
    desired.resources.keys().map(|key| key.to_string()).collect()
}

#[test]
fn a_class_that_vanishes_stops_nothing_that_runs() {
    for (name, case) in [
        ("absent", running().finding("class-h100", &[])),
        ("not looked up yet", {
            let mut case = running();
            case.required.remove("class-h100");
            case
        }),
    ] {
        case.check(|desired| {
            assert_eq!(keys(&desired), EVERYTHING, "{name}");
            assert!(desired.resources.values().all(|resource| resource.ready == Ready::True), "{name}");
            assert_eq!(desired.ready, Ready::Unspecified, "{name}");
            assert_eq!(body(&desired, "gke-cluster")["spec"]["region"], "as-it-was", "{name}");
            assert_eq!(condition(&desired, "ClusterReady").reason, "WaitingForClasses", "{name}");
            assert!(message(&desired, "ClusterReady").contains("h100"), "{name}");
            assert_eq!(condition(&desired, "BackendReady").reason, "BackendHealthy", "{name}");
            let status = status(&desired);
            assert_eq!(status["gpuPools"][0]["nodes"], 7, "{name}: the capacity stays as it was");
            assert_eq!(status["cache"]["storageClassName"], "modelplane-rwx", "{name}");
        });
    }
}

#[test]
fn a_cluster_with_nothing_composed_does_not_look_ready() {
    let case = Case::new(cluster("GKE", "gke", pool())).finding("class-h100", &[]);
    case.check(|desired| {
        assert!(desired.resources.is_empty());
        assert_eq!(desired.ready, Ready::False);
        assert_eq!(condition(&desired, "ClusterReady").reason, "WaitingForClasses");
    });
}

#[test]
fn a_held_cluster_keeps_crossplanes_bookkeeping_out_of_what_is_wanted() {
    running().finding("class-h100", &[]).check(|desired| {
        let held = body(&desired, "gke-cluster");
        assert_eq!(held["spec"].get("crossplane"), None);
        assert_eq!(held.get("status"), None);
    });
}

#[test]
fn a_class_that_cannot_be_read_is_named_and_changes_nothing() {
    let mut without_recipe = class();
    without_recipe["spec"]["provisioning"].as_object_mut().expect("recipes").remove("gke");
    let mut without_devices = class();
    without_devices["spec"]["devices"] = Value::Null;
    let mut empty = class();
    empty["spec"]["devices"] = json!([]);
    let mut malformed = class();
    malformed["spec"]["devices"] = json!("eight");
    for (name, class, mentions) in [
        ("no recipe", without_recipe, "spec.provisioning.gke"),
        ("no devices", without_devices, "devices"),
        ("an empty list of devices", empty, "spec.devices is empty"),
        ("malformed devices", malformed, "devices"),
        ("no spec", json!({"metadata": {"name": "h100"}}), "spec is missing"),
    ] {
        running().finding("class-h100", &[class]).check(|desired| {
            assert_eq!(keys(&desired), EVERYTHING, "{name}");
            assert_eq!(body(&desired, "gke-cluster")["spec"]["region"], "as-it-was", "{name}");
            assert_eq!(condition(&desired, "ClusterReady").reason, "InvalidNodePool", "{name}");
            let message = message(&desired, "ClusterReady");
            assert!(message.contains(mentions) && message.contains("h100"), "{name}: {message}");
            assert_eq!(warnings(&desired), [message], "{name}");
            assert_eq!(status(&desired)["gpuPools"][0]["nodes"], 7, "{name}");
        });
    }
}

#[test]
fn values_a_cloud_refuses_are_named_before_they_reach_it() {
    let with = |field: &str, value: Value| {
        let mut pool = pool();
        pool[field] = value;
        pool
    };
    let without_zones = || with("zones", json!([]));
    let cases = [
        ("GKE", "gke", without_zones(), "zones"),
        ("EKS", "eks", without_zones(), "zones"),
        ("AKS", "aks", with("name", json!("GPU_Pool-1")), "GPU_Pool-1"),
        ("Vultr", "vultr", with("nodeCount", json!(0)), "nodeCount"),
        ("Nebius", "nebius", with("minNodeCount", json!(1)), "minNodeCount"),
        ("GKE", "gke", with("nodeCount", json!(2000)), "nodeCount"),
        ("EKS", "eks", with("zones", json!(vec!["a"; 9])), "zones"),
        ("AKS", "aks", with("zones", json!(["a-zone-name-too-long"])), "a-zone-name-too-long"),
    ];
    for (source, block, pool, mentions) in cases {
        let case = Case::new(cluster(source, block, pool)).finding("class-h100", &[class()]);
        case.check(|desired| {
            let message = message(&desired, "ClusterReady");
            assert!(message.contains(mentions), "{source}: {message}");
            assert_eq!(condition(&desired, "ClusterReady").reason, "InvalidNodePool", "{source}");
            assert_eq!(warnings(&desired), [message], "{source}");
            assert_eq!(desired.ready, Ready::False, "{source}: nothing is composed, so nothing is ready");
            assert_eq!(status(&desired)["gpuPools"], json!([]), "{source}: there are no such nodes");
        });
    }
}

#[test]
fn a_cluster_on_a_cloud_needs_pools_and_its_block() {
    let mut without_pools = cluster("GKE", "gke", pool());
    without_pools["spec"].as_object_mut().expect("a spec").remove("nodePools");
    Case::new(without_pools).check(|desired| {
        assert!(message(&desired, "ClusterReady").contains("spec.nodePools"));
    });
    for source in ["GKE", "EKS", "AKS", "Nebius", "Vultr", "DOKS", "Existing"] {
        let mut composite = cluster("GKE", "other", pool());
        composite["spec"]["cluster"]["source"] = json!(source);
        let case = Case::new(composite).finding("class-h100", &[class()]);
        case.observing("serving-stack", stack()).check(|desired| {
            let field = format!("spec.cluster.{}", source.to_lowercase());
            let warnings = warnings(&desired);
            assert!(warnings.len() == 1 && warnings[0].contains(&field), "{source}: {warnings:?}");
            assert_eq!(keys(&desired), ["serving-stack"], "{source}: what exists stays");
        });
    }
}

#[test]
fn a_fixed_pool_stays_fixed_on_every_cloud() {
    let cases = [
        ("GKE", "gke", 3, json!([3, 3])),
        ("EKS", "eks", 3, json!([3, 3])),
        ("AKS", "aks", 3, json!([3, 3])),
        ("GKE", "gke", 0, json!([0, 1])),
        ("Nebius", "nebius", 3, json!([null, null])),
        ("Vultr", "vultr", 3, json!([null, null])),
    ];
    for (source, block, nodes, bounds) in cases {
        let mut pool = pool();
        pool["nodeCount"] = json!(nodes);
        pool["zones"] = json!(["1"]);
        let case = Case::new(cluster(source, block, pool)).finding("class-h100", &[class()]);
        case.check(|desired| {
            let child = body(&desired, &format!("{block}-cluster"));
            let pool = &child["spec"]["nodePools"][0];
            assert_eq!(json!([pool["minNodeCount"], pool["maxNodeCount"]]), bounds, "{source}");
            assert_eq!(status(&desired)["gpuPools"][0]["nodes"], nodes, "{source}");
        });
    }
}

#[test]
fn a_cluster_that_loses_its_secrets_or_readiness_keeps_its_stack() {
    for (name, child) in [
        ("no secrets", ready(child(json!({})))),
        ("no kubeconfig", {
            let secret = json!({"type": "GoogleApplicationCredentials", "name": "sa", "key": "k"});
            ready(child(json!({"secrets": [secret]})))
        }),
        ("malformed secrets", ready(child(json!({"secrets": "none"})))),
        ("not ready", child(child_status())),
        ("no status", child(Value::Null)),
    ] {
        running().observing("gke-cluster", child).check(|desired| {
            assert_eq!(keys(&desired), EVERYTHING, "{name}");
            assert_eq!(
                body(&desired, "serving-stack")["spec"]["secrets"],
                stack()["spec"]["secrets"],
                "{name}: as it was given"
            );
            assert_eq!(status(&desired)["gpuPools"][0]["nodes"], 3, "{name}");
        });
    }
}

#[test]
fn a_stack_whose_secrets_cannot_be_read_is_kept_as_it_is() {
    let mut broken = stack();
    broken["spec"]["secrets"] = json!([{"type": "SomethingElse"}]);
    running()
        .observing("gke-cluster", child(Value::Null))
        .observing("serving-stack", broken.clone())
        .check(|desired| assert_eq!(body(&desired, "serving-stack")["spec"], broken["spec"]));
}

#[test]
fn a_cluster_that_is_ready_but_cannot_be_reached_does_not_run_yet() {
    let case = Case::new(cluster("GKE", "gke", pool())).finding("class-h100", &[class()]);
    case.observing("gke-cluster", ready(child(json!({})))).check(|desired| {
        assert_eq!(condition(&desired, "ClusterReady").reason, "Provisioning");
        assert!(message(&desired, "ClusterReady").contains("Kubeconfig"));
        assert_eq!(desired.resources["gke-cluster"].ready, Ready::Unspecified);
        assert_eq!(keys(&desired), ["gke-cluster"]);
    });
}

#[test]
fn the_guard_stays_until_replicas_have_been_looked_up() {
    let mut case = running().observing("usage-replicas", json!({"kind": "ClusterUsage"}));
    case.required.remove("model-replicas");
    case.check(|desired| assert!(desired.resources.contains_key("usage-replicas")));
    let case = case.finding("model-replicas", &[]);
    case.check(|desired| assert!(!desired.resources.contains_key("usage-replicas")));
}

#[test]
fn the_project_of_the_older_shape_reaches_the_cluster() {
    let mut composite = cluster("GKE", "gke", pool());
    composite["spec"]["cluster"]["gke"]["project"] = json!("my-project");
    let case = Case::new(composite).finding("class-h100", &[class()]);
    case.check(|desired| assert_eq!(body(&desired, "gke-cluster")["spec"]["project"], "my-project"));
}

#[test]
fn an_unreadable_cluster_is_an_error_that_names_the_field() {
    for (name, path, value, mentions) in [
        ("source", "/spec/cluster/source", json!("OtherCloud"), "OtherCloud"),
        ("no cluster", "/spec/cluster", Value::Null, "cluster"),
        ("pools", "/spec/nodePools", json!("two"), "nodePools"),
        ("no name", "/metadata/name", Value::Null, "metadata.name"),
    ] {
        let mut case = running();
        *case.composite.pointer_mut(path).expect(name) = value;
        case.answer(|answer| {
            let error = answer.expect_err(name).to_string();
            assert!(error.contains(mentions), "{name}: {error}");
        });
    }
}
