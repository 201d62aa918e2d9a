//! Reads the schemas of kinds from their definitions, following references.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Map, Value, json};

use super::definitions;
use crate::schema::{Additional, Kind, Schema};

/// References are followed this deep: deeper than any but the schema of schemas goes.
const MAX_DEPTH: usize = 40;

/// Base64 with padding, or nothing.
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

/// Definitions that are not what their OpenAPI schema says.
const SPECIAL: &[(&str, &str)] = &[
    // Text or number; both print as they were given.
    ("api.resource.Quantity", r#"{"x-kubernetes-int-or-string":true}"#),
    ("util.intstr.IntOrString", r#"{"x-kubernetes-int-or-string":true}"#),
    (
        "pkg.runtime.RawExtension",
        r#"{"type":"object","x-kubernetes-map-type":"atomic","x-kubernetes-preserve-unknown-fields":true}"#,
    ),
    ("meta.v1.FieldsV1", r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#),
];

/// A value that is not known further.
fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

pub(super) fn get(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    static READ: OnceLock<Mutex<HashMap<&'static str, Arc<Schema>>>> = OnceLock::new();
    let name = definitions::name_of(group, version, kind)?;
    let mut read = READ.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = read.get(name) {
        return Some(Arc::clone(schema));
    }
    let mut path = vec![name.to_owned()];
    let schema = Arc::new(Schema::trusted(&resolved(definitions::get(name)?, &mut path)));
    read.insert(name, Arc::clone(&schema));
    Some(schema)
}

/// A schema with what it refers to in place of references; `path` are the definitions around it.
fn resolved(schema: Value, path: &mut Vec<String>) -> Value {
    let Value::Object(mut object) = schema else { return schema };
    let mut out = match object.remove("$ref") {
        Some(Value::String(name)) => definition(name, path),
        _ => Map::new(),
    };
    for (keyword, value) in object {
        let value = match keyword.as_str() {
            "properties" => match value {
                Value::Object(mut fields) => {
                    fields.values_mut().for_each(|field| *field = resolved(field.take(), path));
                    Value::Object(fields)
                }
                other => other,
            },
            "items" | "additionalProperties" => resolved(value, path),
            // Go's decoder takes an empty text too, unlike the format of custom resources.
            "format" if value == "byte" => {
                out.insert("pattern".to_owned(), BASE64.into());
                continue;
            }
            _ => value,
        };
        out.insert(keyword, value);
    }
    Value::Object(out)
}

fn definition(name: String, path: &mut Vec<String>) -> Map<String, Value> {
    let special = SPECIAL.iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, text)| *text);
    let special = special.and_then(|text| serde_json::from_str(text).ok());
    let known = || {
        let is_recursive = path.contains(&name) || path.len() > MAX_DEPTH;
        let definition = definitions::get(&name).filter(|_| !is_recursive)?;
        if definition.as_object().is_none_or(Map::is_empty) {
            return None;
        }
        path.push(name);
        let found = resolved(definition, path);
        path.pop();
        Some(found)
    };
    match special.or_else(known).unwrap_or_else(anything) {
        Value::Object(found) => found,
        _ => Map::new(),
    }
}

/// A Go struct of this schema in which nothing is set, as JSON.
pub(super) fn zero(schema: &Schema) -> Value {
    let mut fields = Map::new();
    for (name, field) in schema.properties.iter() {
        let value = match field.default.as_deref() {
            Some(Value::Object(_)) => zero(field),
            Some(Value::String(_)) => json!(""),
            Some(Value::Bool(_)) => json!(false),
            Some(Value::Number(_)) => json!(0),
            None if schema.checks.required.iter().any(|required| required == name) => Value::Null,
            _ => continue,
        };
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

/// See [`super::BuiltinKind::normalize`].
pub(super) fn normalize(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let Some(field) = schema.field(name) else { return !value.is_null() };
                if value.is_null()
                    && field.kind == Some(Kind::String)
                    && !schema.properties.contains_key(name)
                {
                    // A Go map of texts has no nulls.
                    *value = json!("");
                }
                normalize(field, value);
                !(value.is_null() || is_empty_collection(field, value))
                    || schema.checks.required.contains(name)
            });
            for (name, field) in schema.properties.iter() {
                if let (Some(Value::Object(_)), false) = (field.default.as_deref(), fields.contains_key(name))
                {
                    let mut value = json!({});
                    normalize(field, &mut value);
                    fields.insert(name.to_owned(), value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| normalize(schema, item));
            }
        }
        _ => {}
    }
}

/// Lists and maps are left out if they are empty, structs are not.
fn is_empty_collection(schema: &Schema, value: &Value) -> bool {
    let is_map = matches!(schema.additional_properties, Additional::Schema(_));
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => schema.kind == Some(Kind::Object) && is_map && fields.is_empty(),
        _ => false,
    }
}
