//! The builder of cloud resources: what all managed resources of all providers have in common.

use serde::Serialize;

use super::fields::{FieldValue, Fields};
use crate::compose::object::{KubernetesObject, Metadata, ProviderConfigRef, Spec};

/// Management policies of what must outlive the cluster it is in: deleting it would need a cluster that
/// is going away itself (clusters §0.7 `ORPHAN`).
pub const ORPHAN: &[&str] = &["Observe", "Create", "Update"];

/// Management policies of what is only seeded by `initProvider`: late initialisation would copy the seed
/// into the spec and so pin what the autoscaler is to change (clusters §0.7 `SEED`).
pub const SEED: &[&str] = &["Observe", "Create", "Update", "Delete"];

/// Management policies of what is only watched.
pub const OBSERVE: &[&str] = &["Observe"];

/// A kind of a provider: `group/version` and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagedKind {
    /// `group/version`.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
}

impl ManagedKind {
    /// A kind of a group.
    pub const fn new(api_version: &'static str, kind: &'static str) -> Self {
        Self { api_version, kind }
    }
}

/// A managed resource: cloud infrastructure kept by a Crossplane provider.
#[derive(Debug, Clone)]
pub struct Managed<'a> {
    kind: ManagedKind,
    metadata: Metadata,
    for_provider: Fields<'a>,
    init_provider: Fields<'a>,
    management_policies: &'static [&'static str],
    connection_secret: Option<&'a str>,
}

/// The spec of a managed resource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedSpec<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    management_policies: &'static [&'static str],
    provider_config_ref: ProviderConfigRef<'a>,
    for_provider: Fields<'a>,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    init_provider: Fields<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_connection_secret_to_ref: Option<SecretName<'a>>,
}

#[derive(Debug, Serialize)]
struct SecretName<'a> {
    name: &'a str,
}

impl<'a> Managed<'a> {
    /// A resource with these `spec.forProvider` fields and no metadata.
    pub fn new(kind: ManagedKind, for_provider: Fields<'a>) -> Self {
        Self {
            kind,
            metadata: Metadata::default(),
            for_provider,
            init_provider: Fields::default(),
            management_policies: &[],
            connection_secret: None,
        }
    }

    /// The same with one more `spec.forProvider` field.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: impl Into<FieldValue<'a>>) -> Self {
        self.for_provider = self.for_provider.with(name, value);
        self
    }

    /// The same under a fixed object name, for what others refer to by name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.metadata.name = Some(name.into());
        self
    }

    /// The same with one more label, for what others select.
    #[must_use]
    pub fn labelled(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata = self.metadata.and_label(key, value);
        self
    }

    /// The same with one more annotation.
    #[must_use]
    pub fn annotated(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata = self.metadata.and_annotation(key, value);
        self
    }

    /// The same with fields that only matter when the resource is created (`spec.initProvider`, [`SEED`]).
    #[must_use]
    pub fn seeded(mut self, init_provider: Fields<'a>) -> Self {
        self.init_provider = init_provider;
        self.management_policies = SEED;
        self
    }

    /// The same writing its connection details to a Secret.
    #[must_use]
    pub fn writing_secret(mut self, name: &'a str) -> Self {
        self.connection_secret = Some(name);
        self
    }

    /// The object, using the credentials of a provider config.
    pub fn object(self, credentials: ProviderConfigRef<'a>) -> KubernetesObject<'a, Spec<ManagedSpec<'a>>> {
        let spec = ManagedSpec {
            management_policies: self.management_policies,
            provider_config_ref: credentials,
            for_provider: self.for_provider,
            init_provider: self.init_provider,
            write_connection_secret_to_ref: self.connection_secret.map(|name| SecretName { name }),
        };
        KubernetesObject::with_spec(self.kind.api_version, self.kind.kind, spec).with_metadata(self.metadata)
    }
}
