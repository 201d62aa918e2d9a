//! The pod template of an engine member, shared by `ModelDeployment` and `ModelReplica`, and the enums that
//! describe the shape of an engine.
//!
//! A template is carried from the deployment to the replica exactly as given, so its lists and maps are
//! `Option`s: an empty list stays an empty list and an absent one stays absent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{label_values, rules};
use crate::wire;

/// What a member of an engine does.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
pub enum MemberRole {
    /// The engine is one pod.
    #[default]
    Standalone,
    /// First pod of a gang; it answers requests.
    Leader,
    /// The other pods of a gang.
    Worker,
}

impl MemberRole {
    /// The role as it is written in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standalone => "Standalone",
            Self::Leader => "Leader",
            Self::Worker => "Worker",
        }
    }

    /// The role in lower case, as it appears in object names (spec replica §2).
    pub fn lowercase(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Leader => "leader",
            Self::Worker => "worker",
        }
    }
}

/// Which half of a disaggregated model an engine serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum EnginePhase {
    /// Processes prompts and hands the key-value cache on.
    #[default]
    Prefill,
    /// Generates tokens from the key-value cache.
    Decode,
}

/// How the engines of a replica share the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum ServingMode {
    /// Every engine serves whole requests.
    #[default]
    Unified,
    /// One engine processes prompts, the other generates tokens (llm-d disaggregation).
    PrefillDecode,
}

/// How the engines of a replica work together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Serving {
    /// How the engines share the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Unified"))]
    pub mode: Option<ServingMode>,
}

impl Serving {
    /// How the engines share the work, `Unified` unless given.
    pub fn mode(&self) -> ServingMode {
        self.mode.unwrap_or_default()
    }
}

/// The size of a gang.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Worker {
    /// Number of Worker pods, each on a node of its own. The gang has one more pod, the Leader.
    #[serde(deserialize_with = "wire::int")]
    #[schemars(range(min = 1, max = 63))]
    pub nodes: i64,
}

/// One condition on a device.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct DeviceSelector {
    /// A Dynamic Resource Allocation CEL expression over `device`, true for the devices wanted, e.g.
    /// `device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub cel: Option<String>,
}

/// The pods of one member of an engine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<PodTemplateMetadata>,
    /// What the pods run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<PodSpec>,
}

/// Labels and annotations of a member's pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::POD_METADATA))]
pub struct PodTemplateMetadata {
    /// Labels put on the pods. Keys under `modelplane.ai/` are reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32), transform = label_values::<63>)]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations put on the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32), transform = label_values::<8192>)]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// What a member's pods run. Ports, probes, volumes, node selection and device claims are added by
/// Modelplane.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// The one container, named `engine`.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 1), extend("x-kubernetes-validations" = rules::CONTAINERS))]
    pub containers: Vec<Container>,
    /// Secrets with registry credentials. They must exist in the `default` namespace of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<PullSecretRef>>,
}

impl PodSpec {
    /// The container that runs the inference engine.
    pub fn engine(&self) -> Option<&Container> {
        self.containers.iter().find(|container| container.name == ENGINE_CONTAINER)
    }
}

/// Name of the container that runs the inference engine.
pub const ENGINE_CONTAINER: &str = "engine";

/// The container of an inference engine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Container {
    /// Always `engine`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Image of the engine, e.g. `vllm/vllm-openai:v0.23.0`.
    #[schemars(length(min = 1))]
    pub image: String,
    /// Entry point, replacing that of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Arguments of the entry point. `--model` is added when the deployment names a model cache and neither
    /// `command` nor an own `--model` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Environment variables. In a gang `MODELPLANE_LEADER_ADDRESS` and `MODELPLANE_RANK` are set before
    /// these, so these may refer to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
}

impl Container {
    /// Arguments of the entry point, empty if there are none.
    pub fn args(&self) -> &[String] {
        self.args.as_deref().unwrap_or_default()
    }

    /// Entry point, empty if the image's own is used.
    pub fn command(&self) -> &[String] {
        self.command.as_deref().unwrap_or_default()
    }

    /// Environment variables, empty if there are none.
    pub fn env(&self) -> &[EnvVar] {
        self.env.as_deref().unwrap_or_default()
    }
}

/// Names a Secret with registry credentials.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PullSecretRef {
    /// Name of the Secret.
    pub name: String,
}

/// One environment variable.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable.
    pub name: String,
    /// Its value; `$(NAME)` stands for the value of a variable defined earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where the value comes from, instead of `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<EnvVarSource>,
}

/// Where the value of an environment variable comes from: one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVarSource {
    /// An entry of a Secret in the `default` namespace of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// An entry of a ConfigMap in the `default` namespace of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// A field of the pod itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
}

/// Names one entry of a Secret or ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct KeyRef {
    /// Name of the Secret or ConfigMap.
    pub name: String,
    /// Key of the entry.
    pub key: String,
    /// Whether the pod may start without the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// Names a field of the pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// API version the path is written in; `v1` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Path of the field, e.g. `status.podIP`.
    pub field_path: String,
}
