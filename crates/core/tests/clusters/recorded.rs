//! Every recorded answer about clusters: what is wanted, how ready it is, and the status.
//!
//! The recorded data's own tool compares more, through the binary; this is the part that a change to a
//! composition breaks first.

use std::collections::BTreeMap;

use modelplane_core::compose::composition;
use modelplane_core::contract::Ready;
use serde_json::{Map, Value};

use crate::status;
use crate::support::{Request, cases, conformance};

const FUNCTIONS: [&str; 7] = [
    "compose-inference-class",
    "compose-inference-cluster",
    "compose-gke-cluster",
    "compose-eks-cluster",
    "compose-aks-cluster",
    "compose-nebius-cluster",
    "compose-vultr-cluster",
];

#[test]
fn recorded_answers_are_given() {
    let Some(folder) = conformance() else { return };
    let mut recorded = cases(&folder.join("functions-random.jsonl"));
    recorded.extend(FUNCTIONS.iter().flat_map(|function| cases(&folder.join("functions").join(function))));
    let ours = |case: &&Value| FUNCTIONS.iter().any(|function| case["function"] == *function);
    let mut compared = 0;
    for case in recorded.iter().filter(ours) {
        // What a case leaves open is for the tool to judge.
        if case.get("ignore").is_none_or(|ignored| ignored.as_array().is_some_and(Vec::is_empty)) {
            compare(case);
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} cases");
}

fn compare(case: &Value) {
    let name = &case["case"];
    let composite = &case["request"]["observed"]["composite"]["resource"];
    let text = |field: &str| composite[field].as_str().expect("an identity");
    let compose = composition(text("apiVersion"), text("kind")).expect("a kind that is composed");
    let request = Request::from_json(&case["request"]);
    let desired = compose(&request.observed()).unwrap_or_else(|error| panic!("{name}: {error}"));

    let expected = &case["response"]["desired"];
    let wanted: BTreeMap<String, (Value, bool)> = desired
        .resources
        .iter()
        .map(|(key, resource)| {
            let body = resource.body.document().to_json().expect("an object");
            (key.to_string(), (comparable(&body), resource.ready == Ready::True))
        })
        .collect();
    let recorded = expected["resources"].as_object().into_iter().flatten();
    let recorded: BTreeMap<String, (Value, bool)> = recorded
        .map(|(key, entry)| (key.clone(), (comparable(&entry["resource"]), entry["ready"] == "READY_TRUE")))
        .collect();
    assert_eq!(wanted, recorded, "{name}");

    let recorded = comparable(&expected["composite"]["resource"]["status"]);
    let status = comparable(&status(&desired));
    assert_eq!(emptied(status), emptied(recorded), "{name}");
    let reasons = |conditions: Vec<(String, String)>| BTreeMap::from_iter(conditions);
    let wanted = desired.conditions.iter();
    let wanted = wanted.map(|c| (c.condition_type.to_string(), c.reason.to_string())).collect();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let recorded = case["response"]["conditions"].as_array().into_iter().flatten();
    let recorded = recorded.map(|c| (text(c, "type"), text(c, "reason"))).collect();
    assert_eq!(reasons(wanted), reasons(recorded), "{name}");
}

/// A value without nulls and prose.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| {
                !value.is_null() && !matches!(name.as_str(), "description" | "reason")
            });
            kept.map(|(name, value)| (name.clone(), comparable(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(comparable).collect(),
        other => other.clone(),
    }
}

/// An empty status is as good as none.
fn emptied(status: Value) -> Option<Value> {
    Some(status).filter(|status| status.as_object().is_some_and(|fields| !fields.is_empty()))
}
