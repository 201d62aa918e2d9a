//! What the resources of a serving stack have in common: a gate, a provider config, readiness.

use std::borrow::Cow;

use modelplane_api::names::{EXTERNAL_NAME_ANNOTATION, RESOURCE_LABEL};
use serde::Serialize;

use super::releases::Pinned;
use crate::compose::object::{KubernetesObject, Metadata, ProviderConfigRef, Readiness};
use crate::contract::{Body, Desired, Observed, Ready};

/// A resource's place in the stack.
pub(super) struct Slot<'k> {
    key: Cow<'k, str>,
    together: &'static [&'static str],
    label: Option<&'static str>,
}

/// The resources composed so far, and what decides about further ones.
pub(super) struct Parts<'o, 'a, 's> {
    pub(super) observed: &'o Observed<'a>,
    pub(super) desired: Desired<'a>,
    /// Whether both provider configs exist.
    pub(super) ungated: bool,
    pub(super) provider_config: &'s str,
}

impl<'k> Slot<'k> {
    /// The place of this key.
    pub(super) fn new(key: impl Into<Cow<'k, str>>) -> Self {
        Self { key: key.into(), together: &[], label: None }
    }

    /// The same, kept as long as any of these keys exists.
    pub(super) fn together_with(mut self, keys: &'static [&'static str]) -> Self {
        self.together = keys;
        self
    }

    /// The same with a label by which usages find it.
    pub(super) fn labelled(mut self, label: impl Into<Option<&'static str>>) -> Self {
        self.label = label.into();
        self
    }

    fn metadata(&self) -> Metadata {
        match self.label {
            Some(label) => Metadata::default().and_label(RESOURCE_LABEL, label),
            None => Metadata::default(),
        }
    }
}

impl<'a> Parts<'_, 'a, '_> {
    /// Composes a release unless it has to wait; see [`Self::wanted`].
    pub(super) fn release<V: Serialize>(
        &mut self,
        slot: Slot<'a>,
        Pinned { chart, version }: Pinned<'_>,
        values: impl FnOnce() -> Option<V>,
    ) {
        if !self.wanted(&slot) {
            return;
        }
        // A name of our own keeps what the chart derives from it short and predictable.
        let metadata = slot.metadata().and_annotation(EXTERNAL_NAME_ANNOTATION, format!("mp-{}", chart.name));
        let provider_config = ProviderConfigRef::namespaced(self.provider_config);
        let release = KubernetesObject::release(provider_config, chart, version, values());
        let body = Body::of(&release.with_metadata(metadata));
        self.add(slot, body);
    }

    /// Composes an object on the cluster unless it has to wait; see [`Self::wanted`].
    pub(super) fn object<M: Serialize>(
        &mut self,
        slot: Slot<'a>,
        readiness: Option<Readiness<'_>>,
        manifest: impl FnOnce() -> M,
    ) {
        if !self.wanted(&slot) {
            return;
        }
        let provider_config = ProviderConfigRef::namespaced(self.provider_config);
        let object = KubernetesObject::provider_object(provider_config, readiness, manifest());
        let body = Body::of(&object.with_metadata(slot.metadata()));
        self.add(slot, body);
    }

    /// Whether the provider configs exist, or the resource or one that it belongs together with does.
    fn wanted(&self, slot: &Slot<'_>) -> bool {
        let observed = |key: &str| self.observed.has(key);
        self.ungated || observed(&slot.key) || slot.together.iter().any(|other| observed(other))
    }

    fn add(&mut self, slot: Slot<'a>, body: Body<'a>) {
        let ready = Ready::when(self.observed.is_ready(&slot.key));
        self.desired.add(slot.key, body, ready);
    }
}
