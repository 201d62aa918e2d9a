//! `meta.k8s.io` PartialObjectMetadata: objects reduced to their metadata.

use serde_json::{Value, json};

/// One object.
pub(crate) fn object(mut object: Value, version: &str) -> Value {
    let metadata = object.get_mut("metadata").map(Value::take).unwrap_or_default();
    json!({"kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata})
}

/// A list.
pub(crate) fn list(objects: Vec<Value>, version: &str) -> Value {
    let items: Vec<Value> = objects.into_iter().map(|item| object(item, version)).collect();
    json!({
        "kind": "PartialObjectMetadataList", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": {},
        "items": items,
    })
}
