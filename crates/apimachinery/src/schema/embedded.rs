//! Resources inside of resources (`x-kubernetes-embedded-resource`): type and metadata.

use serde_json::{Map, Value};

use super::cause::Cause;
use super::metadata::{self, NameRule};
use super::node::{Additional, Schema};
use super::path::Place;

/// What is wrong with the embedded resources of a value; `base` is its path.
///
/// `is_resource` if the value itself is to be checked like an embedded one.
pub(crate) fn check(schema: &Schema, value: &Value, base: &str, is_resource: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    level(schema, value, &Place::Start(base), is_resource, &mut causes);
    causes
}

fn level(schema: &Schema, value: &Value, place: &Place<'_>, is_resource: bool, causes: &mut Vec<Cause>) {
    if !schema.holds.embedded && !is_resource {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource || is_resource {
                resource(fields, place, causes);
            }
            for (name, value) in fields {
                match (schema.properties.get(name), &schema.additional_properties) {
                    (Some(property), _) => level(property, value, &place.field(name), false, causes),
                    (None, Additional::Schema(values)) => {
                        level(values, value, &place.key(name), false, causes);
                    }
                    (None, _) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                level(inner, item, &place.item(index), false, causes);
            }
        }
        _ => {}
    }
}

fn resource(fields: &Map<String, Value>, place: &Place<'_>, causes: &mut Vec<Cause>) {
    for name in ["apiVersion", "kind"] {
        let path = place.field(name).bracketed();
        match fields.get(name) {
            None => causes.push(Cause::required(path, "")),
            Some(Value::String(text)) if text.is_empty() => {
                causes.push(Cause::invalid_text(path, text, "must not be empty"));
            }
            Some(Value::String(text)) if name == "kind" => {
                let errors = metadata::names::dns1035_label(&text.to_lowercase());
                if !errors.is_empty() {
                    let errors = errors.join(",");
                    let detail = format!("may have mixed case, but should otherwise match: {errors}");
                    causes.push(Cause::invalid_text(path, text, &detail));
                }
            }
            Some(Value::String(text)) => {
                if text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    causes.push(Cause::invalid_text(path, text, &detail));
                }
            }
            Some(other) => causes.push(Cause::invalid(path, other, "must be a string")),
        }
    }
    let Some(found) = fields.get("metadata") else { return };
    let path = place.field("metadata").bracketed();
    if let Err(detail) = metadata::check_types(found) {
        causes.push(Cause::invalid(path, found, &detail));
        return;
    }
    let has_namespace = !metadata::text(found, "namespace").is_empty();
    causes.extend(metadata::check_embedded(found, NameRule::PathSegment, has_namespace, &path));
}
