//! Sub-objects that several kinds share: metadata, conditions, references, selectors, taints, devices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rules;
use crate::wire;

pub use crate::device::*;

/// The part of Kubernetes object metadata that Modelplane reads or writes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Name, unique within the namespace (or the cluster, for cluster-scoped kinds).
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace; absent on cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Identity given by the API server, unique over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Number of the current version of the spec.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// When the object was created (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// When deletion was asked for (RFC 3339); present only while the object is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
}

impl ObjectMeta {
    /// The namespace, or the empty string for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The value of a label, if the object carries it.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

/// One observation about an object, as in the Kubernetes API conventions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, as one CamelCase word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, as one line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When `status` last changed (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// The generation of the object the observation was made on.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Whether the list holds a condition of this type with status `True`.
    pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
        conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
    }
}

/// What any observed object may carry, whatever its kind: for readiness and ownership decisions that do not
/// need the spec. Decodes from objects whose spec is absent, foreign or malformed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectHead {
    /// API group and version.
    #[serde(default, deserialize_with = "wire::nullable")]
    pub api_version: String,
    /// Kind.
    #[serde(default, deserialize_with = "wire::nullable")]
    pub kind: String,
    /// Metadata.
    #[serde(default, deserialize_with = "wire::nullable")]
    pub metadata: ObjectMeta,
    /// Status, of which only the conditions are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ConditionedStatus>,
}

impl ObjectHead {
    /// Whether the object reports the condition `Ready` as `True`; an object without conditions does not.
    pub fn is_ready(&self) -> bool {
        self.status.as_ref().is_some_and(|status| Condition::is_true(&status.conditions, "Ready"))
    }
}

/// The part of a status that all kinds share.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ConditionedStatus {
    /// Conditions, one per type.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Selects objects by their labels: all pairs must be present. An empty selector selects everything.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Label keys with the value each must have. Empty selects every object.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

impl LabelSelector {
    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// Names another object of a kind given by the field that holds the reference.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ResourceRef {
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// The Crossplane provider configuration whose cloud credentials are used.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Credentials {
    /// Kind of the provider configuration: `ClusterProviderConfig` can be shared by all namespaces,
    /// `ProviderConfig` lives in the namespace of the object that uses it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ClusterProviderConfig"))]
    pub type_: Option<ProviderConfigKind>,
    /// Name of the provider configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), extend("default" = "default"))]
    pub name: Option<String>,
}

impl Credentials {
    /// Kind of the provider configuration, `ClusterProviderConfig` unless given.
    pub fn type_or_default(&self) -> ProviderConfigKind {
        self.type_.unwrap_or_default()
    }

    /// Name of the provider configuration, `default` unless given.
    pub fn name_or_default(&self) -> &str {
        self.name.as_deref().unwrap_or("default")
    }
}

/// Kind of a Crossplane provider configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ProviderConfigKind {
    /// Lives in the namespace of the object that uses it.
    ProviderConfig,
    /// Cluster-scoped, shared by all namespaces.
    #[default]
    ClusterProviderConfig,
}

impl ProviderConfigKind {
    /// The kind as Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProviderConfig => "ProviderConfig",
            Self::ClusterProviderConfig => "ClusterProviderConfig",
        }
    }
}

/// What a taint does to the replicas that do not tolerate it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
pub enum TaintEffect {
    /// New replicas stay away; replicas already there stay.
    #[default]
    NoSchedule,
    /// New replicas stay away and replicas already there are moved.
    NoExecute,
}

/// A reason to keep model replicas off a cluster, e.g. while it is drained for an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Taint {
    /// What the taint is about, e.g. `maintenance`. A deployment tolerates the taint by this key.
    #[schemars(length(min = 1))]
    pub key: String,
    /// Detail of the key, compared by tolerations whose operator is `Equal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What happens to deployments that do not tolerate the taint.
    pub effect: TaintEffect,
}

/// Lets the replicas of a deployment use clusters that carry a matching taint.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::TOLERATION))]
pub struct Toleration {
    /// Key of the taints tolerated. Absent, with operator `Exists`, means every taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How the taint is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Equal"))]
    pub operator: Option<TolerationOperator>,
    /// Value the taint must have with operator `Equal`; absent is the empty value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Effect of the taints tolerated. Absent means both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// How the taint is compared, `Equal` unless given.
    pub fn operator(&self) -> TolerationOperator {
        self.operator.unwrap_or_default()
    }

    /// Whether the toleration matches the taint (Kubernetes' rules for node taints).
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|effect| effect != taint.effect) {
            return false;
        }
        let key = self.key.as_deref().unwrap_or_default();
        match self.operator() {
            TolerationOperator::Exists => key.is_empty() || key == taint.key,
            TolerationOperator::Equal => {
                self.key.is_some()
                    && key == taint.key
                    && self.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
            }
        }
    }
}

/// How a toleration compares a taint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum TolerationOperator {
    /// The taint has the key, whatever its value.
    Exists,
    /// The taint has the key and the value.
    #[default]
    Equal,
}

/// The kind of a secret that gives access to a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum SecretType {
    /// A kubeconfig file.
    #[default]
    Kubeconfig,
    /// A Google service account key (JSON), used on top of a kubeconfig.
    // The v0.1 name of the same secret, still found in objects written then.
    #[serde(alias = "GCPServiceAccountKey")]
    GoogleApplicationCredentials,
    /// An AWS web identity token configuration, used on top of a kubeconfig.
    AWSWebIdentityCredentials,
    /// A Nebius service account key, used on top of a kubeconfig.
    NebiusServiceAccountCredentials,
}

impl SecretType {
    /// The type as it is written in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kubeconfig => "Kubeconfig",
            Self::GoogleApplicationCredentials => "GoogleApplicationCredentials",
            Self::AWSWebIdentityCredentials => "AWSWebIdentityCredentials",
            Self::NebiusServiceAccountCredentials => "NebiusServiceAccountCredentials",
        }
    }
}

/// One entry of a secret that gives access to a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ClusterSecret {
    /// What the secret holds.
    #[serde(rename = "type")]
    pub type_: SecretType,
    /// Name of the Secret.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Key of the entry in the Secret.
    #[schemars(length(max = 253))]
    pub key: String,
    /// Namespace of the Secret; absent means that of the object that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub namespace: Option<String>,
}

/// The shared storage of a cluster, on which model weights are staged.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheStatus {
    /// StorageClass with read-write-many volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,
}

/// What a node pool is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum PoolRole {
    /// Runs the serving stack; has no accelerators.
    #[default]
    System,
    /// Runs model engines.
    #[serde(rename = "GPU")]
    Gpu,
}

/// An EC2 capacity block: accelerators reserved for a period of time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBlock {
    /// Id of the capacity reservation, e.g. `cr-0123456789abcdef0`.
    #[schemars(length(min = 4, max = 64), regex(pattern = r"^cr-[0-9a-f]+$"))]
    pub capacity_reservation_id: String,
}

/// The InfiniBand fabric that the nodes of a pool share.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InfinibandFabric {
    /// The cloud's name of the fabric, e.g. `fabric-6` on Nebius.
    #[schemars(length(min = 1, max = 63))]
    pub fabric: String,
}
