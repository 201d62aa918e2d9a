//! Manifests that are new or changed, and how many composed objects follow.

use modelplane_core::simulate::{ObjectKey, StoredObject};
use serde::Serialize;
use serde_json::Value;

use super::Worlds;
use crate::fleet::Fleet;
use crate::output;

/// Most fields named for one object.
const MAX_FIELDS: usize = 4;

/// A manifest that is new or differs from what is there.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    action: Action,
    object: String,
    /// Fields that differ, for an object that exists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    Change,
}

/// Numbers of composed objects.
#[derive(Debug, Default, Serialize)]
pub(super) struct Totals {
    created: usize,
    changed: usize,
    deleted: usize,
}

pub(super) fn changes(worlds: Worlds<'_>, new: &Fleet) -> (Vec<Change>, Totals) {
    let of_manifest = |key: &ObjectKey| {
        let object = key.to_string();
        match worlds.before.get(key) {
            None => Some(Change { action: Action::Create, object, fields: Vec::new() }),
            Some(old) => {
                // As applied: what others wrote to a live object stays.
                let fields = differing(&old.body, &worlds.after.get(key)?.body);
                (!fields.is_empty()).then_some(Change { action: Action::Change, object, fields })
            }
        }
    };
    let objects = new.manifests.keys().filter_map(of_manifest).collect();
    (objects, totals(worlds))
}

fn totals(worlds: Worlds<'_>) -> Totals {
    let composed = |object: &&StoredObject| object.owner.is_some();
    let mut totals = Totals::default();
    for object in worlds.after.iter().filter(composed) {
        match worlds.before.get(&object.key) {
            None => totals.created += 1,
            Some(old) if old.body["spec"] != object.body["spec"] => totals.changed += 1,
            Some(_) => {}
        }
    }
    totals.deleted = worlds
        .before
        .iter()
        .filter(composed)
        .filter(|object| worlds.after.get(&object.key).is_none())
        .count();
    totals
}

/// Paths of the fields that differ, status aside.
pub(super) fn differing(old: &Value, new: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    let mut open = vec![(String::new(), old, new)];
    while let Some((path, old, new)) = open.pop() {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(old), Value::Object(new)) => {
                let start = open.len();
                let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
                for key in keys.filter(|key| !(path.is_empty() && *key == "status")) {
                    let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    let value = |map: &'_ serde_json::Map<String, Value>| map.contains_key(key);
                    if value(old) && value(new) {
                        open.push((below, &old[key], &new[key]));
                    } else {
                        paths.push(below);
                    }
                }
                open[start..].reverse();
            }
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                let pairs = old.iter().zip(new).enumerate().rev();
                open.extend(pairs.map(|(index, (old, new))| (format!("{path}[{index}]"), old, new)));
            }
            _ => paths.push(path),
        }
    }
    paths
}

impl Totals {
    pub(super) fn is_nothing(&self) -> bool {
        self.created + self.changed + self.deleted == 0
    }

    /// `composed objects: 2 created, 1 deleted`, unless nothing changes.
    pub(super) fn describe(&self) -> Option<String> {
        let numbers = [(self.created, "created"), (self.changed, "changed"), (self.deleted, "deleted")];
        let parts: Vec<String> = numbers
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
        (!parts.is_empty()).then(|| format!("composed objects: {}", parts.join(", ")))
    }
}

pub(super) fn describe(changes: &[Change]) -> Option<String> {
    let rows = changes.iter().map(|change| {
        let action = match change.action {
            Action::Create => "create",
            Action::Change => "change",
        };
        let fields = crate::view::some_of(&change.fields, MAX_FIELDS);
        vec![action.to_owned(), change.object.clone(), fields]
    });
    let table = output::table(&["ACTION", "OBJECT", "FIELDS"], rows);
    (!changes.is_empty()).then(|| format!("OBJECTS\n{table}"))
}
