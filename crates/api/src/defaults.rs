//! Fills in the defaults of a schema, as a Kubernetes API server does when it admits an object.

use serde_json::Value;

use crate::kind;
use crate::schema;

/// Fills in the defaults of the document's kind; a document of an unknown kind stays as it is. Either shape of
/// the API is filled in as it stands.
pub fn apply_defaults(document: &mut Value) {
    if let Ok(info) = kind::of(document) {
        fill(schema::published(info), document);
    }
}

/// Fills in the defaults of a schema, parents before children. A `null` for a field that has a default is
/// replaced; one for any other field stays, and counts as absent everywhere in this crate.
pub(crate) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(properties) = schema["properties"].as_object() {
                for (name, child) in properties {
                    let missing = fields.get(name).is_none_or(Value::is_null);
                    if let Some(default) = child.get("default").filter(|_| missing) {
                        fields.insert(name.clone(), default.clone());
                    }
                    if let Some(field) = fields.get_mut(name) {
                        fill(child, field);
                    }
                }
            }
            let values = &schema["additionalProperties"];
            if values.is_object() {
                fields.values_mut().for_each(|field| fill(values, field));
            }
        }
        Value::Array(items) => {
            let item_schema = &schema["items"];
            items.iter_mut().for_each(|item| fill(item_schema, item));
        }
        _ => {}
    }
}
