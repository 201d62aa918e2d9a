//! Strategic merge patches: lists are merged by key where the schema of a built-in kind says so.
//!
//! Directives: `$patch` (`replace`, `delete`) in objects and items, `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::schema::{Additional, Schema};

use super::merge::without_nulls;
use super::{PatchError, go_kind, go_text};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// Merges `patch` into `object`, whose kind has the given schema.
///
/// # Errors
///
/// If the patch is not an object, a directive is malformed, or an item lacks the key of its list.
pub fn strategic_merge_patch(schema: &Schema, object: &mut Value, patch: Value) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed(format!(
            "cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_kind(&patch)
        )));
    };
    let original = std::mem::take(object);
    let Value::Object(original) = original else { return Ok(()) };
    *object = Value::Object(merge_objects(Some(schema), original, patch)?);
    Ok(())
}

/// The schema of a field of an object; `None` where nothing is known.
fn field_schema<'s>(schema: Option<&'s Schema>, name: &str) -> Option<&'s Schema> {
    let schema = schema?;
    match (schema.properties.get(name), &schema.additional_properties) {
        (Some(field), _) => Some(field),
        (None, Additional::Schema(values)) => Some(values),
        (None, _) => None,
    }
}

/// Whether an object of this schema may have a field of this name.
fn allows(schema: Option<&Schema>, name: &str) -> bool {
    schema.is_none_or(|schema| {
        let open = schema.preserve_unknown_fields || schema.properties.is_empty();
        open || !matches!(schema.additional_properties, Additional::Forbidden)
            || schema.properties.contains_key(name)
    })
}

fn merge_objects(
    schema: Option<&Schema>,
    mut original: Object,
    mut patch: Object,
) -> Result<Object, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.shift_remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(&patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_orders(schema, &mut original, &mut patch)?;
    for (key, value) in patch {
        let deletion = key.starts_with(DELETE_FROM_LIST);
        let name = if deletion { directive_field(&key, DELETE_FROM_LIST)?.to_owned() } else { key };
        if value.is_null() {
            original.shift_remove(&name);
            continue;
        }
        let same_kind = original.get(&name).is_some_and(|live| go_kind(live) == go_kind(&value));
        let field = field_schema(schema, &name);
        match (original.get_mut(&name), value) {
            (None, value) | (Some(_), value) if !same_kind => {
                if deletion {
                    continue;
                }
                match without_directives(without_nulls(value)) {
                    Some(value) => drop(original.insert(name, value)),
                    None => drop(original.shift_remove(&name)),
                }
            }
            (Some(Value::Object(live)), Value::Object(value)) => {
                known_field(schema, &name)?;
                *live = merge_objects(field, std::mem::take(live), value)?;
            }
            (Some(Value::Array(live)), Value::Array(value)) => {
                known_field(schema, &name)?;
                *live = merge_field(field, std::mem::take(live), value, deletion)?;
            }
            (Some(live), value) => *live = value,
            (None, _) => {}
        }
    }
    Ok(original)
}

fn known_field(schema: Option<&Schema>, name: &str) -> Result<(), PatchError> {
    if allows(schema, name) {
        return Ok(());
    }
    Err(PatchError::Unprocessable(format!("unable to find api field {name:?}")))
}

fn unknown_directive(patch: &Object) -> PatchError {
    let directive = patch.get(PATCH).map(go_text).unwrap_or_default();
    PatchError::Directive(format!(
        "unknown patch type: {directive} in map: {}",
        go_text(&Value::Object(patch.clone()))
    ))
}

/// The field that `<directive>/<field>` is about.
fn directive_field<'k>(key: &'k str, directive: &str) -> Result<&'k str, PatchError> {
    let field = key.strip_prefix(directive).and_then(|rest| rest.strip_prefix('/'));
    field.ok_or_else(|| {
        let list = if directive == SET_ORDER { "setElementOrder list" } else { "primitive list" };
        PatchError::Malformed(format!("invalid patch format of {list}"))
    })
}

