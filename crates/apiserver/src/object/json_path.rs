//! The JSONPath subset that CustomResourceDefinitions use: printer columns, selectable fields, scale paths.
//!
//! Fields, quoted fields, indexes, `[*]` and filters such as `[?(@.type=="Ready")]`; no recursive descent.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Every,
    /// Items whose value at the path equals the text.
    Where(Vec<String>, String, bool),
}

impl JsonPath {
    /// Reads `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status` and the like.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        let mut rest = text.trim();
        if let Some(inner) = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            rest = inner;
        }
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = match rest.as_bytes()[0] {
                b'.' => dotted(&rest[1..])?,
                b'[' => bracketed(&rest[1..])?,
                _ if steps.is_empty() => dotted(rest)?,
                _ => return Err(format!("unexpected {rest:?} in path {text:?}")),
            };
            steps.extend(step);
            rest = after;
        }
        Ok(JsonPath { steps })
    }

    /// Every value the path leads to.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.apply(value)).collect();
            if found.is_empty() {
                break;
            }
        }
        found
    }

    /// The field names of a plain path, such as scale paths are.
    pub(crate) fn fields(&self) -> Option<Vec<&str>> {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Field(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }
}

impl Step {
    fn apply<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Step::Field(name) => value.get(name).into_iter().collect(),
            Step::Index(index) => {
                let Some(list) = value.as_array() else { return Vec::new() };
                let at = if *index < 0 { list.len() as i64 + index } else { *index };
                usize::try_from(at).ok().and_then(|at| list.get(at)).into_iter().collect()
            }
            Step::Every => match value {
                Value::Array(list) => list.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Step::Where(path, wanted, equal) => {
                let matches = |item: &&Value| {
                    let found = path.iter().try_fold(*item, |value, field| value.get(field));
                    (found.is_some_and(|found| text_of(found) == *wanted)) == *equal
                };
                value.as_array().map(|list| list.iter().filter(matches).collect()).unwrap_or_default()
            }
        }
    }
}

/// A scalar as text, without quotes; compact JSON otherwise.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn dotted(rest: &str) -> Result<(Option<Step>, &str), String> {
    let mut name = String::new();
    let mut characters = rest.char_indices();
    let mut end = rest.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => {
                end = at;
                break;
            }
            // An escaped dot belongs to the name.
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            other => name.push(other),
        }
    }
    let step = match name.as_str() {
        "" => None,
        "*" => Some(Step::Every),
        _ => Some(Step::Field(name)),
    };
    if step.is_none() && rest[end..].starts_with('.') {
        return Err("recursive descent is not supported".to_owned());
    }
    Ok((step, &rest[end..]))
}

fn bracketed(rest: &str) -> Result<(Option<Step>, &str), String> {
    if let Some(filter) = rest.strip_prefix("?(") {
        let end = filter.find(")]").ok_or("a filter without its end")?;
        return Ok((Some(condition(&filter[..end])?), &filter[end + 2..]));
    }
    if let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"')) {
        let end = rest[1..].find(quote).ok_or("a quoted name without its end")? + 1;
        let after = rest[end + 1..].strip_prefix(']').ok_or("a bracket without its end")?;
        return Ok((Some(Step::Field(rest[1..end].to_owned())), after));
    }
    let end = rest.find(']').ok_or("a bracket without its end")?;
    let inner = rest[..end].trim();
    let step = if inner == "*" {
        Step::Every
    } else {
        Step::Index(inner.parse().map_err(|_| format!("{inner:?} is no index"))?)
    };
    Ok((Some(step), &rest[end + 1..]))
}

fn condition(text: &str) -> Result<Step, String> {
    let (path, wanted, equal) = match (text.split_once("=="), text.split_once("!=")) {
        (Some((path, wanted)), _) => (path, wanted, true),
        (None, Some((path, wanted))) => (path, wanted, false),
        (None, None) => return Err(format!("{text:?} is no comparison")),
    };
    let path = path.trim().strip_prefix("@.").ok_or_else(|| format!("{text:?} does not start with @."))?;
    let wanted = wanted.trim().trim_matches(|quote| quote == '"' || quote == '\'');
    Ok(Step::Where(path.split('.').map(str::to_owned).collect(), wanted.to_owned(), equal))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_what_printer_columns_name() {
        let object = json!({
            "spec": {"replicas": 3, "a.b": "dotted", "list": [{"n": "x"}, {"n": "y"}]},
            "status": {"conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        let cases = [
            (".spec.replicas", vec![json!(3)]),
            ("{.spec.replicas}", vec![json!(3)]),
            (".status.conditions[?(@.type==\"Ready\")].status", vec![json!("True")]),
            (".status.conditions[?(@.type=='Ready')].status", vec![json!("True")]),
            (".spec.list[*].n", vec![json!("x"), json!("y")]),
            (".spec.list[1].n", vec![json!("y")]),
            (".spec.list[-1].n", vec![json!("y")]),
            (".spec['a.b']", vec![json!("dotted")]),
            (".spec.a\\.b", vec![json!("dotted")]),
            (".spec.missing.deep", vec![]),
        ];
        for (path, expected) in cases {
            let found: Vec<Value> =
                JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect();
            assert_eq!(found, expected, "{path}");
        }
        for path in [".a[", ".a[x]", ".a['b", "..a", ".a[?(b==1)]"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
