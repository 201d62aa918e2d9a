//! Damaged inputs: fields of recorded requests are replaced in turn, and nothing may panic or be dropped.

mod support;

use modelplane_core::compose::{Composition, model_cache, model_endpoint, model_replica, model_service};
use serde_json::{Value, json};
use support::{Request, cases, conformance};

/// A path of object keys and list positions, as a JSON pointer.
type Pointer = String;

const COMPOSITIONS: [(&str, Composition); 4] = [
    ("compose-model-cache", model_cache::compose),
    ("compose-model-endpoint", model_endpoint::compose),
    ("compose-model-replica", model_replica::compose),
    ("compose-model-service", model_service::compose),
];

/// How many fields of a request are damaged.
const FIELDS_TRIED: usize = 60;

/// What a field may turn into.
fn damages() -> [Value; 6] {
    [Value::Null, json!(7), json!(-1.5), json!([]), json!({}), json!("\u{0}")]
}

/// Every value below `at`, itself included.
fn pointers(value: &Value, at: &str, found: &mut Vec<Pointer>) {
    found.push(at.to_owned());
    let escaped = |key: &String| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| pointers(field, &format!("{at}/{}", escaped(key)), found));
        }
        Value::Array(items) => {
            (0..).zip(items).for_each(|(index, item)| pointers(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// The recorded requests of one function, and each ninth of the random ones.
fn requests(function: &str) -> Vec<Value> {
    let Some(folder) = conformance() else { return Vec::new() };
    let mut documents = cases(&folder.join("functions").join(function));
    documents.extend(cases(&folder.join("must-not-crash.jsonl")));
    documents.extend(cases(&folder.join("functions-random.jsonl")).into_iter().step_by(9));
    documents.retain(|document| document["function"] == function);
    documents.into_iter().map(|mut document| document["request"].take()).collect()
}

/// Observed keys that the answer lacks; none if there is no answer, since then everything stays.
fn dropped(composition: Composition, request: &Value) -> Vec<String> {
    let request = Request::from_json(request);
    let observed = request.observed();
    let Ok(desired) = composition(&observed) else { return Vec::new() };
    let lost = observed.resources.keys().filter(|key| !desired.resources.contains_key(**key));
    lost.map(|key| (*key).to_owned()).collect()
}

#[test]
fn damage_anywhere_in_a_request_panics_nowhere() {
    for (function, composition) in COMPOSITIONS {
        for (offset, request) in requests(function).into_iter().enumerate() {
            let mut found = Vec::new();
            pointers(&request["observed"], "/observed", &mut found);
            // Objects stay objects where the wire format has no choice.
            found.retain(|pointer| pointer.contains("/resource/"));
            // Some fields of every request, other ones of each: all of them would take minutes.
            let step = found.len().div_ceil(FIELDS_TRIED).max(1);
            for (index, pointer) in found.iter().skip(offset % step).step_by(step).enumerate() {
                let mut damaged = request.clone();
                let damage = damages()[index % 6].clone();
                *damaged.pointer_mut(pointer).expect("a pointer into the request") = damage;
                dropped(composition, &damaged);
            }
        }
    }
}

#[test]
fn a_damaged_input_drops_nothing_that_a_whole_one_keeps() {
    for (function, composition) in COMPOSITIONS {
        for request in requests(function) {
            let kept = dropped(composition, &request);
            let mut found = Vec::new();
            pointers(&request["requiredResources"], "/requiredResources", &mut found);
            let resource = |pointer: &&Pointer| pointer.contains("/resource/");
            for pointer in found.iter().filter(resource) {
                for damage in damages() {
                    // Another name is another cluster: a change, not damage.
                    if damage.is_string() && pointer.ends_with("/metadata/name") {
                        continue;
                    }
                    let mut damaged = request.clone();
                    *damaged.pointer_mut(pointer).expect("a pointer into the request") = damage.clone();
                    let lost = dropped(composition, &damaged);
                    let more: Vec<_> = lost.iter().filter(|key| !kept.contains(key)).collect();
                    assert!(more.is_empty(), "{function}: {pointer} as {damage} drops {more:?}");
                }
            }
        }
    }
}
