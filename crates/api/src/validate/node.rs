//! The check of one value against one schema node, and of everything below both.
//!
//! Recursion follows the schema, whose depth is fixed, never the document.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Problem, patterns, suggest};
use crate::field_path;

/// Checks a whole object against the schema of its kind.
pub(super) fn check(schema: &Value, document: &Value, problems: &mut Vec<Problem>) {
    Checker { root: schema, problems }.check(schema, document, "");
}

/// A message that says which type a value should have, and which it has.
pub(super) fn wrong_type(expected: &str, value: &Value) -> String {
    let found = match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("{value}"),
        Value::String(text) => format!("the text {}", shown(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    format!("should be {expected}, not {found}")
}

/// A text in quotes, cut where it gets long.
fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("{start:?}…")
}

/// The keywords that bound how many there are of something.
struct SizeBounds {
    least: &'static str,
    most: &'static str,
    what: &'static str,
}

const FIELDS: SizeBounds = SizeBounds { least: "minProperties", most: "maxProperties", what: "fields" };
const ITEMS: SizeBounds = SizeBounds { least: "minItems", most: "maxItems", what: "items" };

struct Checker<'a> {
    /// The schema of the whole object, searched for fields that were put in the wrong place.
    root: &'a Value,
    problems: &'a mut Vec<Problem>,
}

