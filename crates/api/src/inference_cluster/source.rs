//! Where a cluster of the fleet comes from: a block for each cloud, and one for clusters brought along.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{Credentials, SecretType};
use crate::schema::rules;

/// Where a cluster comes from. The block named by `source` is required.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::CLUSTER_SOURCE))]
pub struct ClusterSource {
    /// The cloud that the cluster is provisioned on, or `Existing` for a cluster that is brought along.
    pub source: SourceKind,
    /// A cluster to provision on Google Kubernetes Engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gke: Option<GkeSource>,
    /// A cluster to provision on Amazon Elastic Kubernetes Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eks: Option<EksSource>,
    /// A cluster to provision on Azure Kubernetes Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aks: Option<AksSource>,
    /// A cluster to provision on Nebius Managed Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nebius: Option<NebiusSource>,
    /// A cluster to provision on Vultr Kubernetes Engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vultr: Option<VultrSource>,
    /// A cluster to provision on DigitalOcean Kubernetes. Not in the API as published upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doks: Option<DoksSource>,
    /// A cluster that exists already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingSource>,
}

/// Where a cluster comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum SourceKind {
    /// Provisioned on Google Kubernetes Engine.
    #[serde(rename = "GKE")]
    Gke,
    /// Provisioned on Amazon Elastic Kubernetes Service.
    #[serde(rename = "EKS")]
    Eks,
    /// Provisioned on Azure Kubernetes Service.
    #[serde(rename = "AKS")]
    Aks,
    /// Provisioned on Nebius Managed Kubernetes.
    Nebius,
    /// Provisioned on Vultr Kubernetes Engine.
    Vultr,
    /// Provisioned on DigitalOcean Kubernetes.
    #[serde(rename = "DOKS")]
    Doks,
    /// Brought along, reached through a kubeconfig.
    #[default]
    Existing,
}

/// A cluster to provision on Google Kubernetes Engine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GkeSource {
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
    #[schemars(extend("default" = "1.35"))]
    pub kubernetes_version: Option<String>,
    /// Provider configuration with the cloud credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// A cluster to provision on Amazon Elastic Kubernetes Service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EksSource {
    /// AWS region, e.g. `us-west-2`.
    #[schemars(length(min = 1, max = 32))]
    pub region: String,
    /// Kubernetes minor version of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1.36"))]
    pub kubernetes_version: Option<String>,
    /// Provider configuration with the cloud credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// A cluster to provision on Azure Kubernetes Service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AksSource {
    /// Azure location, e.g. `eastus2`.
    #[schemars(length(min = 1, max = 32))]
    pub location: String,
    /// Kubernetes minor version of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1.34"))]
    pub kubernetes_version: Option<String>,
    /// Provider configuration with the cloud credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// A cluster to provision on Nebius Managed Kubernetes. Project and region come from the provider
/// configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NebiusSource {
    /// Kubernetes minor version of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1.34"))]
    pub kubernetes_version: Option<String>,
    /// Provider configuration with the cloud credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// A cluster to provision on Vultr Kubernetes Engine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VultrSource {
    /// Vultr region, e.g. `ewr`.
    #[schemars(length(min = 1, max = 32))]
    pub region: String,
    /// Kubernetes version of the cluster, in Vultr's spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "v1.36.1+3"))]
    pub kubernetes_version: Option<String>,
    /// Provider configuration with the cloud credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// A cluster to provision on DigitalOcean Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoksSource {
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
}

/// A cluster that exists already. Its Secrets are in the namespace `modelplane-system`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExistingSource {
    /// Secret with the kubeconfig of the cluster.
    pub secret_ref: KubeconfigRef,
    /// Secret with a cloud identity that the kubeconfig needs, for clusters without static credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_secret_ref: Option<IdentityRef>,
    /// Shared storage for model weights. Without it, model caches skip the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ExistingCache>,
}

/// Names the kubeconfig of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct KubeconfigRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of the kubeconfig in the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), extend("default" = "kubeconfig"))]
    pub key: Option<String>,
}

impl KubeconfigRef {
    /// Key of the kubeconfig, `kubeconfig` unless given.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or("kubeconfig")
    }
}

/// Names a cloud identity.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct IdentityRef {
    /// Kind of the identity.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default" = "GoogleApplicationCredentials",
        "enum" = ["GoogleApplicationCredentials", "AWSWebIdentityCredentials", "NebiusServiceAccountCredentials"]
    ))]
    pub type_: Option<SecretType>,
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of the identity in the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), extend("default" = "private_key"))]
    pub key: Option<String>,
}

impl IdentityRef {
    /// Kind of the identity, a Google one unless given.
    pub fn type_or_default(&self) -> SecretType {
        self.type_.unwrap_or(SecretType::GoogleApplicationCredentials)
    }

    /// Key of the identity, `private_key` unless given.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or("private_key")
    }
}

/// The shared storage of an existing cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExistingCache {
    /// StorageClass with read-write-many volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,
}
