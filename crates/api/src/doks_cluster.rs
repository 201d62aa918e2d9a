//! `DOKSCluster`: a cluster on DigitalOcean Kubernetes. Written by the InferenceCluster composition.
//!
//! This kind is not part of the API as published upstream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{ClusterSecret, Condition, Credentials, PoolRole};
use crate::kind::kind;
use crate::schema::{rules, secret_types};
use crate::wire;

kind! {
    /// A cluster on DigitalOcean Kubernetes.
    DOKSCluster { spec: DOKSClusterSpec, status: DOKSClusterStatus } = DOKS_CLUSTER
}

/// The cluster and its node pools.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DOKSClusterSpec {
    /// DigitalOcean region, e.g. `tor1`.
    #[schemars(length(min = 1, max = 32))]
    pub region: String,
    /// Kubernetes version of the cluster, in DigitalOcean's spelling, e.g. `1.35.1-do.6`; `latest` takes the
    /// newest when the cluster is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("default" = "latest"))]
    pub kubernetes_version: Option<String>,
    /// Provider configuration with the cloud credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// Node pools of the cluster.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub node_pools: Vec<NodePool>,
}

impl DOKSClusterSpec {
    /// Kubernetes version, `latest` unless given.
    pub fn kubernetes_version(&self) -> &str {
        self.kubernetes_version.as_deref().unwrap_or("latest")
    }
}

/// A pool of equal nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::AUTOSCALED_POOL))]
pub struct NodePool {
    /// Name of the pool, unique in the cluster; nodes carry it as the label `modelplane.ai/pool`.
    #[schemars(length(min = 1, max = 40))]
    pub name: String,
    /// What the pool is for.
    pub role: PoolRole,
    /// Slug of the Droplet size, e.g. `gpu-h100x8-640gb`.
    #[schemars(length(min = 1, max = 63))]
    pub size: String,
    /// Number of nodes: fixed, or initial when the pool is autoscaled.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000), extend("default" = 1))]
    pub node_count: Option<i64>,
    /// Fewest nodes the autoscaler may leave. Needs `maxNodeCount`.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub min_node_count: Option<i64>,
    /// Most nodes the autoscaler may add up to. Setting it turns autoscaling on.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_node_count: Option<i64>,
    /// Accelerators of each node. Required with role `GPU`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
}

impl NodePool {
    /// Number of nodes, 1 unless given.
    pub fn node_count(&self) -> i64 {
        self.node_count.unwrap_or(1)
    }
}

/// The accelerators of a node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// The cloud's name of the accelerator, e.g. `nvidia-h100-80gb`; nodes are labelled with it.
    #[schemars(length(min = 1, max = 63))]
    pub accelerator_type: String,
}

/// What is reported about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct DOKSClusterStatus {
    /// Conditions of the cluster.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
    /// Secrets that give access to the cluster.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = secrets)]
    pub secrets: Vec<ClusterSecret>,
}

/// The secrets this kind publishes.
fn secrets(schema: &mut schemars::Schema) {
    secret_types(schema, &["Kubeconfig"], false);
}