impl Checker<'_> {
    fn report(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(path, message));
    }

    fn check(&mut self, schema: &Value, value: &Value, path: &str) {
        match (schema["type"].as_str(), value) {
            (Some("object"), Value::Object(fields)) => self.check_object(schema, fields, path),
            (Some("array"), Value::Array(items)) => self.check_list(schema, items, path),
            (Some("string"), Value::String(text)) => self.check_text(schema, text, path),
            (Some("integer"), Value::Number(number)) => self.check_integer(schema, number, path),
            (Some("boolean"), Value::Bool(_)) | (None, _) => {}
            (Some(expected), found) => self.report_type(expected, found, path),
        }
    }

    fn report_type(&mut self, expected: &str, found: &Value, path: &str) {
        let name = match expected {
            "object" => "an object",
            "array" => "a list",
            "string" => "a text",
            "integer" => "an integer",
            _ => "true or false",
        };
        let problem = Problem::new(path, wrong_type(name, found));
        let hint = match (expected, found) {
            ("string", Value::Number(_) | Value::Bool(_)) => Some("put the value in quotes"),
            ("integer" | "boolean", Value::String(_)) => Some("write the value without quotes"),
            ("array", Value::Object(_) | Value::String(_)) => Some("write it as a list item, after a dash"),
            _ => None,
        };
        self.problems.push(match hint {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        });
    }

    fn check_object(&mut self, schema: &Value, fields: &Map<String, Value>, path: &str) {
        self.check_size(schema, &FIELDS, fields.len(), path);
        let Some(properties) = schema["properties"].as_object() else {
            let values = &schema["additionalProperties"];
            if values.is_object() {
                for (key, value) in fields {
                    self.check(values, value, &field_path::field(path, key));
                }
            }
            return;
        };
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let absent = fields.get(name).is_none_or(Value::is_null);
            // A required field with a default is filled in before it is missed.
            if absent && properties.get(name).is_none_or(|child| child.get("default").is_none()) {
                self.report(&field_path::field(path, name), "required");
            }
        }
        for (name, value) in fields {
            match properties.get(name) {
                Some(_) if value.is_null() => {}
                // Object metadata is richer than the schema says; it is checked apart.
                Some(_) if path.is_empty() && name == "metadata" => {}
                Some(child) => self.check(child, value, &field_path::field(path, name)),
                None => self.report_unknown(properties, name, path),
            }
        }
    }

    fn report_unknown(&mut self, properties: &Map<String, Value>, name: &str, path: &str) {
        let problem = Problem::new(field_path::field(path, name), "unknown field");
        let known = || properties.keys().map(String::as_str);
        self.problems.push(if let Some(similar) = suggest::closest(name, known()) {
            problem.with_hint(format!("did you mean {similar}?"))
        } else if let Some(elsewhere) = suggest::elsewhere(self.root, name) {
            problem.with_hint(format!("did you mean {elsewhere}?"))
        } else {
            problem.with_hint(format!("known fields here: {}", known().collect::<Vec<_>>().join(", ")))
        });
    }

    fn check_list(&mut self, schema: &Value, items: &[Value], path: &str) {
        self.check_size(schema, &ITEMS, items.len(), path);
        for (position, item) in items.iter().enumerate() {
            self.check(&schema["items"], item, &field_path::index(path, position));
        }
        let keys: Vec<&str> = match schema["x-kubernetes-list-map-keys"].as_array() {
            Some(keys) => keys.iter().filter_map(Value::as_str).collect(),
            None => return,
        };
        let mut seen = HashSet::new();
        for (position, item) in items.iter().enumerate() {
            let identity: Vec<String> = keys.iter().map(|key| item[*key].to_string()).collect();
            if !seen.insert(identity.clone()) {
                let shown = identity.join(", ");
                let message = format!("another item has the same {}: {shown}", keys.join(" and "));
                self.report(&field_path::index(path, position), message);
            }
        }
    }

    fn check_text(&mut self, schema: &Value, text: &str, path: &str) {
        if let Some(values) = schema["enum"].as_array() {
            if !values.iter().any(|value| value == text) {
                self.report_not_listed(values, text, path);
            }
            return;
        }
        let length = text.chars().count();
        let (least, most) = (schema["minLength"].as_u64(), schema["maxLength"].as_u64());
        if least.is_some_and(|least| (length as u64) < least) {
            let message = match length {
                0 => "must not be empty".to_owned(),
                _ => format!(
                    "{} has {length} characters; at least {} are needed",
                    shown(text),
                    least.unwrap_or(0)
                ),
            };
            self.report(path, message);
        } else if let Some(most) = most.filter(|most| length as u64 > *most) {
            self.report(path, format!("{} has {length} characters; at most {most} are allowed", shown(text)));
        } else if let Some(wanted) = schema["pattern"].as_str().and_then(|p| patterns::mismatch(p, text)) {
            self.report(path, format!("{} should be {wanted}", shown(text)));
        }
    }

    fn report_not_listed(&mut self, values: &[Value], text: &str, path: &str) {
        let names: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        let problem = Problem::new(path, format!("{} is not one of {}", shown(text), names.join(", ")));
        self.problems.push(match suggest::closest(text, names.iter().copied()) {
            Some(similar) => problem.with_hint(format!("did you mean {similar}?")),
            None => problem,
        });
    }

    fn check_integer(&mut self, schema: &Value, number: &serde_json::Number, path: &str) {
        // A double holds every bound in the schemas exactly; larger integers only lose digits, not order.
        let value = number.as_f64().unwrap_or(f64::NAN);
        if value.fract() != 0.0 {
            self.report(path, format!("should be an integer, not {number}"));
        } else if let Some(least) = schema["minimum"].as_f64().filter(|least| value < *least) {
            self.report(path, format!("{number} is too small; the least is {least}"));
        } else if let Some(most) = schema["maximum"].as_f64().filter(|most| value > *most) {
            self.report(path, format!("{number} is too large; the most is {most}"));
        }
    }

    fn check_size(&mut self, schema: &Value, bounds: &SizeBounds, size: usize, path: &str) {
        let (least, most) = (schema[bounds.least].as_u64(), schema[bounds.most].as_u64());
        let what = bounds.what;
        if let Some(least) = least.filter(|least| (size as u64) < *least) {
            self.report(path, format!("has {size} {what}; at least {least} needed"));
        } else if let Some(most) = most.filter(|most| size as u64 > *most) {
            self.report(path, format!("has {size} {what}; at most {most} allowed"));
        }
    }
}
