//! `ModelCache`: model weights staged on every matching cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{Condition, LabelSelector};
use crate::kind::kind;
use crate::schema::{bare_conditions, rules};
use crate::wire;

kind! {
    /// Stages the weights of a model on shared storage of every matching cluster.
    ModelCache { spec: ModelCacheSpec, status: ModelCacheStatus } = MODEL_CACHE
}

/// Which weights to stage, and where.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::MODEL_CACHE))]
pub struct ModelCacheSpec {
    /// Where the weights come from. The block of the same name is required.
    pub source: CacheSource,
    /// A model repository on Hugging Face.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hugging_face: Option<HuggingFace>,
    /// Clusters to stage on, by the labels of the InferenceCluster. Absent means all clusters. Deployments
    /// that use the cache are placed on these clusters only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<LabelSelector>,
}

/// Where weights come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum CacheSource {
    /// A model repository on Hugging Face.
    #[default]
    HuggingFace,
}

/// A model repository on Hugging Face.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HuggingFace {
    /// Repository, e.g. `Qwen/Qwen2.5-72B-Instruct`.
    #[schemars(length(min = 1))]
    pub repo: String,
    /// Branch, tag or commit. Absent means the repository's default branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Size of the volume in GiB. Must hold the whole repository.
    #[serde(rename = "sizeGiB", deserialize_with = "wire::int")]
    #[schemars(range(min = 1, max = 100000))]
    pub size_gib: i64,
    /// Secret with an access token, for gated repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_secret: Option<AuthSecret>,
}

/// Names an access token.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AuthSecret {
    /// Name of the Secret, in the namespace of the cache.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Key of the token in the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "HF_TOKEN"))]
    pub key: Option<String>,
}

impl AuthSecret {
    /// Key of the token, `HF_TOKEN` unless given.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or("HF_TOKEN")
    }
}

/// What is reported about a cache.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ModelCacheStatus {
    /// Conditions of the cache.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = bare_conditions)]
    pub conditions: Vec<Condition>,
    /// Progress over all clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<CacheSummary>,
    /// Progress on each matched cluster. An empty list is written as such: nothing matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<CacheCluster>>,
}

impl ModelCacheStatus {
    /// Progress on each matched cluster.
    pub fn clusters(&self) -> &[CacheCluster] {
        self.clusters.as_deref().unwrap_or_default()
    }
}

/// Progress over all clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CacheSummary {
    /// Clusters that hold the weights, of clusters matched, e.g. `1/2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
}

/// Progress on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CacheCluster {
    /// Name of the InferenceCluster.
    pub name: String,
    /// How far the staging is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<CachePhase>,
    /// Detail for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far the staging on a cluster is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum CachePhase {
    /// Waiting for the volume.
    #[default]
    Pending,
    /// The volume is bound, the weights are being downloaded.
    Hydrating,
    /// The weights are there.
    Ready,
    /// The download failed; it is retried.
    Failed,
}
