//! One reconcile of one composite, with the semantics of Crossplane's composite reconciler.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::world::{ObjectKey, Owner, StoredObject, World, group};
use crate::compose;
use crate::contract::{
    ComposeError, Condition, ConditionStatus, Desired, Event, Match, Observed, Ready, Requirement, Resource,
};
use crate::document::Document;

/// How often a composition may ask for more resources within one reconcile, as Crossplane allows.
const MAX_REQUIREMENT_ROUNDS: usize = 5;

/// Annotation that names a composed resource within its composite.
pub(super) const RESOURCE_NAME_ANNOTATION: &str = "crossplane.io/composition-resource-name";
/// Label that names the outermost composite above a composed resource.
const COMPOSITE_LABEL: &str = "crossplane.io/composite";

/// What a reconcile said.
#[derive(Debug, Clone, Default)]
pub struct Reconciled {
    /// Conditions the composition set, in order.
    pub conditions: Vec<Condition>,
    /// Events the composition sent, in order.
    pub events: Vec<Event>,
    /// What the composition asked to be fetched.
    pub requirements: Vec<Requirement>,
    /// Why nothing was composed, if it failed.
    pub error: Option<String>,
    /// The same by key: what the next reconcile starts with.
    wanted: BTreeMap<String, Requirement>,
    /// Revision of the world that was looked at.
    revision: u64,
}

impl Reconciled {
    /// Whether reconciling again could give another answer: compositions are pure, so only if something
    /// they look at has changed.
    pub(super) fn is_outdated(&self, world: &World, composite: &ObjectKey) -> bool {
        let since = self.revision;
        self.error.is_some()
            || world.get(composite).is_some_and(|object| object.revision > since)
            || world.composed_by(composite).any(|(_, object)| object.revision > since)
            || self.requirements.iter().any(|requirement| {
                world.kind_revision(group(&requirement.api_version), &requirement.kind) > since
            })
    }
}

/// The stable name of a composed resource whose composition gives none.
pub fn composed_name(composite: &ObjectKey, resource_key: &str) -> String {
    let text = format!("{}/{}/{}/{resource_key}", composite.kind, composite.namespace, composite.name);
    let digest = Sha256::digest(text.as_bytes());
    let suffix: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let stem: String = composite.name.chars().take(50).collect();
    format!("{}-{suffix}", stem.trim_end_matches('-'))
}

/// An answer without the borrow on the world it was made from.
#[derive(Default)]
struct Answer {
    /// Resources by key, as Struct wire bytes.
    resources: Vec<(String, Vec<u8>, Ready)>,
    status: Option<Value>,
    ready: Ready,
    reconciled: Reconciled,
}

/// Reconciles the composite `key`, of which `latest` is known; `None` if nothing composes it.
pub(super) fn reconcile(
    world: &mut World,
    key: &ObjectKey,
    latest: Option<&Reconciled>,
) -> Option<Reconciled> {
    let revision = world.revision();
    let composite = world.get(key)?;
    // Asking at once for what was needed last time saves a round.
    let requirements = latest.map(|latest| latest.wanted.clone()).unwrap_or_default();
    let (answer, wanted) = match call(world, composite, requirements) {
        Ok(answered) => answered,
        Err(error) => {
            let text = error.explained();
            let status = failed_status(composite, &text);
            world.set_status(key, status);
            return Some(Reconciled { error: Some(text), revision, ..Reconciled::default() });
        }
    };
    let ready = match apply(world, key, &answer) {
        Ok(ready) => ready,
        Err(error) => return Some(Reconciled { error: Some(error), revision, ..Reconciled::default() }),
    };
    let status = status(world.get(key)?, &answer, ready);
    world.set_status(key, status);
    Some(Reconciled { wanted, revision, ..answer.reconciled })
}

/// Calls the composition, fetching what it requires until it asks for nothing new.
fn call(
    world: &World,
    composite: &StoredObject,
    mut requirements: BTreeMap<String, Requirement>,
) -> Result<(Answer, BTreeMap<String, Requirement>), ComposeError> {
    for _ in 0..MAX_REQUIREMENT_ROUNDS {
        let (answer, wanted) = run_pipeline(&observe(world, composite, &requirements))?;
        if wanted == requirements {
            return Ok((answer, wanted));
        }
        requirements = wanted;
    }
    Err(ComposeError {
        object: composite.key.to_string(),
        message: format!(
            "its composition still asks for more resources after {MAX_REQUIREMENT_ROUNDS} rounds"
        ),
        hint: None,
    })
}

