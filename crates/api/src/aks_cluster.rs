//! `AKSCluster`: a cluster on Azure Kubernetes Service. Written by the InferenceCluster composition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{CacheStatus, ClusterSecret, Condition, Credentials, PoolRole};
use crate::inference_cluster::FabricType;
use crate::kind::kind;
use crate::schema::{rules, secret_types};
use crate::wire;

kind! {
    /// A cluster on Azure Kubernetes Service.
    AKSCluster { spec: AKSClusterSpec, status: AKSClusterStatus } = AKS_CLUSTER
}

/// The cluster, its network and its node pools.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AKSClusterSpec {
    /// Azure location, e.g. `eastus2`.
    #[schemars(length(min = 1, max = 32))]
    pub location: String,
    /// Kubernetes minor version of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), extend("default" = "1.34"))]
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

impl AKSClusterSpec {
    /// Kubernetes version, `1.34` unless given.
    pub fn kubernetes_version(&self) -> &str {
        self.kubernetes_version.as_deref().unwrap_or("1.34")
    }
}

/// Address ranges of the cluster's network (CIDR). `10.96.0.0/16` and `10.244.0.0/16` are taken by services
/// and pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Networking {
    /// Addresses of the virtual network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 18), extend("default" = "10.0.0.0/16"))]
    pub vnet_cidr: Option<String>,
    /// Addresses of the nodes, inside `vnetCidr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 18), extend("default" = "10.0.0.0/20"))]
    pub subnet_cidr: Option<String>,
}

impl Networking {
    /// Addresses of the virtual network, `10.0.0.0/16` unless given.
    pub fn vnet_cidr(&self) -> &str {
        self.vnet_cidr.as_deref().unwrap_or("10.0.0.0/16")
    }

    /// Addresses of the nodes, `10.0.0.0/20` unless given.
    pub fn subnet_cidr(&self) -> &str {
        self.subnet_cidr.as_deref().unwrap_or("10.0.0.0/20")
    }
}

/// A pool of equal nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::POOL))]
pub struct NodePool {
    /// Name of the pool, unique in the cluster; nodes carry it as the label `modelplane.ai/pool`.
    #[schemars(length(min = 1, max = 12), regex(pattern = r"^[a-z][a-z0-9]{0,11}$"))]
    pub name: String,
    /// What the pool is for.
    pub role: PoolRole,
    /// Virtual machine size, e.g. `Standard_ND96isr_H100_v5`.
    #[schemars(length(min = 1, max = 63))]
    pub vm_size: String,
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
    /// Availability zones the nodes are spread over, e.g. `1`.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 3), inner(length(min = 1, max = 8)))]
    pub zones: Vec<String>,
    /// Accelerators of each node. Required with role `GPU`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Network between the nodes of the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "None", "enum" = ["None", "InfiniBand"]))]
    pub fabric: Option<FabricType>,
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

    /// Network between the nodes, `None` unless given.
    pub fn fabric(&self) -> FabricType {
        self.fabric.unwrap_or_default()
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
pub struct AKSClusterStatus {
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
    secret_types(schema, &["Kubeconfig"], false);
}
