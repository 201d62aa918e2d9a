//! What a composite's pipeline is given: what it composed, by its references, and what it asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use modelplane_api::names::COMPOSITION_RESOURCE_NAME_ANNOTATION;
use modelplane_core::contract::{Match, Requirement};
use serde::Deserialize;
use serde_json::Value;

use super::CompositeController;
use super::pipeline::ConnectionDetails;
use crate::cache::{CacheError, KindCache};
use crate::controller::ReconcileError;
use crate::object::Stored;

/// What a composite composed, by resource key.
pub(super) type Composed = BTreeMap<String, (Arc<Stored>, ConnectionDetails)>;

/// `spec.crossplane.resourceRefs[]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    #[serde(default)]
    api_version: &'a str,
    #[serde(default)]
    kind: &'a str,
    #[serde(default)]
    namespace: &'a str,
    #[serde(default)]
    name: &'a str,
}

impl CompositeController {
    /// What the composite composed and still controls.
    pub(super) async fn observe(&self, composite: &Stored) -> Result<Composed, ReconcileError> {
        let references: Vec<Reference<'_>> = composite
            .document()
            .decode_at(&["spec", "crossplane", "resourceRefs"])
            .map_err(|error| ReconcileError::Other(error.to_string()))?
            .unwrap_or_default();
        let mut composed = Composed::new();
        for reference in references {
            let Some(object) = self.referenced(composite, &reference).await? else { continue };
            if object.controller().is_some_and(|owner| owner.uid != composite.uid) {
                continue;
            }
            let Some(resource_key) = object.annotation(COMPOSITION_RESOURCE_NAME_ANNOTATION) else {
                tracing::warn!(composite = %composite.key, object = %object.key, "not known what it was composed as");
                continue;
            };
            let details = self.connection_details(&object).await;
            composed.insert(resource_key.to_owned(), (Arc::clone(&object), details));
        }
        Ok(composed)
    }

    async fn referenced(
        &self,
        composite: &Stored,
        reference: &Reference<'_>,
    ) -> Result<Option<Arc<Stored>>, ReconcileError> {
        if reference.name.is_empty() {
            return Ok(None);
        }
        let own = composite.key.namespace.as_str();
        let namespace = if own.is_empty() { reference.namespace } else { own };
        let kind = match self.caches.kind(reference.api_version, reference.kind).await {
            Ok(kind) => kind,
            // Objects of a kind that is not served do not exist.
            Err(CacheError::Client(error)) if error.is_not_served() => return Ok(None),
            Err(error) => return Err(ReconcileError::Other(error.to_string())),
        };
        if let Some(object) = kind.get(namespace, reference.name) {
            return Ok(Some(object));
        }
        // The watch may be behind; what was referenced is worth a look.
        self.fetch(&kind, namespace, reference.name).await
    }

    async fn fetch(
        &self,
        kind: &KindCache,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Stored>>, ReconcileError> {
        let found = self.caches.api().get(kind.resource(), namespace, name).await;
        let found = found.map_err(|error| ReconcileError::Other(error.to_string()))?;
        let Some(stored) = found.and_then(Stored::from_value).map(Arc::new) else { return Ok(None) };
        kind.put(Arc::clone(&stored));
        Ok(Some(stored))
    }

    /// What a composed resource wrote into its connection Secret; nothing if there is none.
    async fn connection_details(&self, object: &Stored) -> ConnectionDetails {
        let Some(name) = object.text_at(&["spec", "writeConnectionSecretToRef", "name"]) else {
            return Vec::new();
        };
        let Ok(secrets) = self.caches.kind("v1", "Secret").await else { return Vec::new() };
        let Some(secret) = secrets.get(&object.key.namespace, name) else { return Vec::new() };
        secret_data(&secret)
    }

    /// The objects a requirement asks for.
    pub(super) async fn require(
        &self,
        requirement: &Requirement,
    ) -> Result<Vec<Arc<Stored>>, ReconcileError> {
        let Requirement { api_version, kind, namespace, select } = requirement;
        let explain = |error: String| ReconcileError::Other(format!("cannot fetch {kind}: {error}"));
        self.definitions.ensure(api_version, kind).await.map_err(|error| explain(error.to_string()))?;
        let cache = self.caches.kind(api_version, kind).await.map_err(|error| explain(error.to_string()))?;
        let namespace = namespace.as_deref();
        Ok(match select {
            Match::All => cache.list(namespace),
            Match::Labels(labels) => cache.select(namespace, labels),
            Match::Name(name) => match namespace {
                Some(namespace) => cache.get(namespace, name).into_iter().collect(),
                None if !cache.resource().namespaced => cache.get("", name).into_iter().collect(),
                // A name without a namespace is looked for in all of them.
                None => cache.list(None).into_iter().filter(|object| object.key.name == *name).collect(),
            },
        })
    }
}

/// The decoded entries of a Secret.
pub(crate) fn secret_data(secret: &Stored) -> ConnectionDetails {
    let data: Option<BTreeMap<String, Value>> = secret.document().decode_at(&["data"]).ok().flatten();
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).ok();
    let entries = data.unwrap_or_default().into_iter();
    entries.filter_map(|(key, value)| Some((key, decode(value.as_str()?)?))).collect()
}
