//! The definitions derived from the types are those that are published.

use std::path::PathBuf;

use modelplane_api::{kind, schema, xrd};
use serde_json::Value;

/// A folder of recorded inputs beside the workspace; absent outside our own checkouts.
fn shared(path: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    if !folder.exists() {
        eprintln!("SKIPPED: {} is absent", folder.display());
        return None;
    }
    Some(folder)
}

/// Removes what is ours to word: descriptions of schema nodes and messages of rules.
fn without_words(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    node.remove("description");
    if let Some(rules) = node.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
        for rule in rules {
            let rule = rule.as_object_mut().expect("a rule is an object");
            rule.remove("message");
            // Line breaks within an expression are formatting.
            let expression = rule["rule"].as_str().expect("a rule is a text").split_whitespace();
            let expression = expression.collect::<Vec<_>>().join(" ");
            rule.insert("rule".to_owned(), expression.into());
        }
    }
    if let Some(required) = node.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by_key(|name| name.as_str().map(str::to_owned));
    }
    for child in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(child) {
            without_words(child);
        }
    }
    if let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(without_words);
    }
}

fn schema_of(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Paths at which two documents differ.
fn differences(path: &str, left: &Value, right: &Value, found: &mut Vec<String>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<_> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let (l, r) = (left.get(key).unwrap_or(&Value::Null), right.get(key).unwrap_or(&Value::Null));
                differences(&format!("{path}/{key}"), l, r, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (l, r)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}/{index}"), l, r, found);
            }
        }
        _ if left != right => found.push(format!("{path}: {left} should be {right}")),
        _ => {}
    }
}

/// The sixth cloud, which the published API does not have (issue 4, "adding a provider"): the exact places
/// where it shows in the schemas of published kinds.
const ADDED_CLOUD: [(&str, &str, &str); 2] = [
    ("InferenceClass", "/properties/spec/properties/provisioning", "provider"),
    ("InferenceCluster", "/properties/spec/properties/cluster", "source"),
];

/// Takes the added cloud out again; panics if it is not there, so that the list stays true.
fn without_added_cloud(kind: &str, schema: &mut Value) {
    for (_, pointer, discriminator) in ADDED_CLOUD.iter().filter(|(added, ..)| *added == kind) {
        let node = schema.pointer_mut(pointer).expect("the block exists");
        node["properties"].as_object_mut().unwrap().remove("doks").expect("the cloud's block");
        let values = node["properties"][discriminator]["enum"].as_array_mut().unwrap();
        let before = values.len();
        values.retain(|value| value != "DOKS");
        assert_eq!(values.len(), before - 1);
        let rule = format!("self.{discriminator} != 'DOKS' || has(self.doks)");
        let rules = node["x-kubernetes-validations"].as_array_mut().unwrap();
        let before = rules.len();
        rules.retain(|entry| entry["rule"] != rule.as_str());
        assert_eq!(rules.len(), before - 1);
    }
}

#[test]
fn definitions_equal_the_published_ones_but_for_the_older_shape() {
    let Some(folder) = shared("spec/schemas") else { return };
    let mut found = Vec::new();
    for info in kind::MODELPLANE {
        let text = std::fs::read_to_string(folder.join(format!("{}.json", info.plural))).unwrap();
        let mut expected: Value = serde_json::from_str(&text).unwrap();
        let mut actual = xrd::xrd(info);
        *schema_of(&mut actual) = schema::strict(info).clone();
        without_added_cloud(info.kind, schema_of(&mut actual));
        without_words(schema_of(&mut actual));
        without_words(schema_of(&mut expected));
        differences(info.plural, &actual, &expected, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
