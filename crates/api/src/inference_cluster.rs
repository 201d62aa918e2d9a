//! `InferenceCluster`: one member of the fleet, provisioned on a cloud or brought along.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

mod source;

pub use source::*;

use crate::common::{CacheStatus, CapacityBlock, Condition, Device, InfinibandFabric, Taint};
use crate::kind::kind;
use crate::schema::{repeated, rules};
use crate::wire;

kind! {
    /// One cluster of the fleet: where it comes from, its node pools, its taints.
    InferenceCluster { spec: InferenceClusterSpec, status: InferenceClusterStatus } = INFERENCE_CLUSTER
}

/// Where the cluster comes from, its node pools and its taints.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::INFERENCE_CLUSTER))]
pub struct InferenceClusterSpec {
    /// Where the cluster comes from.
    pub cluster: ClusterSource,
    /// Pools of nodes with accelerators. Required unless `source` is `Existing`.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub node_pools: Vec<NodePool>,
    /// Reasons to keep replicas away. `NoSchedule` repels new replicas, `NoExecute` also moves running ones.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<Taint>,
}

/// A pool of equal nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    /// Name of the pool, unique in the cluster. Nodes carry it as the label `modelplane.ai/pool`; on
    /// `Existing` clusters the operator sets that label. At most 12 lower-case letters and digits on AKS.
    #[schemars(length(max = 40))]
    pub name: String,
    /// InferenceClass that says what a node of the pool has.
    #[schemars(length(min = 1, max = 253))]
    pub class_name: String,
    /// Number of nodes: fixed, or initial when `maxNodeCount` is set.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 1))]
    pub node_count: Option<i64>,
    /// Fewest nodes the autoscaler may leave.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_node_count: Option<i64>,
    /// Most nodes the autoscaler may add up to; setting it turns autoscaling on. Replicas are placed as if
    /// the pool had this size.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_node_count: Option<i64>,
    /// Zones the nodes are spread over (GKE, EKS and AKS), e.g. `us-central1-a`.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Network between the nodes of the pool, for engines that span nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Fabric>,
    /// Reserved capacity the nodes are taken from (EKS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_block: Option<CapacityBlock>,
}

impl NodePool {
    /// Number of nodes replicas are placed on: the maximum if autoscaled, else the fixed number (spec api §2).
    pub fn nodes(&self) -> i64 {
        self.max_node_count.filter(|&count| count != 0).unwrap_or_else(|| self.node_count())
    }

    /// Fixed or initial number of nodes, 1 unless given.
    pub fn node_count(&self) -> i64 {
        self.node_count.unwrap_or(1)
    }

    /// Type of the fabric, `None` unless given.
    pub fn fabric_type(&self) -> FabricType {
        self.fabric.as_ref().map(Fabric::type_or_default).unwrap_or_default()
    }
}

/// The network between the nodes of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::FABRIC))]
pub struct Fabric {
    /// Type of the network. `EFA` takes effect on EKS, `InfiniBand` on AKS and Nebius.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "None"))]
    pub type_: Option<FabricType>,
    /// The InfiniBand fabric. Required on Nebius when `type` is `InfiniBand`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infiniband: Option<InfinibandFabric>,
}

impl Fabric {
    /// Type of the network, `None` unless given.
    pub fn type_or_default(&self) -> FabricType {
        self.type_.unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Fabric {
    /// Accepts both published shapes: an object, or, as in v0.1, just the name of the type.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(crate::either::FabricVisitor)
    }
}

/// Type of the network between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum FabricType {
    /// Ordinary Ethernet.
    #[default]
    None,
    /// AWS Elastic Fabric Adapter.
    #[serde(rename = "EFA")]
    Efa,
    /// InfiniBand.
    InfiniBand,
}

/// What is reported about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InferenceClusterStatus {
    /// Conditions of the cluster.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
    /// The cluster's gateway, through which its replicas are reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayStatus>,
    /// Provider configuration that reaches the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_config_ref: Option<ProviderConfigRef>,
    /// Namespace of the infrastructure objects of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Shared storage for model weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheStatus>,
    /// Capacity of the node pools, by which replicas are placed.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub gpu_pools: Vec<GpuPool>,
}

impl InferenceClusterStatus {
    /// Address of the gateway, empty until it is known.
    pub fn gateway_address(&self) -> &str {
        self.gateway.as_ref().and_then(|gateway| gateway.address.as_deref()).unwrap_or_default()
    }

    /// Name of the provider configuration that reaches the cluster, empty until it is known.
    pub fn provider_config_name(&self) -> &str {
        self.provider_config_ref.as_ref().and_then(|config| config.name.as_deref()).unwrap_or_default()
    }

    /// StorageClass for model weights, empty if the cluster has none.
    pub fn cache_storage_class(&self) -> &str {
        self.cache.as_ref().and_then(|cache| cache.storage_class_name.as_deref()).unwrap_or_default()
    }
}

/// The gateway of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct GatewayStatus {
    /// IP address or host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Names the ClusterProviderConfig that reaches a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ProviderConfigRef {
    /// Name of the ClusterProviderConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The capacity of a node pool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct GpuPool {
    /// Name of the pool.
    pub name: String,
    /// Number of nodes replicas may be placed on: the maximum if the pool is autoscaled.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i64>,
    /// Devices of one node, as in the pool's InferenceClass.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), transform = repeated)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub devices: Vec<Device>,
}
