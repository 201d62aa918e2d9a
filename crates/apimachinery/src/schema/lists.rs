//! Lists of type set and map hold no item twice (`x-kubernetes-list-type`).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::cause::Cause;
use super::correlate::identity;
use super::go_text::go_json;
use super::node::{Additional, ListType, Schema};
use super::path::Place;

/// The repeated items in all lists of a value; `base` is its path.
pub(crate) fn check(schema: &Schema, value: &Value, base: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    level(schema, value, &Place::Start(base), &mut causes);
    causes
}

fn level(schema: &Schema, value: &Value, place: &Place<'_>, causes: &mut Vec<Cause>) {
    if !schema.holds.keyed_lists {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (schema.properties.get(name), &schema.additional_properties) {
                    (Some(property), _) => level(property, value, &place.field(name), causes),
                    (None, Additional::Schema(values)) => level(values, value, &place.key(name), causes),
                    (None, _) => {}
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                ListType::Atomic => {}
                ListType::Set => repeated(items.iter().map(go_json), |index| {
                    causes.push(Cause::duplicate(place.item(index).bracketed(), &items[index]));
                }),
                ListType::Map => repeated_keys(schema, items, place, causes),
            }
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    level(inner, item, &place.item(index), causes);
                }
            }
        }
        _ => {}
    }
}

fn repeated_keys(schema: &Schema, items: &[Value], place: &Place<'_>, causes: &mut Vec<Cause>) {
    let strange = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = strange {
        let path = place.item(index).bracketed();
        let detail = "must be an object for an array of list-type map";
        causes.push(Cause::invalid(path, &items[index], detail));
        return;
    }
    let keys = &*schema.list_map_keys;
    repeated(items.iter().map(|item| identity(item, keys)), |index| {
        let own = |key: &String| Some((key.clone(), items[index].get(key)?.clone()));
        let identity: Map<String, Value> = keys.iter().filter_map(own).collect();
        causes.push(Cause::duplicate(place.item(index).bracketed(), &Value::Object(identity)));
    });
}

/// Reports the second occurrence of each identity.
fn repeated(identities: impl Iterator<Item = String>, mut report: impl FnMut(usize)) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for (index, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_default();
        *times += 1;
        if *times == 2 {
            report(index);
        }
    }
}
