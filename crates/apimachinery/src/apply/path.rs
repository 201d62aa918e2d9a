//! Paths to fields as server-side apply names them, and their order.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// One step from an object or list to what it holds.
///
/// Cheap to clone: sets of fields share their steps.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of an object (`f:name`).
    Field(Arc<str>),
    /// The item of a list whose key fields have these values, sorted by name (`k:{"name":"a"}`).
    Key(Arc<[KeyField]>),
    /// The item of a set with this value (`v:"a"`).
    Value(Arc<Value>),
    /// The item at a position (`i:0`); read from older objects, never written for new fields.
    Index(i64),
}

/// One field of an item's key.
#[derive(Debug, Clone)]
pub struct KeyField {
    /// The field's name.
    pub name: Arc<str>,
    /// Its value in the item, or its default.
    pub value: Value,
}

/// The way to one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(pub Vec<PathElement>);

impl PathElement {
    /// The field `name`.
    pub fn field(name: &str) -> PathElement {
        PathElement::Field(Arc::from(name))
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &PathElement) -> Ordering {
        use PathElement::{Field, Index, Key, Value};
        match (self, other) {
            (Field(left), Field(right)) => left.cmp(right),
            (Key(left), Key(right)) => compare_keys(left, right),
            (Value(left), Value(right)) => compare_values(left, right),
            (Index(left), Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &PathElement) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &PathElement) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

fn compare_keys(left: &[KeyField], right: &[KeyField]) -> Ordering {
    let pairs = left.iter().zip(right);
    pairs
        .map(|(left, right)| {
            left.name.cmp(&right.name).then_with(|| compare_values(&left.value, &right.value))
        })
        .find(|order| order.is_ne())
        .unwrap_or_else(|| left.len().cmp(&right.len()))
}

/// The total order of values in structured-merge-diff: numbers, strings, booleans, lists, objects, null.
pub(crate) fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right);
            pairs
                .map(|(left, right)| compare_values(left, right))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let mut left: Vec<_> = left.iter().collect();
            let mut right: Vec<_> = right.iter().collect();
            left.sort_unstable_by_key(|(key, _)| *key);
            right.sort_unstable_by_key(|(key, _)| *key);
            let pairs = left.iter().zip(&right);
            pairs
                .map(|(left, right)| left.0.cmp(right.0).then_with(|| compare_values(left.1, right.1)))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => value_rank(left).cmp(&value_rank(right)),
    }
}

fn value_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(left: &serde_json::Number, right: &serde_json::Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.cmp(&right);
    }
    let (left, right) = (left.as_f64().unwrap_or(0.0), right.as_f64().unwrap_or(0.0));
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// Whether two values are the same: `1` and `1.0` are, objects regardless of the order of their fields.
pub(crate) fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_value(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same_value(left, right)))
        }
        _ => left == right,
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (position, field) in fields.iter().enumerate() {
                    let comma = if position == 0 { "" } else { "," };
                    write!(f, "{comma}{}={}", field.name, field.value)?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={value}]"),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
