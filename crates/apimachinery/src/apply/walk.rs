//! Walks one object by its type: checks it, and collects the fields it sets.

use std::fmt;

use serde_json::Value;

use super::path::{Path, PathElement};
use super::set::FieldSet;
use super::types::{MapShape, Scalar, Shape, Type};

/// An object is not of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeErrors(pub Vec<TypeError>);

/// One field that is not of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeError {
    /// The field.
    pub path: Path,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [error] => write!(f, "{}: {}", error.path, error.message),
            errors => {
                f.write_str("errors:")?;
                errors.iter().try_for_each(|error| write!(f, "\n  {}: {}", error.path, error.message))
            }
        }
    }
}

impl std::error::Error for TypeErrors {}

/// Checks that `object` is of type `root` and that its lists repeat no item.
pub(super) fn check(root: Type<'_>, object: &Value) -> Result<(), TypeErrors> {
    let mut checker = Checker { path: Vec::new(), errors: Vec::new() };
    checker.visit(root, object);
    let mut errors = checker.errors;
    errors.sort_by(|left, right| left.path.0.cmp(&right.path.0));
    if errors.is_empty() { Ok(()) } else { Err(TypeErrors(errors)) }
}

struct Checker {
    path: Vec<PathElement>,
    errors: Vec<TypeError>,
}

impl Checker {
    fn fail(&mut self, message: String) {
        self.errors.push(TypeError { path: Path(self.path.clone()), message });
    }

    fn visit(&mut self, of: Type<'_>, value: &Value) {
        match (of.shape(Some(value)), value) {
            (_, Value::Null) => {}
            (Shape::Map(map), Value::Object(object)) => {
                for (name, value) in object {
                    self.path.push(PathElement::field(name));
                    match map.field(name) {
                        Some(of) => self.visit(of, value),
                        None => self.fail("field not declared in schema".to_owned()),
                    }
                    self.path.pop();
                }
            }
            (Shape::Map(_), value) => self.fail(format!("expected map, got {value}")),
            (Shape::List(list), Value::Array(items)) => {
                let mut seen = FieldSet::new();
                for (position, item) in items.iter().enumerate() {
                    let element = if list.atomic {
                        PathElement::Index(i64::try_from(position).unwrap_or(i64::MAX))
                    } else {
                        match list.element(item) {
                            Ok(element) => element,
                            Err(problem) => return self.fail(format!("element {position}: {problem}")),
                        }
                    };
                    if seen.contains(std::slice::from_ref(&element)) {
                        self.fail(format!("duplicate entries for key {element}"));
                    }
                    seen.insert(std::slice::from_ref(&element));
                    self.path.push(element);
                    self.visit(list.items, item);
                    self.path.pop();
                }
            }
            (Shape::List(_), value) => self.fail(format!("expected list, got {value}")),
            (Shape::Scalar(scalar), value) => {
                if let Some(message) = mismatch(scalar, value) {
                    self.fail(message);
                }
            }
        }
    }
}

fn mismatch(scalar: Scalar, value: &Value) -> Option<String> {
    let fits = match scalar {
        Scalar::Any => !value.is_object() && !value.is_array(),
        Scalar::Text => value.is_string(),
        Scalar::Number => value.is_number(),
        Scalar::Boolean => value.is_boolean(),
    };
    let kind = match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
        _ => "number",
    };
    (!fits).then(|| match scalar {
        Scalar::Any => format!("expected any scalar, got {value}"),
        Scalar::Text => format!("expected string, got {value}"),
        Scalar::Number => format!("expected numeric (int or float), got {kind}"),
        Scalar::Boolean => format!("expected boolean, got {value}"),
    })
}

/// The fields that `object` sets: its leaves, the items of its lists, its empty and its unnamed objects.
///
/// An item that occurs several times counts once, without what is below it.
pub(super) fn fields_of(root: Type<'_>, object: &Value) -> FieldSet {
    let mut set = FieldSet::new();
    collect(root, object, &mut set);
    set
}

/// Adds what is below `value` to `set`; whether the value itself is a member.
fn collect(of: Type<'_>, value: &Value, set: &mut FieldSet) -> bool {
    match of.shape(Some(value)) {
        Shape::Scalar(_) => true,
        Shape::Map(map) if map.atomic => true,
        Shape::List(list) if list.atomic => true,
        Shape::Map(map) => {
            if let Value::Object(object) = value {
                object.iter().for_each(|(name, value)| collect_field(&map, name, value, set));
            }
            false
        }
        Shape::List(list) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let mut elements: Vec<(PathElement, &Value)> =
                items.iter().filter_map(|item| Some((list.element(item).ok()?, item))).collect();
            elements.sort_by(|left, right| left.0.cmp(&right.0));
            for same in elements.chunk_by(|left, right| left.0 == right.0) {
                let entry = set.entry(&same[0].0);
                entry.member = true;
                if let [(_, item)] = same {
                    collect(list.items, item, &mut entry.below);
                }
            }
            false
        }
    }
}

fn collect_field(map: &MapShape<'_>, name: &str, value: &Value, set: &mut FieldSet) {
    let named = map.named(name);
    let Some(of) = named.or_else(|| map.field(name)) else { return };
    let mut below = FieldSet::new();
    let leaf = collect(of, value, &mut below);
    let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    let member = leaf || empty || named.is_none();
    if member || !below.is_empty() {
        let entry = set.entry(&PathElement::field(name));
        entry.member = member;
        entry.below = below;
    }
}
