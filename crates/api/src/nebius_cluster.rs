//! `NebiusCluster`: a cluster on Nebius Managed Kubernetes. Written by the InferenceCluster composition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{CacheStatus, ClusterSecret, Condition, Credentials, InfinibandFabric, PoolRole};
use crate::inference_cluster::FabricType;
use crate::kind::kind;
use crate::schema::{rules, secret_types};
use crate::wire;

kind! {
    /// A cluster on Nebius Managed Kubernetes.
    NebiusCluster { spec: NebiusClusterSpec, status: NebiusClusterStatus } = NEBIUS_CLUSTER
}

/// The cluster and its node pools. Project and region come from the provider configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NebiusClusterSpec {
    /// Kubernetes minor version of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), extend("default" = "1.34"))]
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

impl NebiusClusterSpec {
    /// Kubernetes version, `1.34` unless given.
    pub fn kubernetes_version(&self) -> &str {
        self.kubernetes_version.as_deref().unwrap_or("1.34")
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
    /// Nebius platform, e.g. `gpu-h100-sxm`.
    #[schemars(length(min = 1, max = 63))]
    pub platform: String,
    /// Nebius resource preset of the platform, e.g. `8gpu-128vcpu-1600gb`.
    #[schemars(length(min = 1, max = 63))]
    pub preset: String,
    /// Size of each node's boot disk in GB.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 65536), extend("default" = 100))]
    pub disk_size_gb: Option<i64>,
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
    /// Network between the nodes of the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Fabric>,
}

impl NodePool {
    /// Number of nodes, 1 unless given.
    pub fn node_count(&self) -> i64 {
        self.node_count.unwrap_or(1)
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
    /// Nebius preset of accelerator drivers installed on the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), extend("default" = "cuda13.0"))]
    pub drivers_preset: Option<String>,
}

impl Gpu {
    /// Preset of accelerator drivers, `cuda13.0` unless given.
    pub fn drivers_preset(&self) -> &str {
        self.drivers_preset.as_deref().unwrap_or("cuda13.0")
    }
}

/// The network between the nodes of a pool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::NEBIUS_FABRIC))]
pub struct Fabric {
    /// Type of the network.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "None", "enum" = ["None", "InfiniBand"]))]
    pub type_: Option<FabricType>,
    /// The InfiniBand fabric. Required when `type` is `InfiniBand`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infiniband: Option<InfinibandFabric>,
}

impl Fabric {
    /// Type of the network, `None` unless given.
    pub fn type_or_default(&self) -> FabricType {
        self.type_.unwrap_or_default()
    }
}

/// What is reported about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct NebiusClusterStatus {
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
    secret_types(schema, &["Kubeconfig", "NebiusServiceAccountCredentials"], true);
}
