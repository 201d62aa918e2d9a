//! What the resources of a serving stack have in common: a gate, a provider config, readiness.

use std::borrow::Cow;

use modelplane_api::names::EXTERNAL_NAME_ANNOTATION;
use serde::Serialize;

use super::releases::Pinned;
use crate::compose::object::{KubernetesObject, Metadata, ProviderConfigRef, Readiness};
use crate::contract::{Body, Desired, Observed, Ready};

/// The resources composed so far, and what decides about further ones.
pub(super) struct Parts<'o, 'a, 's> {
    pub(super) observed: &'o Observed<'a>,
    pub(super) desired: Desired<'a>,
    /// Whether both provider configs exist.
    pub(super) ungated: bool,
    pub(super) provider_config: &'s str,
}

impl<'a> Parts<'_, 'a, '_> {
    /// Composes a release of `chart` unless it has to wait; see [`Self::wanted`].
    pub(super) fn release<V: Serialize>(
        &mut self,
        key: &'static str,
        together: &[&str],
        labels: Metadata,
        Pinned { chart, version }: Pinned<'_>,
        values: impl FnOnce() -> Option<V>,
    ) {
        if !self.wanted(key, together) {
            return;
        }
        // A name of our own keeps what the chart derives from it short and predictable.
        let metadata = labels.and_annotation(EXTERNAL_NAME_ANNOTATION, format!("mp-{}", chart.name));
        let provider_config = ProviderConfigRef::namespaced(self.provider_config);
        let release = KubernetesObject::release(provider_config, chart, version, values());
        let body = Body::of(&release.with_metadata(metadata));
        self.add(key, body);
    }

    /// Composes an object on the cluster unless it has to wait; see [`Self::wanted`].
    pub(super) fn object<M: Serialize>(
        &mut self,
        key: impl Into<Cow<'a, str>>,
        together: &[&str],
        labels: Metadata,
        readiness: Option<Readiness<'_>>,
        manifest: impl FnOnce() -> M,
    ) {
        let key = key.into();
        if !self.wanted(&key, together) {
            return;
        }
        let provider_config = ProviderConfigRef::namespaced(self.provider_config);
        let object = KubernetesObject::provider_object(provider_config, readiness, manifest());
        let body = Body::of(&object.with_metadata(labels));
        self.add(key, body);
    }

    /// Whether the provider configs exist, or the resource or one that it belongs together with does.
    fn wanted(&self, key: &str, together: &[&str]) -> bool {
        self.ungated || self.observed.has(key) || together.iter().any(|other| self.observed.has(other))
    }

    fn add(&mut self, key: impl Into<Cow<'a, str>>, body: Body<'a>) {
        let key = key.into();
        let ready = Ready::when(self.observed.is_ready(&key));
        self.desired.add(key, body, ready);
    }
}
