//! Merges an applied object into the live one, and takes fields out of an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::compare::{items_of, object_of};
use super::path::PathElement;
use super::set::FieldSet;
use super::types::{ListShape, MapShape, Shape, Type};

/// `live` with everything that `applied` sets; nothing is removed.
pub(super) fn merge(of: Type<'_>, live: &Value, applied: &Value) -> Value {
    match of.shape(Some(applied)) {
        Shape::Scalar(_) => applied.clone(),
        Shape::Map(map) => {
            let (left, right) = (object_of(Some(live)), object_of(Some(applied)));
            let empty = left.is_none_or(Map::is_empty) && right.is_none_or(Map::is_empty);
            if map.atomic || empty { applied.clone() } else { merge_maps(&map, left, right) }
        }
        Shape::List(list) => {
            let (left, right) = (items_of(Some(live)), items_of(Some(applied)));
            let empty = left.is_empty() && right.is_empty();
            if list.atomic || empty { applied.clone() } else { Value::Array(merge_lists(&list, left, right)) }
        }
    }
}

fn merge_maps(
    map: &MapShape<'_>,
    left: Option<&Map<String, Value>>,
    right: Option<&Map<String, Value>>,
) -> Value {
    let mut out = left.cloned().unwrap_or_default();
    for (name, applied) in right.into_iter().flatten() {
        match (out.get_mut(name), map.field(name)) {
            (Some(live), Some(of)) => *live = merge(of, live, applied),
            (Some(live), None) => *live = applied.clone(),
            (None, _) => {
                out.insert(name.clone(), applied.clone());
            }
        }
    }
    Value::Object(out)
}

/// The live item of an element.
#[derive(Clone, Copy)]
enum Live<'v> {
    Once(&'v Value),
    /// It occurs several times: the applied item replaces it, unmerged.
    Repeated,
}

/// Merges by element: applied items keep their order, live ones stay where they are between them.
///
/// Follows the order of structured-merge-diff: a live item that is also applied waits for its turn.
fn merge_lists(list: &ListShape<'_>, left: &[Value], right: &[Value]) -> Vec<Value> {
    // Items without an element were checked for in what is applied; live ones are kept as they are.
    let applied: Vec<(PathElement, &Value)> =
        right.iter().filter_map(|item| Some((list.element(item).ok()?, item))).collect();
    let live: Vec<(Option<PathElement>, &Value)> =
        left.iter().map(|item| (list.element(item).ok(), item)).collect();
    let applied_set: BTreeMap<&PathElement, ()> = applied.iter().map(|(element, _)| (element, ())).collect();
    let mut observed: BTreeMap<&PathElement, Live<'_>> = BTreeMap::new();
    for (element, item) in &live {
        if let Some(element) = element {
            observed.entry(element).and_modify(|seen| *seen = Live::Repeated).or_insert(Live::Once(item));
        }
    }
    let mut shared =
        applied.iter().map(|(element, _)| element).filter(|element| observed.contains_key(element));
    let mut next_shared = shared.next();
    let mut merged: BTreeMap<&PathElement, ()> = BTreeMap::new();
    let combine = |element: &PathElement, item: &Value| match observed.get(element) {
        Some(Live::Once(live)) => merge(list.items, live, item),
        Some(Live::Repeated) | None => item.clone(),
    };

    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let (mut l, mut r) = (0, 0);
    while l < live.len() || r < applied.len() {
        if let (Some((left, _)), Some((right, item))) = (live.get(l), applied.get(r)) {
            if left.as_ref() == Some(right) {
                merged.insert(right, ());
                out.push(combine(right, item));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            let waits = left.as_ref().is_some_and(|left| applied_set.contains_key(left));
            if waits && next_shared.is_some() && next_shared != left.as_ref() {
                l += 1;
                continue;
            }
        }
        if let Some((left, item)) = live.get(l) {
            match left {
                Some(left) if applied_set.contains_key(left) => {
                    if merged.contains_key(left) {
                        l += 1;
                    }
                }
                _ => {
                    out.push((*item).clone());
                    l += 1;
                    continue;
                }
            }
        }
        if let Some((right, item)) = applied.get(r) {
            merged.insert(right, ());
            out.push(combine(right, item));
            r += 1;
            if next_shared == Some(right) {
                next_shared = shared.next();
            }
        }
    }
    out
}

/// Takes the fields of `set` out of `value`.
///
/// What becomes empty by this stays, empty: where structured-merge-diff writes null, which no schema allows.
pub(super) fn remove(of: Type<'_>, value: &mut Value, set: &FieldSet) {
    if set.is_empty() {
        return;
    }
    match (of.shape(Some(value)), value) {
        (Shape::Map(map), Value::Object(object)) if !map.atomic => {
            object.retain(|name, value| match set.find_field(name) {
                Some(entry) if entry.member => false,
                Some(entry) => {
                    if let Some(of) = map.field(name) {
                        remove(of, value, &entry.below);
                    }
                    true
                }
                None => true,
            });
        }
        (Shape::List(list), Value::Array(items)) if !list.atomic => {
            items.retain_mut(|item| {
                let element = list.element(item).ok();
                match element.and_then(|element| set.find(&element)) {
                    Some(entry) if entry.member => false,
                    Some(entry) => {
                        remove(list.items, item, &entry.below);
                        true
                    }
                    None => true,
                }
            });
        }
        _ => {}
    }
}

/// The set with every named field that has members below it as a member of its own.
///
/// Named fields are usually not owned themselves, but go when all that was in them goes.
pub(super) fn with_named_fields(of: Option<Type<'_>>, set: &FieldSet) -> FieldSet {
    let shapes = of.map(Type::shapes);
    let map = shapes.and_then(|shapes| shapes.map);
    let list = shapes.and_then(|shapes| shapes.list);
    let mut out = set.clone();
    for entry in &mut out.entries {
        let (named, below) = match &entry.element {
            PathElement::Field(name) => {
                let named = map.and_then(|map| map.named(name));
                (named.is_some(), named.or_else(|| map.and_then(|map| map.field(name))))
            }
            PathElement::Key(_) => (false, list.map(|list| list.items)),
            _ => (false, None),
        };
        if !entry.below.is_empty() {
            entry.member |= named;
            entry.below = with_named_fields(below, &entry.below);
        }
    }
    out
}

/// The set as it would be had the schema always been as it is: below what is atomic now, nothing is owned.
pub(super) fn reconciled(of: Type<'_>, set: &FieldSet) -> FieldSet {
    let mut out = set.clone();
    reconcile(of, &mut out);
    out
}

fn reconcile(of: Type<'_>, set: &mut FieldSet) {
    let shapes = of.shapes();
    for entry in set.entries.iter_mut().filter(|entry| !entry.below.is_empty()) {
        let below = match (&entry.element, shapes.map, shapes.list) {
            (PathElement::Field(name), Some(map), _) => map.field(name),
            (PathElement::Key(_) | PathElement::Value(_), None, Some(list)) => Some(list.items),
            _ => None,
        };
        let Some(below) = below else { continue };
        let atomic = match below.shape(None) {
            Shape::Map(map) if map.is_deduced() => continue,
            Shape::Map(map) => map.atomic,
            Shape::List(list) => list.atomic,
            Shape::Scalar(_) => continue,
        };
        if atomic {
            entry.member = true;
            entry.below = FieldSet::new();
        } else {
            reconcile(below, &mut entry.below);
        }
    }
}
