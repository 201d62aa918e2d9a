//! Selectors whose outcome was recorded from Kubernetes 1.36.2.

use std::borrow::Cow;
use std::path::PathBuf;

use modelplane_cel::device::{Attribute, Device, PreparedDevice, Selector};
use serde_json::Value;

/// The vectors kept in this repository: a selection over all libraries.
const SUBSET: &str = include_str!("data/cel-subset.jsonl");

fn text(value: &Value) -> Cow<'_, str> {
    Cow::Borrowed(value.as_str().expect("vectors hold texts here"))
}

fn device(value: &Value) -> Device<'_> {
    let entries = |key: &str| value[key].as_object().into_iter().flatten();
    let attribute = |value: &'_ Value| -> Attribute<'static> {
        let (kind, value) = value.as_object().and_then(|fields| fields.iter().next()).expect("one value");
        match kind.as_str() {
            "string" => Attribute::String(Cow::Owned(text(value).into_owned())),
            "bool" => Attribute::Bool(value.as_bool().expect("a bool")),
            "int" => Attribute::Int(value.as_i64().expect("an integer")),
            "version" => Attribute::Version(Cow::Owned(text(value).into_owned())),
            other => panic!("unknown kind of attribute {other}"),
        }
    };
    Device {
        driver: text(&value["driver"]),
        attributes: entries("attributes").map(|(name, value)| (name.into(), attribute(value))).collect(),
        capacity: entries("capacity").map(|(name, value)| (name.into(), text(&value["value"]))).collect(),
        allow_multiple_allocations: false,
    }
}

/// What differs between a vector and our answer.
fn difference(vector: &Value) -> Option<String> {
    let selector = match (Selector::compile(&text(&vector["expr"])), vector["compile"] == "ok") {
        (Ok(selector), true) => selector,
        (Err(_), false) => return None,
        (Ok(_), false) => return Some("compiles but should not".to_owned()),
        (Err(error), true) => return Some(format!("does not compile: {error}\n{}", error.snippet())),
    };
    let estimate = selector.estimated_cost();
    if vector["estimate"].as_u64().is_some_and(|expected| expected != estimate) {
        return Some(format!("estimate {estimate}, expected {}", vector["estimate"]));
    }
    let device = PreparedDevice::new(device(&vector["device"])).expect("vectors have well-formed devices");
    let evaluation = selector.evaluate(&device);
    let result =
        evaluation.result.as_ref().map_or_else(|_| Value::from("error"), |value| Value::from(*value));
    if result != vector["result"] {
        return Some(format!("result {:?}, expected {}", evaluation.result, vector["result"]));
    }
    if vector["cost"].as_u64().is_some_and(|expected| expected != evaluation.cost) {
        return Some(format!("cost {}, expected {}", evaluation.cost, vector["cost"]));
    }
    None
}

fn check(vectors: &str) -> usize {
    let vectors: Vec<Value> = vectors
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| serde_json::from_str(line).expect("vectors are JSON"))
        .collect();
    let failures: Vec<String> = vectors
        .iter()
        .filter_map(|vector| Some(format!("{}\n    {}", vector["expr"], difference(vector)?)))
        .collect();
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), vectors.len(), failures.join("\n"));
    vectors.len()
}

#[test]
fn the_subset_of_recorded_selectors_agrees() {
    assert!(check(SUBSET) >= 150);
}

#[test]
fn all_recorded_selectors_agree() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/cel.jsonl");
    let Ok(vectors) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: {} is not there", path.display());
        return;
    };
    assert_eq!(check(&vectors), 1500);
}
