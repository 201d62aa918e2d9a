//! JSON merge patches (RFC 7386).

use serde_json::Value;

use super::PatchError;

/// Merges `patch` into `object`: null deletes a field, lists are replaced.
///
/// # Errors
///
/// If the patch is not an object.
pub fn merge_patch(object: &mut Value, patch: Value) -> Result<(), PatchError> {
    if !patch.is_object() {
        let kind = match patch {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Bool(_) => "bool",
            _ => "number",
        };
        return Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )));
    }
    merge(object, patch);
    Ok(())
}

fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                match target.get_mut(&name) {
                    _ if value.is_null() => {
                        target.shift_remove(&name);
                    }
                    Some(field) => merge(field, value),
                    None => {
                        target.insert(name, without_nulls(value));
                    }
                }
            }
        }
        (target, patch) => *target = without_nulls(patch),
    }
}

/// A value that replaces another: nulls in its objects mean absence, also in the objects of its lists.
pub(super) fn without_nulls(mut value: Value) -> Value {
    drop_nulls(&mut value);
    value
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => object.retain(|_, value| {
            drop_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
