//! The objects of a simulation.

use std::collections::BTreeMap;

use serde_json::Value;

use super::observed;
use crate::compose;
use crate::document::{Document, encode};

/// What identifies an object; the version of its API is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Who composed an object, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The composite.
    pub composite: ObjectKey,
    /// Key of the resource within it.
    pub resource_key: String,
}

/// An object and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredObject {
    /// Identity.
    pub key: ObjectKey,
    /// Composer; none for objects from manifests.
    pub owner: Option<Owner>,
    /// Readiness as the composite's composition declared it.
    pub declared_ready: bool,
    /// The object.
    pub body: Value,
    /// The object as its composition last wanted it, as Struct wire bytes; empty if none did.
    desired: Vec<u8>,
    composite: bool,
    /// Whether an API server reported it.
    observed: bool,
    /// Revision of the world in which it last changed.
    pub(super) revision: u64,
    /// Revision for which its provider had nothing more to do.
    pub(super) settled_at: u64,
    /// The same as Struct wire bytes, which is what compositions read.
    wire: Vec<u8>,
}

/// All objects, ordered by key, and what changed since the journal was last taken.
#[derive(Debug, Clone, Default)]
pub struct World {
    objects: BTreeMap<ObjectKey, StoredObject>,
    /// What each composite composed, by resource key.
    composed: BTreeMap<ObjectKey, BTreeMap<String, ObjectKey>>,
    /// Counts changes.
    revision: u64,
    /// Revision in which an object of the group and kind last changed, appeared or went.
    kinds: BTreeMap<(String, String), u64>,
    journal: Journal,
}

/// Objects touched since the journal was last taken, as they were then; `None` if they did not exist.
pub(super) type Journal = BTreeMap<ObjectKey, Option<Past>>;

/// An object as it was.
#[derive(Debug, Clone)]
pub(super) struct Past {
    pub(super) body: Value,
    pub(super) ready: bool,
}

impl ObjectKey {
    /// The key of an object; missing parts are empty.
    pub fn of(body: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &body["metadata"];
        Self {
            group: group(body["apiVersion"].as_str().unwrap_or_default()).to_owned(),
            kind: text(&body["kind"]),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{}/{}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// The group of an `apiVersion`.
pub(super) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl StoredObject {
    fn new(body: Value, owner: Option<Owner>) -> Self {
        let wire = encode(&body).unwrap_or_default();
        let key = ObjectKey::of(&body);
        let api_version = body["apiVersion"].as_str().unwrap_or_default();
        let composite = compose::composition(api_version, &key.kind).is_some();
        Self {
            key,
            owner,
            declared_ready: false,
            body,
            desired: Vec::new(),
            composite,
            observed: false,
            revision: 0,
            settled_at: 0,
            wire,
        }
    }

    /// The object as compositions read it.
    pub fn document(&self) -> Document<'_> {
        Document::from_struct(&self.wire)
    }

    /// The status of a condition, if it has it.
    pub fn condition(&self, condition_type: &str) -> Option<&str> {
        let conditions = self.body["status"]["conditions"].as_array()?;
        let found = conditions.iter().find(|condition| condition["type"] == condition_type)?;
        found["status"].as_str()
    }

    /// Whether the object is ready: its `Ready` condition, or what its composition declared of it.
    pub fn is_ready(&self) -> bool {
        match self.condition("Ready") {
            Some(status) => status == "True",
            None => self.declared_ready,
        }
    }

    /// Whether some composition composes objects of this kind.
    pub fn is_composite(&self) -> bool {
        self.composite
    }
}

impl World {
    /// Puts an object in place of what has its key; its status is kept unless it brings one.
    pub fn apply(&mut self, mut body: Value, owner: Option<Owner>) -> ObjectKey {
        let key = ObjectKey::of(&body);
        let old = self.objects.get(&key);
        if let (Some(old), Value::Object(fields)) = (old, &mut body)
            && !fields.contains_key("status")
            && let Some(status) = old.body.get("status")
        {
            fields.insert("status".to_owned(), status.clone());
        }
        if let Some(old) = old
            && old.body == body
            && old.owner == owner
        {
            return key;
        }
        let declared_ready = old.is_some_and(|old| old.declared_ready);
        let observed = old.is_some_and(|old| old.observed);
        self.note(&key);
        self.disown(&key);
        if let Some(owner) = &owner {
            let siblings = self.composed.entry(owner.composite.clone()).or_default();
            siblings.insert(owner.resource_key.clone(), key.clone());
        }
        let revision = self.revision;
        let object = StoredObject { declared_ready, observed, revision, ..StoredObject::new(body, owner) };
        self.objects.insert(key.clone(), object);
        key
    }

    /// Puts in an object as an API server reported it, with nothing left to do for its provider.
    pub fn observe(&mut self, mut body: Value) {
        observed::strip(&mut body);
        let owner = observed::owner_of(&body);
        let key = self.apply(body, owner);
        if let Some(object) = self.objects.get_mut(&key) {
            object.observed = true;
            object.settled_at = object.revision;
        }
    }

    /// Applies a manifest: over an object that an API server reported, as it would.
    pub fn apply_manifest(&mut self, manifest: Value) -> ObjectKey {
        let key = ObjectKey::of(&manifest);
        match self.objects.get(&key).filter(|object| object.observed) {
            Some(there) => {
                let applied = observed::apply(&there.body, &manifest);
                let owner = there.owner.clone();
                self.apply(applied, owner)
            }
            None => self.apply(manifest, None),
        }
    }

    /// Replaces an object's status.
    pub fn set_status(&mut self, key: &ObjectKey, status: Value) {
        if self.objects.get(key).is_none_or(|object| object.body.get("status") == Some(&status)) {
            return;
        }
        self.edit(key, |body| {
            if let Value::Object(fields) = body {
                fields.insert("status".to_owned(), status);
            }
        });
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: &ObjectKey, name: &str, value: &str) {
        let known = |object: &StoredObject| object.body["metadata"]["annotations"][name] == value;
        if self.objects.get(key).is_none_or(known) {
            return;
        }
        self.edit(key, |body| body["metadata"]["annotations"][name] = value.into());
    }

    /// Notes whether an object's composition declares it ready.
    pub fn declare_ready(&mut self, key: &ObjectKey, ready: bool) {
        if self.objects.get(key).is_some_and(|object| object.declared_ready != ready) {
            self.note(key);
            if let Some(object) = self.objects.get_mut(key) {
                object.declared_ready = ready;
            }
        }
    }

    /// Takes an object away, and everything composed for it.
    pub fn remove(&mut self, key: &ObjectKey) {
        let mut going = vec![key.clone()];
        while let Some(key) = going.pop() {
            self.note(&key);
            self.disown(&key);
            self.objects.remove(&key);
            going.extend(self.composed.remove(&key).into_iter().flat_map(BTreeMap::into_values));
        }
    }

    /// The object of that key.
    pub fn get(&self, key: &ObjectKey) -> Option<&StoredObject> {
        self.objects.get(key)
    }

    /// All objects, by key.
    pub fn iter(&self) -> impl Iterator<Item = &StoredObject> {
        self.objects.values()
    }

    /// The objects of one group and kind, by key.
    pub fn of_kind<'w>(
        &'w self,
        group: &str,
        kind: &str,
    ) -> impl Iterator<Item = &'w StoredObject> + use<'w> {
        let first = ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: String::new(),
        };
        let wanted = (first.group.clone(), first.kind.clone());
        let rest = self.objects.range(first..).map(|(_, object)| object);
        rest.take_while(move |object| (&object.key.group, &object.key.kind) == (&wanted.0, &wanted.1))
    }

