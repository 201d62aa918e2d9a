//! The Helm releases of a serving stack and their values (spec serving-stack §5.3).

use modelplane_api::names::GPU_TAINT;
use modelplane_api::serving_stack::{ServingStackSpec, StackVersions};
use serde_json::{Value, json};

use super::parts::{Parts, Slot};
use super::{DRA_DRIVER, ENVOY_GATEWAY};
use crate::versions::{self, Chart};

/// One release: its key and what goes into it.
struct Release {
    key: &'static str,
    /// Keys of releases and objects kept together with it.
    together: &'static [&'static str],
    /// Value of the label by which usages find it.
    label: Option<&'static str>,
    chart: &'static Chart,
    version: fn(&StackVersions) -> &str,
    values: fn(&ServingStackSpec) -> Option<Value>,
}

const AI_GATEWAY: &[&str] = &["ai-gateway-crds", "ai-gateway"];

/// A release without label, company or values, for the rows to fill in.
const PLAIN: Release = Release {
    key: "",
    together: &[],
    label: None,
    chart: &versions::CERT_MANAGER,
    version: |_| "",
    values: |_| None,
};

const RELEASES: [Release; 8] = [
    Release {
        key: "cert-manager",
        chart: &versions::CERT_MANAGER,
        version: StackVersions::cert_manager,
        values: |_| Some(json!({"crds": {"enabled": true, "keep": false}})),
        ..PLAIN
    },
    Release {
        key: "envoy-gateway",
        label: Some(ENVOY_GATEWAY),
        chart: &versions::ENVOY_GATEWAY,
        version: StackVersions::envoy_gateway,
        values: |_| Some(envoy_gateway()),
        ..PLAIN
    },
    Release {
        key: AI_GATEWAY[0],
        together: AI_GATEWAY,
        chart: &versions::AI_GATEWAY_CRDS,
        version: |_| versions::AI_GATEWAY_CRDS.version,
        ..PLAIN
    },
    Release {
        key: AI_GATEWAY[1],
        together: AI_GATEWAY,
        chart: &versions::AI_GATEWAY,
        version: |_| versions::AI_GATEWAY.version,
        ..PLAIN
    },
    Release {
        key: "prometheus",
        chart: &versions::PROMETHEUS,
        version: StackVersions::prometheus,
        values: |_| Some(prometheus()),
        ..PLAIN
    },
    Release {
        key: "leader-worker-set",
        chart: &versions::LEADER_WORKER_SET,
        version: StackVersions::leader_worker_set,
        ..PLAIN
    },
    Release {
        key: "node-feature-discovery",
        chart: &versions::NODE_FEATURE_DISCOVERY,
        version: StackVersions::node_feature_discovery,
        values: |_| Some(node_feature_discovery()),
        ..PLAIN
    },
    Release {
        key: DRA_DRIVER[0],
        together: &DRA_DRIVER,
        chart: &versions::NVIDIA_DRA_DRIVER,
        version: StackVersions::nvidia_dra_driver,
        values: |spec| Some(dra_driver(spec)),
        ..PLAIN
    },
];

/// Composes the releases.
pub(super) fn compose(parts: &mut Parts<'_, '_, '_>, spec: &ServingStackSpec) {
    let defaults = StackVersions::default();
    let versions = spec.versions.as_ref().unwrap_or(&defaults);
    for release in &RELEASES {
        let slot = Slot::new(release.key).together_with(release.together).labelled(release.label);
        let chart = Pinned { chart: release.chart, version: (release.version)(versions) };
        parts.release(slot, chart, || (release.values)(spec));
    }
}

/// A chart and the version of it to install.
pub(super) struct Pinned<'v> {
    pub(super) chart: &'static Chart,
    pub(super) version: &'v str,
}

/// Lets Envoy Gateway hand `InferencePool` backends to the AI Gateway's controller.
fn envoy_gateway() -> Value {
    let all = json!({"includeAll": true});
    let hooks = json!({"xdsTranslator": {
        "translation": {"listener": all, "route": all, "cluster": all, "secret": all},
        "post": ["Translation", "Cluster", "Route"],
    }});
    let hostname = format!("ai-gateway-controller.{}.svc.cluster.local", versions::AI_GATEWAY.namespace);
    json!({"config": {"envoyGateway": {
        "extensionApis": {"enableBackend": true},
        "extensionManager": {
            "hooks": hooks,
            "service": {"fqdn": {"hostname": hostname, "port": 1063}},
            "backendResources": [
                {"group": "inference.networking.k8s.io", "kind": "InferencePool", "version": "v1"},
            ],
        },
    }}})
}

/// Sees the PodMonitors of every namespace, and scrapes the gateway's proxies.
fn prometheus() -> Value {
    let relabelling = json!([
        {
            "action": "keep",
            "source_labels": ["__meta_kubernetes_pod_label_app_kubernetes_io_component"],
            "regex": "proxy",
        },
        {
            "action": "replace",
            "source_labels": ["__address__"],
            "target_label": "__address__",
            "regex": r"([^:]+)(?::\d+)?",
            "replacement": "$1:19001",
        },
    ]);
    let proxies = json!({
        "job_name": "envoy-gateway-proxy",
        "metrics_path": "/stats/prometheus",
        "kubernetes_sd_configs": [
            {"role": "pod", "namespaces": {"names": [versions::ENVOY_GATEWAY.namespace]}},
        ],
        "relabel_configs": relabelling,
    });
    json!({
        "fullnameOverride": "prometheus",
        "grafana": {"enabled": false},
        "alertmanager": {"enabled": false},
        "prometheus": {"prometheusSpec": {
            "podMonitorSelectorNilUsesHelmValues": false,
            "podMonitorNamespaceSelector": {},
            "additionalScrapeConfigs": [proxies],
        }},
    })
}

/// Lets the workers onto the tainted GPU nodes: without their labels the DRA driver schedules nothing.
fn node_feature_discovery() -> Value {
    json!({"worker": {"tolerations": [{"key": GPU_TAINT, "operator": "Exists", "effect": "NoSchedule"}]}})
}

/// Claims of whole GPUs only, with the driver where the nodes have it.
fn dra_driver(spec: &ServingStackSpec) -> Value {
    let mut values = json!({
        "gpuResourcesEnabledOverride": true,
        "resources": {"computeDomains": {"enabled": false}},
    });
    let root = spec.nvidia_driver_root();
    if !matches!(root, "" | "/") {
        values["nvidiaDriverRoot"] = root.into();
    }
    values
}
