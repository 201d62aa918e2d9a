//! JSON patches, merge patches and strategic merge patches.
//!
//! Behaviour, where it is not written down, is that of kube-apiserver 1.36 (`tests/data/patch` holds its
//! recorded answers). For JSON patches that is not quite RFC 6902: `replace` may set an absent field,
//! indices may count from the end, `copy` of an absent field copies null. The decoded patch is the input;
//! who decodes it bounds its size and depth.

mod json;
mod merge;
mod strategic;

pub use json::json_patch;
pub use merge::merge_patch;
pub use strategic::strategic_merge_patch;

use serde_json::Value;

/// Objects nest no deeper than this; the JSON decoder refuses what is deeper, so a patch must not make it.
pub const MAX_DEPTH: usize = 120;

/// A patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is malformed (400 BadRequest).
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object (422 Invalid).
    #[error("{0}")]
    Unprocessable(String),
    /// The patch asks for too much (413 RequestEntityTooLarge).
    #[error("{0}")]
    TooLarge(String),
    /// A directive of a strategic merge patch makes no sense here (500, as Kubernetes answers).
    #[error("{0}")]
    Directive(String),
}

impl PatchError {
    /// The HTTP status that Kubernetes answers with.
    pub fn status(&self) -> u16 {
        match self {
            PatchError::Malformed(_) => 400,
            PatchError::TooLarge(_) => 413,
            PatchError::Unprocessable(_) => 422,
            PatchError::Directive(_) => 500,
        }
    }
}

/// How deep a value nests: 0 for a scalar.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The JSON type of a value as Go names it.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value in an error message as Go prints it: `map[image:x:1 name:side]`.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(object) => {
            let mut fields: Vec<(&String, &Value)> = object.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            let fields: Vec<String> =
                fields.into_iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => scalar.to_string(),
    }
}
