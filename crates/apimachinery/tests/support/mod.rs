//! What the replays of recorded answers share.

#![allow(dead_code, reason = "each test uses a part")]

use serde_json::Value;

/// The recorded scenarios of one kind.
pub(crate) struct Recording {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) definitions: Vec<Value>,
    pub(crate) scenarios: Vec<Scenario>,
}

/// What was done to one object.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// One request and its answer.
pub(crate) struct Step {
    pub(crate) operation: String,
    pub(crate) manager: String,
    pub(crate) force: bool,
    pub(crate) subresource: String,
    pub(crate) version: Option<String>,
    pub(crate) sent: Value,
    pub(crate) code: u64,
    pub(crate) answer: Value,
    /// The object, where the answer is not it.
    pub(crate) main: Option<Value>,
}

impl Recording {
    pub(crate) fn read(name: &str) -> Recording {
        let path = format!("{}/tests/data/{name}.recorded.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut document: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let scenarios = document["scenarios"].as_array().cloned().unwrap_or_default();
        Recording {
            api_version: string(&document, "apiVersion"),
            kind: string(&document, "kind"),
            definitions: document["definitions"].as_array_mut().map(std::mem::take).unwrap_or_default(),
            scenarios: scenarios.iter().map(scenario).collect(),
        }
    }
}

fn string(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn scenario(value: &Value) -> Scenario {
    let steps = value["steps"].as_array().into_iter().flatten();
    let step = |step: &Value| Step {
        operation: string(step, "operation"),
        manager: step["manager"].as_str().unwrap_or("tester").to_owned(),
        force: step["force"] == true,
        subresource: string(step, "subresource"),
        version: step["version"].as_str().map(str::to_owned),
        sent: step["sent"].clone(),
        code: step["code"].as_u64().unwrap_or_default(),
        answer: step["answer"].clone(),
        main: step.get("main").cloned(),
    };
    Scenario { name: string(value, "name"), steps: steps.map(step).collect() }
}

/// A value as text, with sorted keys.
pub(crate) fn text(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

/// Removes what the server sets and what differs from recording to recording.
pub(crate) fn without_system_metadata(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in ["managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.shift_remove(name);
        }
    }
}

/// Whether everything in `part` is in `whole`, nulls and empty objects aside: the rest are defaults.
pub(crate) fn is_part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Null, _) => true,
        (Value::Object(part), Value::Object(whole)) => part.iter().all(|(name, part)| {
            let empty = Value::Object(serde_json::Map::new());
            is_part_of(part, whole.get(name).unwrap_or(if part == &empty { part } else { &Value::Null }))
        }),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_part_of(part, whole))
        }
        // The real server writes quantities in their shortest form.
        (Value::String(part), Value::String(whole)) if part == "0.5" => whole == "500m",
        (part, whole) => part == whole,
    }
}

/// Whether two values are equal, whatever the order of fields, `1` being `1.0`.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| is_same(left, right)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (left, right) => left == right,
    }
}
