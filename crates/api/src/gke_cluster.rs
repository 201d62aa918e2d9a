//! `GKECluster`: a cluster on Google Kubernetes Engine. Written by the InferenceCluster composition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{CacheStatus, ClusterSecret, Condition, Credentials, PoolRole};
use crate::kind::kind;
use crate::schema::{rules, secret_types};
use crate::wire;

kind! {
    /// A cluster on Google Kubernetes Engine.
    GKECluster { spec: GKEClusterSpec, status: GKEClusterStatus } = GKE_CLUSTER
}

/// The cluster, its network and its node pools.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GKEClusterSpec {
    /// Google Cloud project, in the v0.1 shape of the API; newer manifests leave it to the provider
    /// configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub project: Option<String>,
    /// Google Cloud region, e.g. `us-central1`.
    #[schemars(length(min = 1, max = 32))]
    pub region: String,
    /// Kubernetes minor version of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), extend("default" = "1.35"))]
    pub kubernetes_version: Option<String>,
    /// Provider configuration with the cloud credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// Address ranges of the cluster's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networking: Option<Networking>,
    /// Node pools of the cluster.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub node_pools: Vec<NodePool>,
}

impl GKEClusterSpec {
    /// Kubernetes version, `1.35` unless given.
    pub fn kubernetes_version(&self) -> &str {
        self.kubernetes_version.as_deref().unwrap_or("1.35")
    }
}

/// Address ranges of the cluster's network (CIDR). They must not overlap.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Networking {
    /// Addresses of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 18), extend("default" = "10.0.0.0/24"))]
    pub node_cidr: Option<String>,
    /// Addresses of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 18), extend("default" = "10.1.0.0/16"))]
    pub pod_cidr: Option<String>,
    /// Addresses of services.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 18), extend("default" = "10.2.0.0/16"))]
    pub service_cidr: Option<String>,
}

impl Networking {
    /// Addresses of nodes, `10.0.0.0/24` unless given.
    pub fn node_cidr(&self) -> &str {
        self.node_cidr.as_deref().unwrap_or("10.0.0.0/24")
    }

    /// Addresses of pods, `10.1.0.0/16` unless given.
    pub fn pod_cidr(&self) -> &str {
        self.pod_cidr.as_deref().unwrap_or("10.1.0.0/16")
    }

    /// Addresses of services, `10.2.0.0/16` unless given.
    pub fn service_cidr(&self) -> &str {
        self.service_cidr.as_deref().unwrap_or("10.2.0.0/16")
    }
}

/// A pool of equal nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::ZONED_POOL))]
pub struct NodePool {
    /// Name of the pool, unique in the cluster; nodes carry it as the label `modelplane.ai/pool`.
    #[schemars(length(min = 1, max = 40))]
    pub name: String,
    /// What the pool is for.
    pub role: PoolRole,
    /// Compute Engine machine type, e.g. `a3-highgpu-8g`.
    #[schemars(length(min = 1, max = 63))]
    pub machine_type: String,
    /// Size of each node's boot disk in GB.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 65536), extend("default" = 100))]
    pub disk_size_gb: Option<i64>,
    /// Number of nodes: fixed, or initial when the pool is autoscaled.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000), extend("default" = 1))]
    pub node_count: Option<i64>,
    /// Fewest nodes the autoscaler may leave.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000), extend("default" = 0))]
    pub min_node_count: Option<i64>,
    /// Most nodes the autoscaler may add up to.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000), extend("default" = 8))]
    pub max_node_count: Option<i64>,
    /// Zones the nodes are spread over, e.g. `us-central1-a`. Required with role `GPU`.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 8), inner(length(min = 1, max = 63)))]
    pub zones: Vec<String>,
    /// Accelerators of each node. Required with role `GPU`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
}

impl NodePool {
    /// Number of nodes, 1 unless given.
    pub fn node_count(&self) -> i64 {
        self.node_count.unwrap_or(1)
    }

    /// Fewest nodes, 0 unless given.
    pub fn min_node_count(&self) -> i64 {
        self.min_node_count.unwrap_or(0)
    }

    /// Most nodes, 8 unless given.
    pub fn max_node_count(&self) -> i64 {
        self.max_node_count.unwrap_or(8)
    }

    /// Size of the boot disk in GB, 100 unless given.
    pub fn disk_size_gb(&self) -> i64 {
        self.disk_size_gb.unwrap_or(100)
    }
}

/// The accelerators of a node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// The cloud's name of the accelerator, e.g. `nvidia-h100-80gb`; nodes are labelled with it.
    #[schemars(length(min = 1, max = 63))]
    pub accelerator_type: String,
    /// How many accelerators are attached to each node.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16), extend("default" = 1))]
    pub accelerator_count: Option<i64>,
}

impl Gpu {
    /// Number of accelerators of a node, 1 unless given.
    pub fn accelerator_count(&self) -> i64 {
        self.accelerator_count.unwrap_or(1)
    }
}

/// What is reported about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct GKEClusterStatus {
    /// Conditions of the cluster.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
    /// Secrets that give access to the cluster.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = secrets)]
    pub secrets: Vec<ClusterSecret>,
    /// Shared storage for model weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheStatus>,
}

/// The secrets this kind publishes.
fn secrets(schema: &mut schemars::Schema) {
    secret_types(schema, &["Kubeconfig", "GoogleApplicationCredentials"], false);
}
