//! `SimulatedCluster`: the object with which a simulated cluster is asked for, and its definition.
//!
//! It is served by the embedded control plane only. Its name is that of the InferenceCluster it stands behind, whose
//! node pools it has; its kubeconfig is put into the Secret that the InferenceCluster names.

use std::collections::BTreeMap;
use std::time::Duration;

use modelplane_api::duration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::settings::Faults;

/// API group of what exists in simulations only.
pub const GROUP: &str = "simulation.modelplane.ai";
/// `apiVersion` of a SimulatedCluster.
pub const API_VERSION: &str = "simulation.modelplane.ai/v1alpha1";
/// Kind of a SimulatedCluster.
pub const KIND: &str = "SimulatedCluster";
/// Plural, as in URLs.
pub const PLURAL: &str = "simulatedclusters";
/// Key of the kubeconfig in a cluster's Secret.
pub const KUBECONFIG_KEY: &str = "kubeconfig";

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SimulatedClusterSpec {
    /// How long a pod takes from being scheduled to being ready, `1s` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_after: Option<duration::Duration>,
    /// How long an engine takes for each token, no time unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_time: Option<duration::Duration>,
    /// What is wrong with the cluster at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsSpec>,
}

/// What is wrong with a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FaultsSpec {
    /// Its API server does not answer.
    #[serde(skip_serializing_if = "is_false")]
    pub unreachable: bool,
    /// Its gateway refuses connections.
    #[serde(skip_serializing_if = "is_false")]
    pub gateway_down: bool,
    /// Added to the time to the first token of each answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<duration::Duration>,
    /// Its engines answer 503.
    #[serde(skip_serializing_if = "is_false")]
    pub overloaded: bool,
    /// How many nodes of a pool, by the pool's name, have stopped reporting.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost_nodes: BTreeMap<String, u32>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl SimulatedClusterSpec {
    /// How long a pod takes to be ready.
    pub fn ready_after(&self) -> Duration {
        span(self.ready_after.as_ref(), Duration::from_secs(1))
    }

    /// How long an engine takes for each token.
    pub fn token_time(&self) -> Duration {
        span(self.token_time.as_ref(), Duration::ZERO)
    }

    /// What is wrong with the cluster.
    pub fn faults(&self) -> Faults {
        let faults = self.faults.clone().unwrap_or_default();
        Faults {
            unreachable: faults.unreachable,
            gateway_down: faults.gateway_down,
            slowdown: span(faults.slowdown.as_ref(), Duration::ZERO),
            overloaded: faults.overloaded,
            lost_nodes: faults.lost_nodes,
        }
    }
}

/// The definition's schema admits no other spelling, so a bad one has been refused already.
fn span(text: Option<&duration::Duration>, otherwise: Duration) -> Duration {
    text.and_then(duration::Duration::to_std).unwrap_or(otherwise)
}

/// The CustomResourceDefinition.
pub fn definition() -> Value {
    let span = |description: &str| json!({"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$", "description": description});
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let faults = json!({
        "type": "object", "description": "What is wrong with the cluster at present.",
        "properties": {
            "unreachable": flag("Its API server does not answer."),
            "gatewayDown": flag("Its gateway refuses connections."),
            "slowdown": span("Added to the time to the first token of each answer."),
            "overloaded": flag("Its engines answer 503."),
            "lostNodes": {
                "type": "object", "description": "How many nodes of a pool, by the pool's name, have stopped reporting.",
                "additionalProperties": {"type": "integer", "minimum": 0},
            },
        },
    });
    let spec = json!({
        "type": "object", "description": "How the cluster behaves.",
        "properties": {
            "readyAfter": span("How long a pod takes from being scheduled to being ready, 1s unless given."),
            "tokenTime": span("How long an engine takes for each token, no time unless given."),
            "faults": faults,
        },
    });
    let status = json!({
        "type": "object", "description": "Where the cluster is reached.",
        "properties": {
            "server": {"type": "string", "description": "URL of its API server."},
            "gateway": {"type": "string", "description": "Where its gateway listens, as host:port."},
            "nodes": {"type": "integer", "description": "Number of its nodes."},
            "message": {"type": "string", "description": "Why it does not run, or what it waits for."},
        },
    });
    let column = |name: &str, type_: &str, path: &str| json!({"name": name, "type": type_, "jsonPath": path});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster",
            "names": {
                "kind": KIND, "listKind": format!("{KIND}List"), "plural": PLURAL, "singular": "simulatedcluster",
                "shortNames": ["sim"], "categories": ["modelplane"],
            },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "A cluster that exists only in this process, behind the InferenceCluster of the same name.",
                    "properties": {"spec": spec, "status": status},
                }},
                "additionalPrinterColumns": [
                    column("Server", "string", ".status.server"),
                    column("Gateway", "string", ".status.gateway"),
                    column("Nodes", "integer", ".status.nodes"),
                    column("Message", "string", ".status.message"),
                    column("Age", "date", ".metadata.creationTimestamp"),
                ],
            }],
        },
    })
}
