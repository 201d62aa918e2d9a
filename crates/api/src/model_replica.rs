//! `ModelReplica`: one replica of a model, placed on one cluster. Written by the ModelDeployment composition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{Condition, ResourceRef};
use crate::kind::kind;
use crate::schema::rules;
use crate::template::{DeviceSelector, EnginePhase, MemberRole, PodTemplate, Serving, Worker};
use crate::wire;

kind! {
    /// One replica of a model on one cluster.
    ModelReplica { spec: ModelReplicaSpec, status: ModelReplicaStatus } = MODEL_REPLICA
}

/// Where the replica runs and what it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::SERVING_PHASES))]
pub struct ModelReplicaSpec {
    /// InferenceCluster the replica runs on.
    #[schemars(length(min = 1))]
    pub cluster_name: String,
    /// Inference engines of the replica.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub engines: Vec<Engine>,
    /// How the engines work together. Absent means every engine serves whole requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<Serving>,
    /// ModelCache whose weights the engines mount at `/mnt/models`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_cache_ref: Option<ResourceRef>,
}

impl ModelReplicaSpec {
    /// Name of the model cache, if the replica uses one.
    pub fn model_cache(&self) -> Option<&str> {
        self.model_cache_ref.as_ref().map(|reference| reference.name.as_str())
    }
}

/// One inference engine: a single pod, or a gang of one Leader and its Workers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::REPLICA_ENGINE))]
pub struct Engine {
    /// Name of the engine, unique in the replica.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How many copies of the engine the replica runs, each on nodes of its own.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub copies: Option<i64>,
    /// Which half of the model the engine serves. Set if and only if the serving mode is `PrefillDecode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<EnginePhase>,
    /// Pods of the engine: one `Standalone` member, or a `Leader` and a `Worker`.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 2), extend("x-kubernetes-list-type" = "atomic"))]
    pub members: Vec<Member>,
}

impl Engine {
    /// Number of copies, 1 unless given.
    pub fn copies(&self) -> i64 {
        self.copies.unwrap_or(1)
    }
}

/// The pods of an engine that have the same role, pinned to a node pool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::MEMBER))]
pub struct Member {
    /// What the pods do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Standalone"))]
    pub role: Option<MemberRole>,
    /// Node pool the pods run on.
    #[schemars(length(min = 1))]
    pub node_pool_name: String,
    /// Number of Worker pods. Only with role `Worker`; absent means one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Worker>,
    /// Devices that each pod claims. Absent if the pods claim nothing.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub device_requests: Vec<DeviceRequest>,
    /// What the pods run.
    pub template: PodTemplate,
}

impl Member {
    /// Role of the pods, `Standalone` unless given.
    pub fn role(&self) -> MemberRole {
        self.role.unwrap_or_default()
    }

    /// Number of pods, each on a node of its own (spec scheduling §5.3).
    pub fn pods(&self) -> i64 {
        match (self.role(), &self.worker) {
            (MemberRole::Worker, Some(worker)) => worker.nodes,
            _ => 1,
        }
    }
}

/// A number of equal devices claimed through Dynamic Resource Allocation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceRequest {
    /// Name of the request, unique in the member.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// DeviceClass the devices are claimed through.
    #[schemars(length(min = 1, max = 253))]
    pub device_class_name: String,
    /// How many devices each pod claims.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub count: Option<i64>,
    /// Conditions on the device; all must hold. Placed replicas carry the list even when it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub selectors: Option<Vec<DeviceSelector>>,
}

impl DeviceRequest {
    /// Number of devices, 1 unless given.
    pub fn count(&self) -> i64 {
        self.count.unwrap_or(1)
    }

    /// The CEL expressions that are not empty, in order.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        let selectors = self.selectors.as_deref().unwrap_or_default();
        selectors.iter().filter_map(|selector| selector.cel.as_deref()).filter(|cel| !cel.is_empty())
    }
}

/// What is reported about a replica: conditions only.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ModelReplicaStatus {
    /// Conditions of the replica.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
}
