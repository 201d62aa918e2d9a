//! Writing what a composite wants: deleting, noting references, applying.

use std::collections::{BTreeMap, HashMap};

use futures_util::{FutureExt, StreamExt};
use modelplane_api::kind::KindInfo;
use modelplane_api::names::COMPOSITE_LABEL;
use serde_json::{Value, json};

use super::observe::Composed;
use super::pipeline::Answer;
use super::render::{COMPOSITE_MANAGER, Rendered, composed_manager, is_within, render, resource_refs};
use super::{Applied, CompositeController, FINALIZER, Memory};
use crate::cache::KindCache;
use crate::client::{ClientError, Propagation, Target, Write};
use crate::controller::{ReconcileError, Trying};
use crate::metrics::count;
use crate::object::Stored;

/// Requests of one composite under way at the same time.
const AT_ONCE: usize = 8;

/// What became of the resources a composite wants.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What was applied, to be remembered.
    pub applied: HashMap<String, Applied>,
    /// Resources that could not be applied, and why.
    pub failed: BTreeMap<String, String>,
    /// Whether trying again without a change may help.
    pub retry: bool,
}

/// Why a resource was not applied.
enum Refused {
    /// Only a change helps.
    Invalid(String),
    /// Trying again may help.
    Failed(String),
}

impl CompositeController {
    /// Gives everything that is wanted its identity.
    pub(super) fn render(
        composite: &Stored,
        answer: &Answer,
        composed: &Composed,
    ) -> Result<BTreeMap<String, Rendered>, ReconcileError> {
        let mut rendered = BTreeMap::new();
        for (key, wanted) in &answer.resources {
            let observed = composed.get(key).map(|(object, _)| object.as_ref());
            match render(composite, key, &wanted.bytes, observed) {
                Ok(resource) => {
                    rendered.insert(key.clone(), resource);
                }
                Err(problem) => return Err(ReconcileError::Other(format!("resource {key}: {problem}"))),
            }
        }
        Ok(rendered)
    }

    /// Deletes what is no longer wanted; returns what is still there because its deletion was refused.
    pub(super) async fn collect(
        &self,
        composite: &Stored,
        composed: &Composed,
        rendered: &BTreeMap<String, Rendered>,
    ) -> Result<Vec<Rendered>, ReconcileError> {
        let mut kept = Vec::new();
        for (key, (object, _)) in composed {
            // What nobody controls was not composed by us any more: it is left alone, as Crossplane does.
            if rendered.contains_key(key) || object.controller().is_none() {
                continue;
            }
            let refused = match self.usages.blocks(&object.key) {
                Some(in_use) => Some(in_use.to_string()),
                None => self.delete(object).await?,
            };
            match refused {
                None => {
                    count(&self.metrics.collected);
                    tracing::info!(composite = %composite.key, object = %object.key, resource = key, "no longer wanted");
                }
                Some(why) => {
                    self.usages.attempted(&object.key);
                    tracing::debug!(object = %object.key, why, "its deletion was refused");
                    kept.push(Rendered {
                        api_version: object.api_version().to_owned(),
                        key: object.key.clone(),
                        body: Value::Null,
                        digest: 0,
                    });
                }
            }
        }
        Ok(kept)
    }

    /// Deletes an object; says why if that was refused.
    async fn delete(&self, object: &Stored) -> Result<Option<String>, ReconcileError> {
        if object.is_deleting() {
            return Ok(None);
        }
        let api = self.caches.api();
        let resource = api.resource(object.api_version(), &object.key.kind).await.trying("cannot delete")?;
        let uid = Some(object.uid.as_str());
        let deleted = api.delete(&resource, &Target::of(&object.key), uid, Propagation::Foreground).await;
        match deleted {
            Ok(()) => Ok(None),
            Err(error) if error.is_conflict() => Ok(Some(error.to_string())),
            Err(source) => {
                Err(ReconcileError::Request { action: "cannot delete what is no longer wanted", source })
            }
        }
    }

    /// Writes what the engine keeps in the composite itself: finalizer, label, and references.
    pub(super) async fn claim(
        &self,
        composite: &Stored,
        info: &KindInfo,
        refs: Value,
    ) -> Result<(), ReconcileError> {
        let crossplane = composite.document().get(&["spec", "crossplane"]);
        let crossplane = crossplane.and_then(|document| document.to_json().ok()).unwrap_or_default();
        let reference = match crossplane["compositionRef"]["name"].as_str() {
            Some(chosen) => chosen,
            None => info.composition,
        };
        let label = composite.label(COMPOSITE_LABEL).unwrap_or(&composite.key.name);
        let claimed = composite.finalizers().contains(&FINALIZER)
            && composite.label(COMPOSITE_LABEL).is_some()
            && crossplane["compositionRef"]["name"].is_string();
        let same_refs = match crossplane.get("resourceRefs") {
            Some(known) => *known == refs,
            None => refs.as_array().is_some_and(Vec::is_empty),
        };
        if claimed && same_refs {
            return Ok(());
        }
        let body = json!({
            "apiVersion": composite.api_version(),
            "kind": composite.key.kind,
            // The uid keeps a composite that was deleted meanwhile from being created again.
            "metadata": identity(composite, &json!({"labels": {COMPOSITE_LABEL: label}, "finalizers": [FINALIZER]})),
            "spec": {"crossplane": {"compositionRef": {"name": reference}, "resourceRefs": refs}},
        });
        let api = self.caches.api();
        let resource =
            api.resource(composite.api_version(), &composite.key.kind).await.trying("cannot update")?;
        let write = Write::Apply(COMPOSITE_MANAGER);
        let written = api.write(&resource, &Target::of(&composite.key), write, &body).await;
        self.caches.put(written.trying("cannot note the composed resources")?);
        Ok(())
    }

