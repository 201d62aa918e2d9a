//! The fields that Crossplane adds to every composite resource (spec api §0).

use serde_json::{Value, json};

use crate::kind::{KindInfo, Scope};

/// Adds the fields to the schema of a kind.
pub(super) fn add(info: &KindInfo, schema: &mut Value) {
    let object = json!({ "type": "object" });
    for (name, extra) in [("spec", spec_additions(info)), ("status", status_additions())] {
        let node = &mut schema["properties"][name];
        if node.is_null() {
            *node = object.clone();
        }
        if let Some(fields) = node.as_object_mut() {
            let properties = fields.entry("properties").or_insert_with(|| json!({}));
            if let (Some(properties), Value::Object(extra)) = (properties.as_object_mut(), extra) {
                properties.extend(extra);
            }
        }
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.insert("apiVersion".to_owned(), json!({ "type": "string" }));
        properties.insert("kind".to_owned(), json!({ "type": "string" }));
        properties.insert(
            "metadata".to_owned(),
            json!({ "type": "object", "properties": { "name": { "type": "string", "maxLength": 63 } } }),
        );
    }
}

/// What Crossplane adds to the spec of a composite resource.
fn spec_additions(info: &KindInfo) -> Value {
    let name_ref = json!({
        "type": "object",
        "required": ["name"],
        "properties": { "name": { "type": "string" } },
    });
    let selector = json!({
        "type": "object",
        "required": ["matchLabels"],
        "properties": {
            "matchLabels": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    });
    let mut reference = json!({
        "apiVersion": { "type": "string" },
        "kind": { "type": "string" },
        "name": { "type": "string" },
    });
    if info.scope == Scope::Cluster {
        reference["namespace"] = json!({ "type": "string" });
    }
    json!({
        "crossplane": {
            "type": "object",
            "description": "How the object is composed. Written by the composition engine.",
            "properties": {
                "compositionRef": name_ref,
                "compositionSelector": selector,
                "compositionRevisionRef": name_ref,
                "compositionRevisionSelector": selector,
                "compositionUpdatePolicy": { "type": "string", "enum": ["Automatic", "Manual"] },
                "resourceRefs": {
                    "type": "array",
                    "x-kubernetes-list-type": "atomic",
                    "items": {
                        "type": "object",
                        "required": ["apiVersion", "kind"],
                        "properties": reference,
                    },
                },
            },
        },
    })
}

/// What Crossplane adds to the status of a composite resource. Its conditions supersede the kind's own.
fn status_additions() -> Value {
    json!({
        "conditions": {
            "type": "array",
            "description": "Conditions of the object, one for each type.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status", "reason", "lastTransitionTime"],
                "properties": {
                    "type": { "type": "string" },
                    "status": { "type": "string" },
                    "reason": { "type": "string" },
                    "message": { "type": "string" },
                    "lastTransitionTime": { "type": "string", "format": "date-time" },
                    "observedGeneration": { "type": "integer", "format": "int64" },
                },
            },
        },
        "crossplane": {
            "type": "object",
            "description": "How the object is composed. Written by the composition engine.",
            "properties": {
                "connectionDetails": {
                    "type": "object",
                    "properties": { "lastPublishedTime": { "type": "string", "format": "date-time" } },
                },
            },
        },
    })
}
