//! `ModelDeployment`: a model, the engines that serve it, and how many replicas to run on the fleet.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::common::{Condition, LabelSelector, ResourceRef, Toleration};
use crate::kind::kind;
use crate::schema::{label_values, required_mode, rules};
use crate::template::{DeviceSelector, EnginePhase, MemberRole, PodTemplate, Serving, Worker};
use crate::wire;

kind! {
    /// Runs a number of replicas of a model on the clusters of the fleet.
    ModelDeployment { spec: ModelDeploymentSpec, status: ModelDeploymentStatus } = MODEL_DEPLOYMENT
}

/// How many replicas to run, and what a replica is.
///
/// Decodes from both published shapes of the API; the result is always the newer one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ModelDeploymentSpec {
    /// Number of replicas. Each is placed on one cluster; several may share a cluster.
    #[serde(deserialize_with = "wire::int")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: i64,
    /// What a replica is. Everything but the number.
    pub template: ReplicaTemplate,
}

impl<'de> Deserialize<'de> for ModelDeploymentSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::either::DeploymentSpec::deserialize(deserializer)?.into_spec()
    }
}

/// What a replica is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ReplicaTemplate {
    /// Labels of the replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ReplicaMetadata>,
    /// Engines, placement and weights of the replicas.
    pub spec: ReplicaTemplateSpec,
}

impl ReplicaTemplate {
    /// Labels of the replicas, if any were given.
    pub fn labels(&self) -> Option<&BTreeMap<String, String>> {
        self.metadata.as_ref().map(|metadata| &metadata.labels)
    }
}

/// Labels of the replicas of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::REPLICA_METADATA))]
pub struct ReplicaMetadata {
    /// Labels put on each ModelReplica and ModelEndpoint, for a ModelService to select by. Keys under
    /// `modelplane.ai/` are reserved.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32), transform = label_values::<63>)]
    pub labels: BTreeMap<String, String>,
}

/// Engines, placement and weights of a replica.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::SERVING_PHASES))]
pub struct ReplicaTemplateSpec {
    /// Clusters a replica may be placed on, by the labels of the InferenceCluster. Absent means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<LabelSelector>,
    /// Inference engines of a replica. All run on the same cluster, each on one node pool.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub engines: Vec<Engine>,
    /// How the engines work together. Absent means every engine serves whole requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = required_mode)]
    pub serving: Option<Serving>,
    /// ModelCache, in the namespace of the deployment, whose weights the engines mount at `/mnt/models`.
    /// New replicas are placed only on clusters the cache covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_cache_ref: Option<ResourceRef>,
    /// Taints of clusters that the replicas tolerate.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<Toleration>,
}

impl ReplicaTemplateSpec {
    /// Labels a cluster must have; empty means any cluster.
    pub fn cluster_labels(&self) -> Option<&BTreeMap<String, String>> {
        self.cluster_selector.as_ref().map(|selector| &selector.match_labels)
    }

    /// Name of the model cache, if the deployment uses one.
    pub fn model_cache(&self) -> Option<&str> {
        self.model_cache_ref.as_ref().map(|reference| reference.name.as_str())
    }
}

/// One inference engine: a single pod, or a gang of one Leader and its Workers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::DEPLOYMENT_ENGINE))]
pub struct Engine {
    /// Name of the engine, unique in the replica.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How many copies of the engine one replica runs, each on nodes of its own.
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

/// The pods of an engine that have the same role.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::MEMBER))]
pub struct Member {
    /// What the pods do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Standalone"))]
    pub role: Option<MemberRole>,
    /// Number of Worker pods. Only with role `Worker`; absent means one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Worker>,
    /// Devices a node must have for each pod. A member without it runs beside the members that have one and
    /// claims nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// What the pods run.
    pub template: PodTemplate,
}

impl Member {
    /// Role of the pods, `Standalone` unless given.
    pub fn role(&self) -> MemberRole {
        self.role.unwrap_or_default()
    }

    /// Number of pods, each on a node of its own (spec scheduling §4.1).
    pub fn pods(&self) -> i64 {
        match (self.role(), &self.worker) {
            (MemberRole::Worker, Some(worker)) => worker.nodes,
            _ => 1,
        }
    }

    /// Devices asked for; empty if the member claims nothing.
    pub fn devices(&self) -> &[DeviceRequest] {
        self.node_selector.as_ref().map(|selector| selector.devices.as_slice()).unwrap_or_default()
    }
}

/// What a node must have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct NodeSelector {
    /// Devices that each pod needs on its node.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub devices: Vec<DeviceRequest>,
}

/// A number of equal devices on one node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct DeviceRequest {
    /// Name of the request, unique in the member.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How many devices each pod needs.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub count: Option<i64>,
    /// Conditions on the device; all must hold.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub selectors: Vec<DeviceSelector>,
}

impl DeviceRequest {
    /// Number of devices, 1 unless given.
    pub fn count(&self) -> i64 {
        self.count.unwrap_or(1)
    }

    /// The CEL expressions that are not empty, in order.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        self.selectors.iter().filter_map(|selector| selector.cel.as_deref()).filter(|cel| !cel.is_empty())
    }
}

/// What is reported about a deployment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ModelDeploymentStatus {
    /// Conditions of the deployment.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
    /// Numbers of replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<ReplicaCounts>,
}

/// Numbers of replicas of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ReplicaCounts {
    /// Replicas that have been placed on a cluster.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// Replicas that are ready to serve.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    pub ready: Option<i64>,
}
