//! The fields of metadata and their JSON types.

use modelplane_cel::timestamp::Timestamp;
use serde_json::{Map, Value};

use crate::schema::path::{FieldPath, Place};

/// The type of a field, with the name that Go gives it.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Integer,
    Flag,
    Time,
    Texts,
    TextMap,
    Any,
    List(&'static str, &'static [(&'static str, Shape)]),
}

const FIELDS: [(&str, Shape); 15] = [
    ("name", Shape::Text),
    ("generateName", Shape::Text),
    ("namespace", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
    ("resourceVersion", Shape::Text),
    ("generation", Shape::Integer),
    ("creationTimestamp", Shape::Time),
    ("deletionTimestamp", Shape::Time),
    ("deletionGracePeriodSeconds", Shape::Integer),
    ("labels", Shape::TextMap),
    ("annotations", Shape::TextMap),
    ("ownerReferences", Shape::List("[]v1.OwnerReference", &OWNER_FIELDS)),
    ("finalizers", Shape::Texts),
    ("managedFields", Shape::List("[]v1.ManagedFieldsEntry", &MANAGED_FIELDS)),
];

const OWNER_FIELDS: [(&str, Shape); 6] = [
    ("apiVersion", Shape::Text),
    ("kind", Shape::Text),
    ("name", Shape::Text),
    ("uid", Shape::Text),
    ("controller", Shape::Flag),
    ("blockOwnerDeletion", Shape::Flag),
];

const MANAGED_FIELDS: [(&str, Shape); 7] = [
    ("manager", Shape::Text),
    ("operation", Shape::Text),
    ("apiVersion", Shape::Text),
    ("time", Shape::Time),
    ("fieldsType", Shape::Text),
    ("fieldsV1", Shape::Any),
    ("subresource", Shape::Text),
];

/// Checks the JSON types of metadata; the error is the one that an API server has for undecodable bodies.
pub fn check_types(metadata: &Value) -> Result<(), String> {
    match metadata {
        Value::Null => Ok(()),
        Value::Object(fields) => check_fields(fields, &FIELDS, "ObjectMeta"),
        other => Err(format!("json: cannot unmarshal {} into Go value of type v1.ObjectMeta", name(other))),
    }
}

fn check_fields(fields: &Map<String, Value>, shapes: &[(&str, Shape)], path: &str) -> Result<(), String> {
    for (field, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        if let Some((_, shape)) = shapes.iter().find(|(known, _)| known == field) {
            check_value(value, *shape, &format!("{path}.{field}"))?;
        }
    }
    Ok(())
}

fn check_value(value: &Value, shape: Shape, path: &str) -> Result<(), String> {
    let mismatch = |value: &Value, expected: &str| {
        Err(format!("json: cannot unmarshal {} into Go struct field {path} of type {expected}", name(value)))
    };
    match (shape, value) {
        (Shape::Any, _) | (Shape::Text, Value::String(_)) | (Shape::Flag, Value::Bool(_)) => Ok(()),
        (Shape::Integer, Value::Number(number)) if number.is_i64() => Ok(()),
        (Shape::Integer, Value::Number(number)) => {
            Err(format!("json: cannot unmarshal number {number} into Go struct field {path} of type int64"))
        }
        (Shape::Time, Value::String(text)) => {
            Timestamp::parse(text).map(|_| ()).map_err(|error| format!("parsing time {text:?}: {error}"))
        }
        (Shape::Texts, Value::Array(items)) => {
            match items.iter().find(|item| !item.is_string() && !item.is_null()) {
                Some(item) => mismatch(item, "string"),
                None => Ok(()),
            }
        }
        (Shape::TextMap, Value::Object(entries)) => {
            match entries.values().find(|value| !value.is_string() && !value.is_null()) {
                Some(value) => mismatch(value, "string"),
                None => Ok(()),
            }
        }
        (Shape::List(expected, shapes), Value::Array(items)) => {
            for item in items.iter().filter(|item| !item.is_null()) {
                match item {
                    Value::Object(fields) => check_fields(fields, shapes, path)?,
                    other => return mismatch(other, expected.trim_start_matches("[]")),
                }
            }
            Ok(())
        }
        (shape, value) => mismatch(value, shape.go_name()),
    }
}

impl Shape {
    fn go_name(self) -> &'static str {
        match self {
            Shape::Text | Shape::Any => "string",
            Shape::Integer => "int64",
            Shape::Flag => "bool",
            Shape::Time => "v1.Time",
            Shape::Texts => "[]string",
            Shape::TextMap => "map[string]string",
            Shape::List(name, _) => name,
        }
    }
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Drops the unknown, empty and null fields of the metadata in the object at `place`, reporting the unknown ones.
pub(crate) fn drop_unknown(metadata: &mut Value, place: &Place<'_>, dropped: &mut Vec<FieldPath>) {
    let place = place.field("metadata");
    if let Value::Object(fields) = metadata {
        drop_fields(fields, &FIELDS, &place, dropped);
    }
}

fn drop_fields(
    fields: &mut Map<String, Value>,
    shapes: &[(&str, Shape)],
    place: &Place<'_>,
    dropped: &mut Vec<FieldPath>,
) {
    fields.retain(|field, value| {
        let place = place.field(field);
        let Some((_, shape)) = shapes.iter().find(|(known, _)| known == field) else {
            dropped.push(FieldPath(place.dotted()));
            return false;
        };
        if let (Shape::List(_, shapes), Value::Array(items)) = (shape, &mut *value) {
            for (index, item) in items.iter_mut().enumerate() {
                if let Value::Object(fields) = item {
                    // The fields of owners are written even if empty.
                    drop_unknown_fields(fields, shapes, &place.item(index), dropped);
                }
            }
        }
        !is_empty(value)
    });
}

fn drop_unknown_fields(
    fields: &mut Map<String, Value>,
    shapes: &[(&str, Shape)],
    place: &Place<'_>,
    dropped: &mut Vec<FieldPath>,
) {
    fields.retain(|field, value| {
        let known = shapes.iter().any(|(known, _)| known == field);
        if !known {
            dropped.push(FieldPath(place.field(field).dotted()));
        }
        known && !value.is_null()
    });
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
