//! JSON patches (RFC 6902) as kube-apiserver applies them.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, PatchError, depth};

/// A patch may hold this many operations.
const MAX_OPERATIONS: usize = 10_000;
/// All `copy` operations of a patch together may add this many bytes (`JSONPatchMaxCopyBytes`).
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Applies the operations of `patch` to `object`, which is left half-patched if one fails.
///
/// # Errors
///
/// If the patch is not a list of operations or too long, an operation does not apply or a test fails.
pub fn json_patch(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = patch.as_array().ok_or_else(|| {
        let kind = match patch {
            Value::Object(_) => "object",
            Value::String(_) => "string",
            Value::Bool(_) => "bool",
            _ => "number",
        };
        let message = "into Go value of type []handlers.jsonPatchOp";
        PatchError::Malformed(format!("error decoding patch: json: cannot unmarshal {kind} {message}"))
    })?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut copied = 0;
    for operation in operations {
        let operation = operation.as_object().ok_or_else(|| {
            PatchError::Malformed("error decoding patch: an operation is not an object".to_owned())
        })?;
        apply(object, operation, &mut copied)?;
    }
    Ok(())
}

fn apply(object: &mut Value, operation: &Map<String, Value>, copied: &mut usize) -> Result<(), PatchError> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let name = text("op").unwrap_or_default();
    let path = || text("path").ok_or_else(|| failed(format!("{name} operation: missing path field")));
    let from = || text("from").ok_or_else(|| failed(format!("{name} operation: missing from field")));
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match name {
        "add" => add(object, name, path()?, value()),
        "remove" => take(object, name, path()?).map(drop),
        "replace" => replace(object, path()?, value()),
        "move" => {
            let moved = take(object, name, from()?)?;
            add(object, name, path()?, moved)
        }
        "copy" => {
            let value = read(object, name, from()?)?.cloned().unwrap_or(Value::Null);
            *copied = copied.saturating_add(size(&value));
            if *copied > MAX_COPIED {
                return Err(failed(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
                     exceeding the limit {MAX_COPIED}"
                )));
            }
            add(object, name, path()?, value)
        }
        "test" => test(object, path()?, operation.get("value").unwrap_or(&Value::Null)),
        other => Err(failed(format!("unknown operation {other:?}"))),
    }
}

fn failed(message: String) -> PatchError {
    PatchError::Unprocessable(message)
}

/// The length of a value as JSON, roughly: what a copy adds.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(object) => {
            object.iter().map(|(name, value)| name.len() + 4 + size(value)).sum::<usize>() + 2
        }
    }
}

/// The object or list that holds what `path` names, and the last step.
fn parent<'v>(
    object: &'v mut Value,
    operation: &str,
    path: &str,
) -> Result<(&'v mut Value, String), PatchError> {
    let missing = || failed(format!("{operation} operation does not apply: the object has no {path:?}"));
    let (above, last) = path.rsplit_once('/').ok_or_else(missing)?;
    let mut value = object;
    for step in above.split('/').skip(1) {
        let step = unescaped(step);
        let below = match value {
            Value::Object(fields) => fields.get_mut(&step),
            Value::Array(items) => position(&step, items.len()).and_then(|at| items.get_mut(at)),
            _ => None,
        };
        value = below.ok_or_else(missing)?;
    }
    if !value.is_object() && !value.is_array() {
        return Err(missing());
    }
    Ok((value, unescaped(last)))
}

fn unescaped(step: &str) -> String {
    if step.contains('~') { step.replace("~1", "/").replace("~0", "~") } else { step.to_owned() }
}

/// The position that a step names in a list of so many items; negative ones count from the end.
fn position(step: &str, length: usize) -> Option<usize> {
    let index: i64 = step.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    usize::try_from(index).ok()
}

fn no_index(operation: &str, path: &str, length: usize) -> PatchError {
    failed(format!("{operation} operation does not apply: {path:?} is no index of a list of {length}"))
}

fn add(object: &mut Value, operation: &str, path: &str, value: Value) -> Result<(), PatchError> {
    if path.split('/').count() - 1 + depth(&value) > MAX_DEPTH {
        return Err(failed(format!(
            "{operation} operation does not apply: {path:?} nests deeper than {MAX_DEPTH}"
        )));
    }
    let (parent, last) = parent(object, operation, path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(last, value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let length = items.len();
            let at = position(&last, length + 1).filter(|at| *at <= length);
            items.insert(at.ok_or_else(|| no_index(operation, path, length))?, value);
        }
        _ => {}
    }
    Ok(())
}

fn take(object: &mut Value, operation: &str, path: &str) -> Result<Value, PatchError> {
    let (parent, last) = parent(object, operation, path)?;
    match parent {
        Value::Array(items) => {
            let length = items.len();
            let at = position(&last, length).filter(|at| *at < length);
            Ok(items.remove(at.ok_or_else(|| no_index(operation, path, length))?))
        }
        Value::Object(fields) => fields.shift_remove(&last).ok_or_else(|| {
            failed(format!("{operation} operation does not apply: the object has no {path:?}"))
        }),
        _ => Ok(Value::Null),
    }
}

fn replace(object: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(failed("replace operation: the whole can only be an object".to_owned()));
        }
        *object = value;
        return Ok(());
    }
    if path.split('/').count() - 1 + depth(&value) > MAX_DEPTH {
        return Err(failed(format!(
            "replace operation does not apply: {path:?} nests deeper than {MAX_DEPTH}"
        )));
    }
    let (parent, last) = parent(object, "replace", path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(last, value);
        }
        Value::Array(items) => {
            let length = items.len();
            let at = position(&last, length).filter(|at| *at < length);
            items[at.ok_or_else(|| no_index("replace", path, length))?] = value;
        }
        _ => {}
    }
    Ok(())
}

/// What `path` names; `None` if the field is absent.
fn read<'v>(object: &'v mut Value, operation: &str, path: &str) -> Result<Option<&'v Value>, PatchError> {
    let (parent, last) = parent(object, operation, path)?;
    match parent {
        Value::Array(items) => {
            let length = items.len();
            let at = position(&last, length).filter(|at| *at < length);
            Ok(Some(&items[at.ok_or_else(|| no_index(operation, path, length))?]))
        }
        Value::Object(fields) => Ok(fields.get(&last)),
        _ => Ok(None),
    }
}

fn test(object: &mut Value, path: &str, expected: &Value) -> Result<(), PatchError> {
    let found = if path.is_empty() { Some(&*object) } else { read(object, "test", path)? };
    if found.unwrap_or(&Value::Null) == expected {
        return Ok(());
    }
    Err(failed(format!("testing value {path} failed")))
}