/// Drops the fields that `$retainKeys` does not name.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(directive) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let keys: BTreeSet<&str> =
        directive.as_array().ok_or_else(malformed)?.iter().filter_map(Value::as_str).collect();
    let is_named = |name: &String, value: &Value| {
        value.is_null()
            || name.starts_with(DELETE_FROM_LIST)
            || name.starts_with(SET_ORDER)
            || keys.contains(name.as_str())
    };
    if !patch.iter().all(|(name, value)| is_named(name, value)) {
        return Err(malformed());
    }
    original.retain(|name, _| keys.contains(name.as_str()));
    Ok(())
}

/// Merges and orders the lists that `$setElementOrder` names, and takes them out of the patch.
fn set_orders(schema: Option<&Schema>, original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for key in directives {
        let Some(directive) = patch.shift_remove(&key) else { continue };
        let order = list_of(directive)?;
        let name = directive_field(&key, SET_ORDER)?;
        let live = original.get(name).cloned().map(list_of).transpose()?;
        let patched = patch.get(name).cloned().map(list_of).transpose()?;
        known_field(schema, name)?;
        let field = field_schema(schema, name);
        let merge_key = field.and_then(|field| field.patch_strategy.merge_key.as_deref());
        check_order(patched.as_deref().unwrap_or_default(), &order, merge_key)?;
        let before = live.clone().unwrap_or_default();
        let merged = match (live, patched) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(patched)) => without_directives_in(patched),
            (Some(live), Some(patched)) => merge_field(field, live, patched, false)?,
        };
        let ordered = in_order(merged, &order, &before, merge_key)?;
        original.insert(name.to_owned(), Value::Array(ordered));
        patch.shift_remove(name);
    }
    Ok(())
}

fn list_of(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => {
            let kind = go_kind(&other);
            Err(PatchError::Directive(format!("expected a []interface {{}}, but received a {kind}")))
        }
    }
}

/// Items of the patch must come in the order that the directive sets.
fn check_order(patched: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<(), PatchError> {
    if patched.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut positions = order.iter();
    for item in patched.iter().filter(|item| !has_directive(item)) {
        let mut found = false;
        for position in positions.by_ref() {
            if identity(item, merge_key)? == identity(position, merge_key)? {
                found = true;
                break;
            }
        }
        if !found {
            let list = |items: &[Value]| go_text(&Value::Array(items.to_vec()));
            return Err(PatchError::Directive(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                list(patched),
                list(order)
            )));
        }
    }
    Ok(())
}

fn has_directive(item: &Value) -> bool {
    item.as_object().is_some_and(|item| item.contains_key(PATCH))
}

/// What an item is known by: its merge key, or itself.
fn identity<'v>(item: &'v Value, merge_key: Option<&str>) -> Result<&'v Value, PatchError> {
    let Some(key) = merge_key else { return Ok(item) };
    let object = item.as_object().ok_or_else(|| {
        let kind = go_kind(item);
        PatchError::Directive(format!("expected a map[string]interface {{}}, but received a {kind}"))
    })?;
    object.get(key).ok_or_else(|| {
        PatchError::Directive(format!("map: {} does not contain declared merge key: {key}", go_text(item)))
    })
}

fn merge_field(
    field: Option<&Schema>,
    live: Vec<Value>,
    patch: Vec<Value>,
    deletion: bool,
) -> Result<Vec<Value>, PatchError> {
    let merges = field.is_some_and(|field| field.patch_strategy.merge);
    if merges || deletion { merge_lists(field, live, patch, deletion) } else { Ok(patch) }
}

