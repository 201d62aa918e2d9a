//! Objects as the engine keeps them: identity, revision, and the rest as Struct wire bytes.
//!
//! Compositions read these bytes as they are. Managed fields and the revision are left out of them, so
//! equal bytes mean that nothing has changed that anybody could act on.

use modelplane_core::document::{Document, encode};
use modelplane_core::simulate::ObjectKey;
use serde::Deserialize;
use serde_json::Value;

/// An object that was read from an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Identity.
    pub key: ObjectKey,
    /// Unique id of this incarnation.
    pub uid: String,
    /// Revision, comparable within one API server (KEP-5504).
    pub version: u64,
    wire: Vec<u8>,
}

/// The owner that controls an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Controller<'a> {
    /// `group/version`, or `v1`.
    #[serde(default)]
    pub api_version: &'a str,
    /// Kind.
    #[serde(default)]
    pub kind: &'a str,
    /// Name.
    #[serde(default)]
    pub name: &'a str,
    /// Unique id.
    #[serde(default)]
    pub uid: &'a str,
    #[serde(default)]
    controller: bool,
}

impl Stored {
    /// An object as the API server sent it; `None` if it has no name or cannot be encoded.
    pub fn from_value(mut object: Value) -> Option<Self> {
        let key = ObjectKey::of(&object);
        if key.name.is_empty() {
            return None;
        }
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        metadata.remove("managedFields");
        let version = metadata.remove("resourceVersion");
        let version = version.as_ref().and_then(Value::as_str).and_then(|text| text.parse().ok());
        let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        let wire = encode(&object).ok()?;
        Some(Self { key, uid, version: version.unwrap_or_default(), wire })
    }

    /// The object.
    pub fn document(&self) -> Document<'_> {
        Document::from_struct(&self.wire)
    }

    /// The object as a tree, with its revision.
    pub fn value(&self) -> Value {
        let mut value = self.document().to_json().unwrap_or_default();
        value["metadata"]["resourceVersion"] = self.version.to_string().into();
        value
    }

    /// Whether nothing is different but the revision.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.wire == other.wire
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.document().text_at(&["apiVersion"]).unwrap_or_default()
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.document().text_at(&["metadata", "labels", key])
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.document().text_at(&["metadata", "annotations", key])
    }

    /// Text under a path of keys.
    pub fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.document().text_at(path)
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.document().text_at(&["metadata", "deletionTimestamp"]).is_some()
    }

    /// Its finalizers.
    pub fn finalizers(&self) -> Vec<&str> {
        self.document().decode_at(&["metadata", "finalizers"]).ok().flatten().unwrap_or_default()
    }

    /// The generation of its spec.
    pub fn generation(&self) -> Option<i64> {
        self.document().decode_at(&["metadata", "generation"]).ok().flatten()
    }

    /// Its owner that controls it, if it has one.
    pub fn controller(&self) -> Option<Controller<'_>> {
        let owners: Vec<Controller<'_>> =
            self.document().decode_at(&["metadata", "ownerReferences"]).ok().flatten()?;
        owners.into_iter().find(|owner| owner.controller)
    }

    /// Whether an owner has that uid.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        let owners: Option<Vec<Controller<'_>>> =
            self.document().decode_at(&["metadata", "ownerReferences"]).ok().flatten();
        owners.unwrap_or_default().iter().any(|owner| owner.uid == uid)
    }

    /// The status of a condition.
    pub fn condition(&self, condition_type: &str) -> Option<&str> {
        let conditions: Vec<Document<'_>> =
            self.document().decode_at(&["status", "conditions"]).ok().flatten()?;
        let found = conditions.into_iter().find(|c| c.text_at(&["type"]) == Some(condition_type))?;
        found.text_at(&["status"])
    }
}

/// The group of an `apiVersion`.
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// A key from its parts.
pub fn key(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(version: &str, manager: &str) -> Stored {
        Stored::from_value(json!({
            "apiVersion": "g.io/v1", "kind": "K",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "resourceVersion": version,
                "managedFields": [{"manager": manager}],
                "finalizers": ["f"],
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "A", "name": "other", "uid": "1"},
                    {"apiVersion": "g.io/v1", "kind": "B", "name": "owner", "uid": "2", "controller": true},
                ],
            },
        }))
        .expect("an object")
    }

    #[test]
    fn revisions_and_managers_make_no_difference() {
        let (one, two) = (object("1", "x"), object("2", "y"));
        assert!(one.is_same_as(&two));
        assert_eq!((one.version, two.version), (1, 2));
        assert_eq!(two.value()["metadata"]["resourceVersion"], "2");
    }

    #[test]
    fn the_controller_is_the_owner_that_controls() {
        let object = object("1", "x");
        assert_eq!(object.controller().map(|owner| (owner.kind, owner.uid)), Some(("B", "2")));
        assert!(object.is_owned_by("1") && !object.is_owned_by("3"));
        assert_eq!(object.finalizers(), ["f"]);
        assert!(!object.is_deleting());
    }

    #[test]
    fn what_has_no_name_is_no_object() {
        assert_eq!(Stored::from_value(json!({"kind": "List", "items": []})), None);
        assert_eq!(Stored::from_value(json!({"metadata": {"name": ""}})), None);
    }
}