/// Runs the steps of the composite's pipeline, each on what the ones before it want.
fn run_pipeline(observed: &Observed<'_>) -> Result<(Answer, BTreeMap<String, Requirement>), ComposeError> {
    let identity = observed.composite.identity();
    let mut answer = Answer::default();
    let mut wanted = BTreeMap::new();
    for step in compose::pipeline(identity.api_version, identity.kind) {
        let earlier = std::mem::take(&mut answer.resources);
        let mut input = Observed {
            composite: observed.composite.clone(),
            resources: observed.resources.clone(),
            required: observed.required.clone(),
            ..Observed::default()
        };
        for (key, body, ready) in &earlier {
            let resource = Resource { ready: *ready, ..Resource::new(Document::from_struct(body)) };
            input.desired.insert(key, resource);
        }
        let desired = step(&input)?;
        for (key, requirement) in &desired.requirements {
            wanted.insert(key.to_string(), requirement.clone());
        }
        answer.take(&input, desired)?;
    }
    Ok((answer, wanted))
}

fn observe<'w>(
    world: &'w World,
    composite: &'w StoredObject,
    requirements: &'w BTreeMap<String, Requirement>,
) -> Observed<'w> {
    let mut observed = Observed { composite: Resource::new(composite.document()), ..Observed::default() };
    for (owner, object) in world.composed_by(&composite.key) {
        observed.resources.insert(&owner.resource_key, Resource::new(object.document()));
    }
    for (key, requirement) in requirements {
        let candidates = world.of_kind(group(&requirement.api_version), &requirement.kind);
        let found = candidates.filter(|object| satisfies(object, requirement));
        observed.required.insert(key, found.map(|object| Resource::new(object.document())).collect());
    }
    observed
}

fn satisfies(object: &StoredObject, requirement: &Requirement) -> bool {
    let same_namespace =
        requirement.namespace.as_ref().is_none_or(|namespace| object.key.namespace == *namespace);
    same_namespace
        && match &requirement.select {
            Match::All => true,
            Match::Name(name) => object.key.name == *name,
            Match::Labels(labels) => {
                labels.iter().all(|(key, value)| object.body["metadata"]["labels"][key] == value.as_str())
            }
        }
}

impl Answer {
    /// Takes over what a step wants; conditions and events add up.
    fn take(&mut self, observed: &Observed<'_>, desired: Desired<'_>) -> Result<(), ComposeError> {
        let json =
            |document: Document<'_>| document.to_json().map_err(|error| observed.error(error.to_string()));
        let resources = desired.resources.iter();
        self.resources = resources
            .map(|(key, resource)| (key.to_string(), resource.body.bytes().to_vec(), resource.ready))
            .collect();
        if let Some(status) = &desired.status {
            self.status = Some(json(status.document())?);
        }
        if desired.ready != Ready::Unspecified {
            self.ready = desired.ready;
        }
        self.reconciled.requirements.extend(desired.requirements.into_values());
        self.reconciled.conditions.extend(desired.conditions);
        self.reconciled.events.extend(desired.events);
        Ok(())
    }
}