fn merge_lists(
    field: Option<&Schema>,
    mut live: Vec<Value>,
    mut patch: Vec<Value>,
    deletion: bool,
) -> Result<Vec<Value>, PatchError> {
    let mut items = live.iter().chain(&patch);
    let Some(first) = items.next() else { return Ok(live) };
    if let Some(other) = items.find(|item| go_kind(item) != go_kind(first)) {
        let kinds = (go_kind(first), go_kind(other));
        return Err(PatchError::Directive(format!(
            "list element types are not identical: [{} {}]",
            kinds.0, kinds.1
        )));
    }
    if first.is_array() {
        return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
    }
    if !first.is_object() {
        if deletion {
            let gone: HashSet<&Value> = patch.iter().collect();
            live.retain(|item| !gone.contains(item));
            return Ok(live);
        }
        let mut merged = live.clone();
        merged.extend(patch.iter().cloned());
        return in_order(without_repeats(merged), &patch, &live, None);
    }
    let Some(key) = field.and_then(|field| field.patch_strategy.merge_key.as_deref()) else {
        return Err(PatchError::Directive("cannot merge lists without merge key for struct".to_owned()));
    };
    special_items(&mut live, &mut patch, key)?;
    let before = live.clone();
    let items = field.and_then(|field| field.items.as_deref());
    let order = patch.clone();
    let mut places: HashMap<Value, usize> = HashMap::with_capacity(live.len());
    for (place, item) in live.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(value.clone()).or_insert(place);
        }
    }
    for item in patch {
        let wanted = identity(&item, Some(key))?;
        let place = *places.entry(wanted.clone()).or_insert(live.len());
        match (live.get_mut(place), item) {
            (Some(Value::Object(known)), Value::Object(item)) => {
                *known = merge_objects(items, std::mem::take(known), item)?;
            }
            (_, item) => live.push(item),
        }
    }
    in_order(live, &order, &before, Some(key))
}

/// Carries out the items of a patch that are directives and takes them out of it.
fn special_items(live: &mut Vec<Value>, patch: &mut Vec<Value>, key: &str) -> Result<(), PatchError> {
    let mut replace = false;
    let mut rest = Vec::with_capacity(patch.len());
    for item in std::mem::take(patch) {
        let Some(object) = item.as_object() else { continue };
        match object.get(PATCH).map(Value::as_str) {
            None => rest.push(item),
            Some(Some("delete")) => {
                let wanted = identity(&item, Some(key))?;
                live.retain(|known| known.get(key) != Some(wanted));
            }
            Some(Some("replace")) => replace = true,
            Some(Some("merge")) => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Directive(message.to_owned()));
            }
            Some(_) => return Err(unknown_directive(object)),
        }
    }
    if replace {
        *live = rest;
    } else {
        *patch = rest;
    }
    Ok(())
}

fn without_repeats(items: Vec<Value>) -> Vec<Value> {
    let mut seen: HashSet<Value> = HashSet::with_capacity(items.len());
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

/// The items in the order that a patch sets, with those it does not name where they were among them.
///
/// An item that only the live object has comes before the first ordered one that followed it there.
fn in_order(
    items: Vec<Value>,
    order: &[Value],
    before: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let (order, before) = (positions(order, merge_key)?, positions(before, merge_key)?);
    let mut ordered: Vec<(usize, Option<usize>, Value)> = Vec::new();
    let mut others: Vec<(Option<usize>, Value)> = Vec::new();
    for item in items {
        let wanted = identity(&item, merge_key)?;
        let was = before.get(wanted).copied();
        match order.get(wanted).copied() {
            Some(place) => ordered.push((place, was, item)),
            None => others.push((was, item)),
        }
    }
    ordered.sort_by_key(|(place, _, _)| *place);
    others.sort_by_key(|(was, _)| was.unwrap_or(usize::MAX));
    let mut merged = Vec::with_capacity(ordered.len() + others.len());
    let mut ordered = ordered.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    loop {
        let other_first = match (ordered.peek(), others.peek()) {
            (Some((_, Some(ordered), _)), Some((Some(other), _))) => other < ordered,
            (Some(_), _) => false,
            (None, Some(_)) => true,
            (None, None) => break,
        };
        let next = if other_first {
            others.next().map(|(_, item)| item)
        } else {
            ordered.next().map(|(_, _, item)| item)
        };
        merged.extend(next);
    }
    Ok(merged)
}

/// Where each item is first, by what it is known by.
fn positions<'v>(
    list: &'v [Value],
    merge_key: Option<&str>,
) -> Result<HashMap<&'v Value, usize>, PatchError> {
    let mut positions = HashMap::with_capacity(list.len());
    for (position, item) in list.iter().enumerate() {
        positions.entry(identity(item, merge_key)?).or_insert(position);
    }
    Ok(positions)
}

/// A value that is set anew, without the directives in it; `None` if it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(PATCH) => None,
        Value::Object(object) => {
            let kept =
                object.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(without_directives_in(items))),
        scalar => Some(scalar),
    }
}

fn without_directives_in(items: Vec<Value>) -> Vec<Value> {
    items.into_iter().filter_map(without_directives).collect()
}
