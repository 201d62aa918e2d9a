//! The objects of a simulation.

use std::collections::BTreeMap;

use serde_json::Value;

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
    /// The same as Struct wire bytes, which is what compositions read.
    wire: Vec<u8>,
}

/// All objects, ordered by key.
#[derive(Debug, Clone, Default)]
pub struct World {
    objects: BTreeMap<ObjectKey, StoredObject>,
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
        Self { key: ObjectKey::of(&body), owner, declared_ready: false, body, wire }
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
        compose::composition(self.body["apiVersion"].as_str().unwrap_or_default(), &self.key.kind).is_some()
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
        let object = StoredObject { declared_ready, ..StoredObject::new(body, owner) };
        self.objects.insert(key.clone(), object);
        key
    }

    /// Replaces an object's status.
    pub fn set_status(&mut self, key: &ObjectKey, status: Value) {
        let Some(object) = self.objects.get_mut(key) else { return };
        if object.body.get("status") == Some(&status) {
            return;
        }
        if let Value::Object(fields) = &mut object.body {
            fields.insert("status".to_owned(), status);
        }
        object.wire = encode(&object.body).unwrap_or_default();
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: &ObjectKey, name: &str, value: &str) {
        let Some(object) = self.objects.get_mut(key) else { return };
        if object.body["metadata"]["annotations"][name] == value {
            return;
        }
        object.body["metadata"]["annotations"][name] = value.into();
        object.wire = encode(&object.body).unwrap_or_default();
    }

    /// Notes whether an object's composition declares it ready.
    pub fn declare_ready(&mut self, key: &ObjectKey, ready: bool) {
        if let Some(object) = self.objects.get_mut(key) {
            object.declared_ready = ready;
        }
    }

    /// Takes an object away.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
    }

    /// The object of that key.
    pub fn get(&self, key: &ObjectKey) -> Option<&StoredObject> {
        self.objects.get(key)
    }

    /// All objects, by key.
    pub fn iter(&self) -> impl Iterator<Item = &StoredObject> {
        self.objects.values()
    }

    /// What `composite` has composed.
    pub fn composed_by(&self, composite: &ObjectKey) -> impl Iterator<Item = (&Owner, &StoredObject)> {
        let owned =
            self.objects.values().filter_map(|object| object.owner.as_ref().map(|owner| (owner, object)));
        owned.filter(move |(owner, _)| owner.composite == *composite)
    }

    /// The composites, in order.
    pub fn composites(&self) -> Vec<ObjectKey> {
        self.objects
            .values()
            .filter(|object| object.is_composite())
            .map(|object| object.key.clone())
            .collect()
    }
}