    /// What `composite` has composed, by resource key.
    pub fn composed_by(&self, composite: &ObjectKey) -> impl Iterator<Item = (&Owner, &StoredObject)> {
        let keys = self.composed.get(composite).into_iter().flat_map(BTreeMap::values);
        let objects = keys.filter_map(|key| self.objects.get(key));
        objects.filter_map(|object| Some((object.owner.as_ref()?, object)))
    }

    /// The composites, in order.
    pub fn composites(&self) -> Vec<ObjectKey> {
        self.objects
            .values()
            .filter(|object| object.is_composite())
            .map(|object| object.key.clone())
            .collect()
    }

    /// The number of changes so far.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Revision in which anything of the group and kind last changed.
    pub(super) fn kind_revision(&self, group: &str, kind: &str) -> u64 {
        self.kinds.get(&(group.to_owned(), kind.to_owned())).copied().unwrap_or_default()
    }

    /// Whether the object is there and was last wanted exactly like that.
    pub(super) fn is_as_desired(&self, key: &ObjectKey, bytes: &[u8]) -> bool {
        self.objects.get(key).is_some_and(|object| object.desired == bytes)
    }

    /// Whether an API server reported the object, and it has all that its composition wants.
    pub(super) fn was_observed_as(&self, key: &ObjectKey, desired: &Value) -> bool {
        let untouched = |object: &&StoredObject| object.observed && object.desired.is_empty();
        let object = self.objects.get(key).filter(untouched);
        object.is_some_and(|object| observed::covers(&object.body, desired))
    }

    /// Notes what the object's composition wants.
    pub(super) fn remember_desired(&mut self, key: &ObjectKey, bytes: &[u8]) {
        if let Some(object) = self.objects.get_mut(key) {
            object.desired = bytes.to_vec();
        }
    }

    /// Notes that a provider had nothing more to do for the object as it is.
    pub(super) fn settle(&mut self, key: &ObjectKey) {
        if let Some(object) = self.objects.get_mut(key) {
            object.settled_at = object.revision;
        }
    }

    /// Whether the object exists and already did when the journal was last taken.
    pub(super) fn is_known(&self, key: &ObjectKey) -> bool {
        self.objects.contains_key(key) && !matches!(self.journal.get(key), Some(None))
    }

    /// What was touched since this was last asked.
    pub(super) fn take_journal(&mut self) -> Journal {
        std::mem::take(&mut self.journal)
    }

    fn edit(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Value)) {
        self.note(key);
        let Some(object) = self.objects.get_mut(key) else { return };
        edit(&mut object.body);
        object.wire = encode(&object.body).unwrap_or_default();
        object.revision = self.revision;
    }

    /// Starts a new revision, in which the object of that key changes.
    fn note(&mut self, key: &ObjectKey) {
        self.revision += 1;
        self.kinds.insert((key.group.clone(), key.kind.clone()), self.revision);
        let objects = &self.objects;
        self.journal.entry(key.clone()).or_insert_with(|| {
            objects.get(key).map(|object| Past { body: object.body.clone(), ready: object.is_ready() })
        });
    }

    /// Takes an object out of the list of what its composer composed.
    fn disown(&mut self, key: &ObjectKey) {
        let Some(owner) = self.objects.get(key).and_then(|object| object.owner.clone()) else { return };
        if let Some(siblings) = self.composed.get_mut(&owner.composite)
            && siblings.get(&owner.resource_key) == Some(key)
        {
            siblings.remove(&owner.resource_key);
            // The composer now observes less, which may change its answer.
            let revision = self.revision;
            if let Some(composer) = self.objects.get_mut(&owner.composite) {
                composer.revision = revision;
            }
        }
    }
}