/// Applies the desired resources and collects what is no longer desired; says whether all are ready.
fn apply(world: &mut World, composite: &ObjectKey, answer: &Answer) -> Result<bool, String> {
    let existing: BTreeMap<String, ObjectKey> = world
        .composed_by(composite)
        .map(|(owner, object)| (owner.resource_key.clone(), object.key.clone()))
        .collect();
    let mut all_ready = true;
    let mut kept = BTreeSet::new();
    for (resource_key, bytes, ready) in &answer.resources {
        all_ready &= *ready == Ready::True;
        let known = existing.get(resource_key);
        if let Some(key) = known.filter(|key| world.is_as_desired(key, bytes)) {
            world.declare_ready(key, *ready == Ready::True);
            kept.insert(key.clone());
            continue;
        }
        let body = Document::from_struct(bytes).to_json();
        let body = body.map_err(|error| format!("{composite}: resource {resource_key}: {error}"))?;
        // A body without a kind marks something an earlier pass composed and this one only reports on.
        if body.get("kind").is_none() {
            kept.extend(known.cloned());
            continue;
        }
        if let Some(key) = known.filter(|key| world.was_observed_as(key, &body)) {
            world.remember_desired(key, bytes);
            world.declare_ready(key, *ready == Ready::True);
            kept.insert(key.clone());
            continue;
        }
        let owner = Owner { composite: composite.clone(), resource_key: resource_key.clone() };
        let key = world.apply(complete(world, body, &owner, known), Some(owner));
        world.remember_desired(&key, bytes);
        world.declare_ready(&key, *ready == Ready::True);
        kept.insert(key);
    }
    for key in existing.values().filter(|key| !kept.contains(key)) {
        world.remove(key);
    }
    Ok(match answer.ready {
        Ready::True => true,
        Ready::False => false,
        Ready::Unspecified => all_ready,
    })
}

/// Adds the metadata Crossplane gives a composed resource, and what providers and users wrote there.
fn complete(world: &World, mut body: Value, owner: &Owner, existing: Option<&ObjectKey>) -> Value {
    let metadata = body["metadata"].as_object().cloned().unwrap_or_default();
    let mut complete = Map::new();
    let name = match (metadata.get("name"), existing) {
        (Some(name), _) => name.clone(),
        (None, Some(key)) => json!(key.name),
        (None, None) => json!(composed_name(&owner.composite, &owner.resource_key)),
    };
    complete.insert("name".to_owned(), name);
    if !owner.composite.namespace.is_empty() {
        complete.insert("namespace".to_owned(), json!(owner.composite.namespace));
    }
    complete.extend(metadata);
    let composite = world.get(&owner.composite);
    let outermost = composite.and_then(|object| object.body["metadata"]["labels"][COMPOSITE_LABEL].as_str());
    complete.entry("labels").or_insert_with(|| json!({}))[COMPOSITE_LABEL] =
        json!(outermost.unwrap_or(&owner.composite.name));
    let old =
        existing.and_then(|key| world.get(key)).map(|object| object.body["metadata"]["annotations"].clone());
    let annotations = complete.entry("annotations").or_insert_with(|| json!({}));
    if let (Some(Value::Object(old)), Some(annotations)) = (old, annotations.as_object_mut()) {
        for (key, value) in old {
            annotations.entry(key).or_insert(value);
        }
    }
    annotations[RESOURCE_NAME_ANNOTATION] = json!(owner.resource_key);
    body["metadata"] = Value::Object(complete);
    body
}

fn failed_status(composite: &StoredObject, text: &str) -> Value {
    let mut status = composite.body.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut conditions = conditions_of(&status);
    set(&mut conditions, "Synced", "False", "ReconcileError", Some(text));
    status["conditions"] = Value::Array(conditions);
    status
}

fn status(composite: &StoredObject, answer: &Answer, ready: bool) -> Value {
    let old = composite.body.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut conditions = conditions_of(&old);
    set(&mut conditions, "Synced", "True", "ReconcileSuccess", None);
    match ready {
        true => set(&mut conditions, "Ready", "True", "Available", None),
        false => set(&mut conditions, "Ready", "False", "Creating", None),
    }
    for condition in &answer.reconciled.conditions {
        let status = match condition.status {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        };
        set(
            &mut conditions,
            &condition.condition_type,
            status,
            &condition.reason,
            condition.message.as_deref(),
        );
    }
    let mut status = answer.status.clone().unwrap_or(old);
    status["conditions"] = Value::Array(conditions);
    status
}

fn conditions_of(status: &Value) -> Vec<Value> {
    status["conditions"].as_array().cloned().unwrap_or_default()
}

/// Sets a condition in place, or appends it.
fn set(conditions: &mut Vec<Value>, condition_type: &str, status: &str, reason: &str, message: Option<&str>) {
    let mut condition = json!({"type": condition_type, "status": status, "reason": reason});
    if let Some(message) = message {
        condition["message"] = json!(message);
    }
    match conditions.iter_mut().find(|known| known["type"] == condition_type) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}
