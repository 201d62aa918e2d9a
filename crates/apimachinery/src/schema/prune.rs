//! Dropping the fields that a schema does not have.

use serde_json::Value;

use super::metadata;
use super::node::{Additional, Schema};
use super::path::{FieldPath, Place};

/// Fields that every resource has.
const RESOURCE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// Values nest at most this deep where no schema bounds the walk; what is deeper is dropped.
const MAXIMUM_DEPTH: usize = 256;

/// Drops what the schema does not have and returns the paths, sorted.
pub(crate) fn prune(schema: &Schema, value: &mut Value, is_resource: bool) -> Vec<FieldPath> {
    let mut walk = Walk { dropped: Vec::new() };
    walk.level(schema, value, &Place::ROOT, is_resource);
    walk.dropped.sort_unstable();
    walk.dropped
}

struct Walk {
    dropped: Vec<FieldPath>,
}

impl Walk {
    fn level(&mut self, schema: &Schema, value: &mut Value, place: &Place<'_>, is_resource: bool) {
        let preserves = schema.preserve_unknown_fields;
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                if is_resource && RESOURCE_FIELDS.contains(&name.as_str()) {
                    if name == "metadata" {
                        metadata::drop_unknown(value, place, &mut self.dropped);
                    }
                    return true;
                }
                let place = place.field(name);
                match (schema.properties.get(name), &schema.additional_properties) {
                    (Some(property), _) => self.level(property, value, &place, property.embedded_resource),
                    (None, Additional::Schema(values)) => {
                        self.level(values, value, &place, values.embedded_resource);
                    }
                    (None, Additional::Any) => self.nothing_known(value, &place, 0),
                    (None, Additional::Forbidden) if schema.checks.closed => {
                        self.nothing_known(value, &place, 0);
                    }
                    (None, Additional::Forbidden) if preserves => {}
                    (None, Additional::Forbidden) => {
                        self.dropped.push(FieldPath(place.dotted()));
                        return false;
                    }
                }
                true
            }),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let place = place.item(index);
                    match &schema.items {
                        Some(inner) if preserves && !inner.preserve_unknown_fields => {
                            self.inherited(inner, item, &place);
                        }
                        Some(inner) => self.level(inner, item, &place, inner.embedded_resource),
                        None if preserves => {}
                        None => self.nothing_known(item, &place, 0),
                    }
                }
            }
            _ => {}
        }
    }

    /// The items of a list that preserves unknown fields do so too.
    fn inherited(&mut self, schema: &Schema, value: &mut Value, place: &Place<'_>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if schema.embedded_resource && RESOURCE_FIELDS.contains(&name.as_str()) {
                        if name == "metadata" {
                            metadata::drop_unknown(value, place, &mut self.dropped);
                        }
                        continue;
                    }
                    let place = place.field(name);
                    if let Some(inner) = schema.field(name) {
                        self.level(inner, value, &place, inner.embedded_resource);
                    } else if matches!(schema.additional_properties, Additional::Any) {
                        self.nothing_known(value, &place, 0);
                    }
                }
            }
            Value::Array(items) => {
                let Some(inner) = &schema.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.inherited(inner, item, &place.item(index));
                }
            }
            _ => {}
        }
    }

    /// Drops every field of a value without schema; lists and scalars stay.
    fn nothing_known(&mut self, value: &mut Value, place: &Place<'_>, depth: usize) {
        match value {
            Value::Object(fields) => {
                for (name, _) in std::mem::take(fields) {
                    self.dropped.push(FieldPath(place.field(&name).dotted()));
                }
            }
            Value::Array(items) if depth < MAXIMUM_DEPTH => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.nothing_known(item, &place.item(index), depth + 1);
                }
            }
            Value::Array(items) => items.clear(),
            _ => {}
        }
    }
}
