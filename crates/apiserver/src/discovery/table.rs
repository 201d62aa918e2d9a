//! `meta.k8s.io` Table: what `kubectl get` prints.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::human;
use crate::object::json_path::text_of;
use crate::registry::resource::{Column, Columns};
use crate::verbs::Context;

/// A table of objects of the requested version.
pub(crate) fn table(context: &Context, version: &str, objects: &[Value]) -> Value {
    let columns = &context.version().columns;
    let definitions: Vec<Value> = match columns {
        Columns::Paths(columns) => std::iter::once(json!({
            "name": "Name", "type": "string", "format": "name", "priority": 0,
            "description": "Name must be unique within a namespace.",
        }))
        .chain(columns.iter().map(|column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        }))
        .collect(),
        Columns::BuiltIn(kind) => kind
            .columns
            .iter()
            .map(|column| {
                let format = if column.name == "Name" { "name" } else { "" };
                json!({
                    "name": column.name, "type": column.kind, "format": format, "description": "",
                    "priority": i32::from(column.wide),
                })
            })
            .collect(),
    };
    let now = Timestamp::now();
    let include = context.query.get("includeObject").unwrap_or("Metadata");
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells = match columns {
                Columns::Paths(columns) => std::iter::once(Value::from(crate::object::name(object)))
                    .chain(columns.iter().map(|column| cell(column, object, now)))
                    .collect(),
                Columns::BuiltIn(kind) => kind.cells(object, now.as_second()),
            };
            match include {
                "None" => json!({"cells": cells, "object": null}),
                "Object" => json!({"cells": cells, "object": object}),
                _ => json!({"cells": cells, "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": object.get("metadata"),
                }}),
            }
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": {},
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let found = column.path.find(object);
    let Some(first) = found.first().filter(|value| !value.is_null()) else { return Value::Null };
    match column.kind.as_str() {
        "integer" => first.as_i64().map_or(Value::Null, Value::from),
        "number" => first.as_f64().map_or(Value::Null, Value::from),
        "boolean" => first.as_bool().map_or(Value::Null, Value::from),
        "date" => Value::from(human::age(first.as_str().unwrap_or_default(), now)),
        _ if found.len() == 1 => Value::from(text_of(first)),
        _ => Value::from(found.iter().map(|value| text_of(value)).collect::<Vec<_>>().join(",")),
    }
}