    /// Applies everything; one resource never keeps another from it.
    pub(super) async fn apply(
        &self,
        composite: &Stored,
        rendered: &BTreeMap<String, Rendered>,
        memory: &Memory,
    ) -> Outcome {
        let manager = composed_manager(&composite.key);
        let manager = manager.as_str();
        let mut writes = Vec::with_capacity(rendered.len());
        for (key, resource) in rendered {
            let before = memory.applied.get(key);
            writes.push(
                async move { (key, self.apply_one(composite, resource, manager, before).await) }.boxed(),
            );
        }
        let results: Vec<_> = futures_util::stream::iter(writes).buffered(AT_ONCE).collect().await;
        let mut outcome = Outcome::default();
        for (key, result) in results {
            match result {
                Ok(applied) => {
                    outcome.applied.insert(key.clone(), applied);
                }
                Err(refused) => {
                    let (Refused::Invalid(why) | Refused::Failed(why)) = &refused;
                    outcome.failed.insert(key.clone(), why.clone());
                    outcome.retry |= matches!(refused, Refused::Failed(_));
                }
            }
        }
        outcome
    }

    async fn apply_one(
        &self,
        composite: &Stored,
        resource: &Rendered,
        manager: &str,
        before: Option<&Applied>,
    ) -> Result<Applied, Refused> {
        let kind = self.kind_of(composite, resource).await?;
        let live = kind.get(&resource.key.namespace, &resource.key.name);
        if let Some(live) = &live {
            if let Some(owner) = live.controller().filter(|owner| owner.uid != composite.uid) {
                let text = format!("{} is controlled by {} {}", resource.key, owner.kind, owner.name);
                return Err(Refused::Invalid(text));
            }
            let same = before.is_some_and(|before| before.digest == resource.digest);
            if same
                && (before.is_some_and(|before| before.version == live.version)
                    || is_within(&resource.body, &live.value()))
            {
                count(&self.metrics.unchanged);
                return Ok(Applied { digest: resource.digest, version: live.version });
            }
        }
        let target = Target::of(&resource.key);
        let written =
            self.caches.api().write(kind.resource(), &target, Write::Apply(manager), &resource.body).await;
        count(&self.metrics.applied);
        match written {
            Ok(written) => {
                let version = self.caches.put(written).map_or(0, |stored| stored.version);
                Ok(Applied { digest: resource.digest, version })
            }
            Err(error) if error.is_invalid() => Err(Refused::Invalid(explained(resource, &error))),
            Err(error) => Err(Refused::Failed(explained(resource, &error))),
        }
    }

    async fn kind_of(
        &self,
        composite: &Stored,
        resource: &Rendered,
    ) -> Result<std::sync::Arc<KindCache>, Refused> {
        let (api_version, kind) = (&resource.api_version, &resource.key.kind);
        let failed = |error: String| Refused::Failed(format!("{}: {error}", resource.key));
        self.definitions.ensure(api_version, kind).await.map_err(|error| failed(error.to_string()))?;
        let cache = self.caches.kind(api_version, kind).await.map_err(|error| failed(error.to_string()))?;
        if !cache.resource().namespaced && !composite.key.namespace.is_empty() {
            let text = format!("{kind} is cluster-scoped, which a namespaced composite cannot compose");
            return Err(Refused::Invalid(text));
        }
        Ok(cache)
    }
}

/// Metadata that says which object is meant, and whatever else is to be written there.
pub(super) fn identity(object: &Stored, more: &Value) -> Value {
    let mut metadata = json!({"name": object.key.name, "uid": object.uid});
    if !object.key.namespace.is_empty() {
        metadata["namespace"] = json!(object.key.namespace);
    }
    if let (Some(fields), Some(more)) = (metadata.as_object_mut(), more.as_object()) {
        fields.extend(more.clone());
    }
    metadata
}

/// The references a composite is to keep.
pub(super) fn references(
    composite: &Stored,
    rendered: &BTreeMap<String, Rendered>,
    kept: &[Rendered],
) -> Value {
    resource_refs(&composite.key, rendered.values().chain(kept))
}

fn explained(resource: &Rendered, error: &ClientError) -> String {
    format!("{}: {error}", resource.key)
}
