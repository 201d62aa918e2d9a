//! `fieldsV1`: sets of fields as `metadata.managedFields` holds them.
//!
//! Elements are keys with a prefix (`f:`, `k:`, `v:`, `i:`); a member that has members below it holds `.`.
//! Keys of unknown kinds are dropped, as Kubernetes does, so that a newer writer does no harm.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::path::{KeyField, PathElement};
use super::set::FieldSet;

/// A set that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FieldsError {
    /// A set is not an object.
    #[error("fieldsV1 holds {0} where an object is expected")]
    NotAnObject(String),
    /// A key is not a path element.
    #[error("fieldsV1 key {key:?}: {message}")]
    BadKey {
        /// The key.
        key: String,
        /// What is wrong with it.
        message: String,
    },
}

impl FieldSet {
    /// The set written as `fieldsV1`.
    ///
    /// # Errors
    ///
    /// If `fields` is not an object of objects, or a key is malformed.
    pub fn from_fields_v1(fields: &Value) -> Result<FieldSet, FieldsError> {
        let mut set = FieldSet::new();
        let object = fields.as_object().ok_or_else(|| FieldsError::NotAnObject(fields.to_string()))?;
        for (key, below) in object.iter().filter(|(key, _)| *key != ".") {
            let Some(element) = parse_element(key)? else { continue };
            let fields = below.as_object().ok_or_else(|| FieldsError::NotAnObject(below.to_string()))?;
            let below = FieldSet::from_fields_v1(below)?;
            let member = below.is_empty() || fields.contains_key(".");
            let entry = set.entry(&element);
            entry.member |= member;
            entry.below = below;
        }
        Ok(set)
    }

    /// The set as `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.contents(false))
    }

    fn contents(&self, with_self: bool) -> Map<String, Value> {
        let mut object = Map::with_capacity(self.entries.len() + usize::from(with_self));
        if with_self {
            object.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for entry in &self.entries {
            let with_self = entry.member && !entry.below.is_empty();
            object.insert(print_element(&entry.element), Value::Object(entry.below.contents(with_self)));
        }
        object
    }
}

/// The element a key stands for; `None` if its kind is unknown.
fn parse_element(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let failed = |message: String| FieldsError::BadKey { key: key.to_owned(), message };
    let Some((kind, content)) = key.split_once(':') else {
        return Err(failed("has no colon".to_owned()));
    };
    let parsed = || serde_json::from_str::<Value>(content).map_err(|error| failed(error.to_string()));
    Ok(Some(match kind {
        "f" => PathElement::field(content),
        "v" => PathElement::Value(Arc::new(parsed()?)),
        "i" => PathElement::Index(content.parse().map_err(|_| failed("is not a number".to_owned()))?),
        "k" => {
            let Value::Object(fields) = parsed()? else {
                return Err(failed("is not an object".to_owned()));
            };
            let mut fields: Vec<KeyField> =
                fields.into_iter().map(|(name, value)| KeyField { name: name.into(), value }).collect();
            fields.sort_by(|left, right| left.name.cmp(&right.name));
            PathElement::Key(fields.into())
        }
        _ => return Ok(None),
    }))
}

fn print_element(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Value(value) => format!("v:{value}"),
        PathElement::Index(index) => format!("i:{index}"),
        PathElement::Key(fields) => {
            let mut text = String::from("k:{");
            for (position, field) in fields.iter().enumerate() {
                let comma = if position == 0 { "" } else { "," };
                text.push_str(comma);
                text.push_str(&Value::from(&*field.name).to_string());
                text.push(':');
                text.push_str(&field.value.to_string());
            }
            text.push('}');
            text
        }
    }
}
