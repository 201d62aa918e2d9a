//! How a cluster is reached: provider configs made from a kubeconfig and, on some clouds, an identity.

use std::borrow::Cow;

use modelplane_api::common::{ClusterSecret, SecretType};
use serde::Serialize;

use crate::compose::object::{KubernetesObject, Metadata, OBJECT_API_VERSION, RELEASE_API_VERSION, Spec};

/// Key under which the clouds' providers write the kubeconfig to the connection Secret.
pub const KUBECONFIG_KEY: &str = "kubeconfig";

/// What works on a cluster and needs a provider config for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// provider-kubernetes.
    Kubernetes,
    /// provider-helm.
    Helm,
}

/// The spec of a provider config: credentials for a cluster, and an identity on top of them.
#[derive(Debug, Clone, Serialize)]
pub struct AccessSpec<'a> {
    credentials: SecretSource<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<IdentitySource<'a>>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct SecretSource<'a> {
    source: &'static str,
    secret_ref: SecretEntry<'a>,
}

#[derive(Debug, Clone, Serialize)]
struct IdentitySource<'a> {
    #[serde(rename = "type")]
    type_: &'static str,
    #[serde(flatten)]
    secret: SecretSource<'a>,
}

/// One entry of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretEntry<'a> {
    /// Namespace of the Secret.
    pub namespace: Cow<'a, str>,
    /// Name of the Secret.
    pub name: Cow<'a, str>,
    /// Key of the entry.
    pub key: Cow<'a, str>,
}

impl Tool {
    /// Key of the tool's provider config among the composed resources.
    pub fn key(self) -> &'static str {
        match self {
            Self::Kubernetes => "provider-config-kubernetes",
            Self::Helm => "provider-config-helm",
        }
    }

    /// `group/version` of the tool's kinds.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Kubernetes => OBJECT_API_VERSION,
            Self::Helm => RELEASE_API_VERSION,
        }
    }

    /// A provider config of this tool, in the composite's namespace.
    pub fn provider_config<'a>(
        self,
        name: &str,
        access: AccessSpec<'a>,
    ) -> KubernetesObject<'a, Spec<AccessSpec<'a>>> {
        KubernetesObject::with_spec(self.api_version(), "ProviderConfig", access)
            .with_metadata(Metadata::named(name))
    }
}

impl<'a> AccessSpec<'a> {
    /// Access by the kubeconfig in `credentials` alone.
    pub fn kubeconfig(credentials: SecretEntry<'a>) -> Self {
        Self { credentials: SecretSource::of(credentials), identity: None }
    }

    /// The same with a cloud identity layered on the kubeconfig.
    #[must_use]
    pub fn with_identity(mut self, identity: SecretType, secret: SecretEntry<'a>) -> Self {
        self.identity = Some(IdentitySource { type_: identity.as_str(), secret: SecretSource::of(secret) });
        self
    }
}

impl<'a> SecretSource<'a> {
    fn of(secret_ref: SecretEntry<'a>) -> Self {
        Self { source: "Secret", secret_ref }
    }
}

impl<'a> SecretEntry<'a> {
    /// The entry a cluster publishes; secrets without a namespace of their own are in `namespace`.
    pub fn published(secret: &'a ClusterSecret, namespace: &'a str) -> Self {
        let own = secret.namespace.as_deref().filter(|own| !own.is_empty());
        Self {
            namespace: own.unwrap_or(namespace).into(),
            name: secret.name.as_str().into(),
            key: secret.key.as_str().into(),
        }
    }
}
