//! Objects: how they are stored, which metadata the server owns, and reading parts of them.

pub(crate) mod encode;
pub(crate) mod json_path;
pub(crate) mod metadata;

use serde_json::{Map, Value};

/// `metadata`, if it is an object.
pub(crate) fn metadata(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

/// `metadata`, made if absent or no object.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let fields = object.as_object_mut().expect("made an object above");
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("made an object above")
}

/// A string of `metadata`; empty when absent.
pub(crate) fn metadata_text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).and_then(|metadata| metadata.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    metadata_text(object, "name")
}

/// Whether `metadata.deletionTimestamp` is set.
pub(crate) fn is_terminating(object: &Value) -> bool {
    metadata(object)
        .and_then(|metadata| metadata.get("deletionTimestamp"))
        .is_some_and(|value| !value.is_null())
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    metadata(object)
        .and_then(|metadata| metadata.get("finalizers"))
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// `metadata.generation`; 0 when absent.
pub(crate) fn generation(object: &Value) -> i64 {
    metadata(object)
        .and_then(|metadata| metadata.get("generation"))
        .and_then(Value::as_i64)
        .unwrap_or_default()
}
