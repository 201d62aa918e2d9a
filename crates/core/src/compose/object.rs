//! Builders of the objects every composition shares: generic Kubernetes objects, provider-kubernetes
//! `Object`, provider-helm `Release`, and Crossplane `Usage`.
//!
//! All of them leave out what is not set, so that server-side apply owns nothing by accident.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

/// Any Kubernetes object: identity, metadata, and whatever fields `content` has beside them.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesObject<'a, C> {
    /// `group/version`, or `v1`.
    pub api_version: Cow<'a, str>,
    /// Kind.
    pub kind: Cow<'a, str>,
    /// Name, namespace, labels, annotations.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// `spec`, `data`, `rules`, …
    #[serde(flatten)]
    pub content: C,
}

/// The content of an object that has just a `spec`.
#[derive(Debug, Clone, Serialize)]
pub struct Spec<S> {
    /// The spec.
    pub spec: S,
}

/// The metadata a composition may set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// Name; absent lets Crossplane choose a stable one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace; absent means the composite's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// `spec.providerConfigRef` of a managed resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderConfigRef<'a> {
    /// `ProviderConfig` or `ClusterProviderConfig`.
    pub kind: Cow<'a, str>,
    /// Name.
    pub name: Cow<'a, str>,
}

/// When a provider-kubernetes `Object` counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "policy")]
pub enum Readiness<'a> {
    /// Once it has been created.
    SuccessfulCreate,
    /// Once this CEL query over `object` is true.
    #[serde(rename_all = "camelCase")]
    DeriveFromCelQuery {
        /// The query.
        cel_query: Cow<'a, str>,
    },
}

/// The spec of a provider-kubernetes `Object`: one manifest on the cluster of a provider config.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSpec<'a, M> {
    /// Which cluster.
    pub provider_config_ref: ProviderConfigRef<'a>,
    /// When it is ready; absent means the provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Readiness<'a>>,
    /// What the provider may do; empty means everything.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub management_policies: &'a [&'a str],
    /// The manifest.
    pub for_provider: ForProvider<M>,
}

/// `spec.forProvider` of an `Object`.
#[derive(Debug, Clone, Serialize)]
pub struct ForProvider<M> {
    /// The object to keep on the cluster.
    pub manifest: M,
}

impl<'a, S> KubernetesObject<'a, Spec<S>> {
    /// An object with a `spec` and no metadata.
    pub fn with_spec(api_version: impl Into<Cow<'a, str>>, kind: impl Into<Cow<'a, str>>, spec: S) -> Self {
        Self::with_content(api_version, kind, Spec { spec })
    }
}

impl<'a, C> KubernetesObject<'a, C> {
    /// An object with any content and no metadata.
    pub fn with_content(
        api_version: impl Into<Cow<'a, str>>,
        kind: impl Into<Cow<'a, str>>,
        content: C,
    ) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), metadata: Metadata::default(), content }
    }

    /// The same with metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }
}

impl<'a, M> KubernetesObject<'a, Spec<ObjectSpec<'a, M>>> {
    /// A provider-kubernetes `Object` that keeps `manifest` on the cluster of `provider_config_ref`.
    pub fn provider_object(
        provider_config_ref: ProviderConfigRef<'a>,
        readiness: Option<Readiness<'a>>,
        manifest: M,
    ) -> Self {
        let for_provider = ForProvider { manifest };
        let spec = ObjectSpec { provider_config_ref, readiness, management_policies: &[], for_provider };
        Self::with_spec(OBJECT_API_VERSION, "Object", spec)
    }

    /// The same with management policies.
    #[must_use]
    pub fn with_management_policies(mut self, policies: &'a [&'a str]) -> Self {
        self.content.spec.management_policies = policies;
        self
    }
}

/// `apiVersion` of provider-kubernetes `Object`s in a namespace.
pub const OBJECT_API_VERSION: &str = "kubernetes.m.crossplane.io/v1alpha1";
/// `apiVersion` of provider-helm `Release`s in a namespace.
pub const RELEASE_API_VERSION: &str = "helm.m.crossplane.io/v1beta1";
/// `apiVersion` of Crossplane `Usage` and `ClusterUsage`.
pub const USAGE_API_VERSION: &str = "protection.crossplane.io/v1beta1";

impl Metadata {
    /// Nothing set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Just a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// Just a namespace.
    pub fn in_namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// The same with a namespace.
    #[must_use]
    pub fn and_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The same with one more label.
    #[must_use]
    pub fn and_label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// The same with one more annotation.
    #[must_use]
    pub fn and_annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }
}

impl<'a> ProviderConfigRef<'a> {
    /// A cluster-scoped provider config.
    pub fn cluster(name: impl Into<Cow<'a, str>>) -> Self {
        Self { kind: "ClusterProviderConfig".into(), name: name.into() }
    }

    /// A provider config in the composite's namespace.
    pub fn namespaced(name: impl Into<Cow<'a, str>>) -> Self {
        Self { kind: "ProviderConfig".into(), name: name.into() }
    }
}
