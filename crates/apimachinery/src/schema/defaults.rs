//! Default values: filling them in, and checking those of a schema.

use serde_json::Value;

use super::cause::Cause;
use super::node::{Additional, Schema};
use super::path::Place;
use super::{embedded, evaluate, prune, validate};

/// Drops the nulls that a schema neither allows nor replaces, then fills in defaults, at all levels.
pub(crate) fn apply(schema: &Schema, value: &mut Value) {
    drop_nulls(schema, value);
    if schema.holds.defaults {
        fill(schema, value);
    }
}

fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(inner) = schema.field(name) else { return true };
            if value.is_null() {
                return inner.nullable || inner.default.is_some();
            }
            drop_nulls(inner, value);
            true
        }),
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(inner, item));
            }
        }
        _ => {}
    }
}

fn fill(schema: &Schema, value: &mut Value) {
    let replaced = |inner: &Schema, value: &mut Value| {
        if value.is_null() && !inner.nullable {
            *value = inner.default.as_deref().cloned().unwrap_or_default();
        }
    };
    match value {
        Value::Object(fields) => {
            for (name, property) in schema.properties.iter() {
                if !property.holds.defaults {
                    continue;
                }
                if let Some(default) = &property.default {
                    match fields.get_mut(name) {
                        None => {
                            fields.insert(name.to_owned(), (**default).clone());
                        }
                        Some(value) => replaced(property, value),
                    }
                }
                if let Some(value) = fields.get_mut(name) {
                    fill(property, value);
                }
            }
            let Additional::Schema(values) = &schema.additional_properties else { return };
            for (name, value) in fields.iter_mut().filter(|_| values.holds.defaults) {
                if !schema.properties.contains_key(name) {
                    replaced(values, value);
                    fill(values, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.items.as_deref().filter(|inner| inner.holds.defaults) else { return };
            for item in items {
                replaced(inner, item);
                fill(inner, item);
            }
        }
        _ => {}
    }
}

/// Checks the defaults of a whole schema and prunes those inside embedded metadata.
pub(crate) fn check(schema: &mut Schema, place: &Place<'_>, causes: &mut Vec<Cause>) {
    level(schema, place, true, causes);
}

fn level(schema: &mut Schema, place: &Place<'_>, is_root: bool, causes: &mut Vec<Cause>) {
    if !schema.holds.defaults {
        return;
    }
    if let Some(default) = schema.default.take() {
        check_one(schema, &default, &place.field("default").bracketed(), is_root, causes);
        schema.default = Some(default);
    }
    if let Some(items) = &mut schema.items {
        level(items, &place.field("items"), false, causes);
    }
    let properties = place.field("properties");
    for (name, property) in schema.properties.iter_mut() {
        level(property, &properties.key(name), false, causes);
    }
}

fn check_one(schema: &Schema, default: &Value, path: &str, is_root: bool, causes: &mut Vec<Cause>) {
    let is_resource = is_root || schema.embedded_resource;
    let mut pruned = default.clone();
    prune::prune(schema, &mut pruned, is_resource);
    if pruned != *default {
        causes.push(Cause::invalid(path, default, "must not have unknown fields"));
    }
    let found = embedded::check(schema, default, path, is_root);
    if !found.is_empty() {
        causes.extend(found);
        return;
    }
    let found = validate::validate(schema, default, None, path);
    if !found.is_empty() {
        causes.extend(found);
        return;
    }
    let mut found = evaluate::evaluate(schema, default, Some(default), path);
    // A value is excused for being unchanged, so that it also has to pass as a new one.
    if found.is_empty() {
        found = evaluate::evaluate(schema, default, None, path);
    }
    causes.extend(found);
}
