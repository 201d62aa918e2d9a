//! The metadata that only the server writes: set on create, kept on update.

use modelplane_apimachinery::schema::metadata::check_types;
use serde_json::{Map, Value};

use super::{metadata, metadata_mut};
use crate::registry::resource::Generation;
use crate::status::{ApiError, ApiResult};

/// Checks the types of `metadata` and drops what is null or empty, which means the same as absent.
pub(crate) fn normalize(object: &mut Value) -> ApiResult<()> {
    if object.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
        return Err(ApiError::bad_request("metadata must be an object"));
    }
    let metadata = metadata_mut(object);
    // Kubernetes drops null entries of maps of strings by reading them as empty.
    for field in ["labels", "annotations"] {
        for value in
            metadata.get_mut(field).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
        {
            if value.is_null() {
                *value = Value::String(String::new());
            }
        }
    }
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    check_types(metadata).map_err(ApiError::bad_request)
}

/// The fields of `metadata` the server sets when an object is created.
pub(crate) struct Birth<'a> {
    pub(crate) uid: String,
    pub(crate) now: &'a str,
    pub(crate) generation: Generation,
}

/// Sets what the server owns on a new object.
pub(crate) fn prepare_create(object: &mut Value, birth: Birth<'_>) {
    let metadata = metadata_mut(object);
    for field in
        ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "generation"]
    {
        metadata.shift_remove(field);
    }
    metadata.insert("uid".to_owned(), Value::String(birth.uid));
    metadata.insert("creationTimestamp".to_owned(), birth.now.into());
    if birth.generation != Generation::None {
        metadata.insert("generation".to_owned(), 1.into());
    }
}

/// Carries over what a client cannot change.
pub(crate) fn prepare_update(object: &mut Value, live: &Value) {
    let Some(old) = metadata(live) else { return };
    let new = metadata_mut(object);
    let owned = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
    ];
    for field in owned {
        match old.get(field) {
            Some(value) => {
                new.insert(field.to_owned(), value.clone());
            }
            None => {
                new.shift_remove(field);
            }
        }
    }
    new.shift_remove("selfLink");
    if let Some(value) = old.get("generateName") {
        new.insert("generateName".to_owned(), value.clone());
    }
}

/// Raises the generation if what it counts has changed.
pub(crate) fn bump_generation(object: &mut Value, live: &Value, rule: Generation) {
    let skipped: &[&str] = match rule {
        Generation::None => return,
        Generation::ExceptStatus => &["metadata", "status", "apiVersion", "kind"],
        Generation::ExceptMetadata => &["metadata", "apiVersion", "kind"],
    };
    let empty = Map::new();
    let old = live.as_object().unwrap_or(&empty);
    let new = object.as_object().unwrap_or(&empty);
    let differs = |one: &Map<String, Value>, other: &Map<String, Value>| {
        one.iter().any(|(key, value)| !skipped.contains(&key.as_str()) && other.get(key) != Some(value))
    };
    if differs(old, new) || differs(new, old) {
        raise_generation(object);
    }
}

/// Adds one to the generation of an object that has one.
pub(crate) fn raise_generation(object: &mut Value) {
    let metadata = metadata_mut(object);
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    metadata.insert("generation".to_owned(), (generation + 1).into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_of_the_wrong_type_is_refused_and_what_is_empty_is_dropped() {
        let mut object =
            json!({"metadata": {"name": "a", "labels": null, "uid": "", "annotations": {"a": null}}});
        normalize(&mut object).unwrap();
        assert_eq!(object, json!({"metadata": {"name": "a", "annotations": {"a": ""}}}));
        assert_eq!(normalize(&mut json!({"metadata": {"labels": {"a": 1}}})).unwrap_err().code, 400);
        assert_eq!(normalize(&mut json!({"metadata": []})).unwrap_err().code, 400);
    }

    #[test]
    fn only_what_the_generation_counts_raises_it() {
        let live = json!({"metadata": {"generation": 1}, "spec": {"a": 1}, "status": {}});
        let cases = [
            (json!({"metadata": {"generation": 1, "labels": {}}, "spec": {"a": 1}, "status": {"x": 1}}), 1),
            (json!({"metadata": {"generation": 1}, "spec": {"a": 2}, "status": {}}), 2),
            (json!({"metadata": {"generation": 1}, "status": {}}), 2),
        ];
        for (mut object, generation) in cases {
            bump_generation(&mut object, &live, Generation::ExceptStatus);
            assert_eq!(object["metadata"]["generation"], generation, "{object}");
        }
    }
}
