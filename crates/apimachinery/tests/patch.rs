//! Replays how a real kube-apiserver patched (`tests/data/patch`, recorded by `record_apply.py`).

mod support;

use modelplane_apimachinery::builtin::{self, BuiltinKind};
use modelplane_apimachinery::patch::{MAX_DEPTH, PatchError, json_patch, merge_patch, strategic_merge_patch};
use serde_json::{Value, json};
use support::{Recording, Step};

/// Refused by what comes after the patch: decoding into the kind, or comparing names.
const LATER: &[&str] =
    &["an unknown field is refused", "a wrong type is refused", "the whole object is replaced"];

fn replay(name: &str, kind: &BuiltinKind) {
    let mut failures = Vec::new();
    for scenario in Recording::read(name).scenarios {
        let mut live = Value::Null;
        for step in scenario.steps {
            let later = LATER.contains(&scenario.name.as_str());
            if step.operation != "create" && !later {
                let result = patched(kind, &live, &step);
                if let Err(message) = judged(kind, result, &step) {
                    failures.push(format!("{}: {message}", scenario.name));
                }
            }
            if step.code < 300 {
                live = step.answer;
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn patched(kind: &BuiltinKind, live: &Value, step: &Step) -> Result<Value, PatchError> {
    let mut object = live.clone();
    match step.operation.as_str() {
        "strategic" => strategic_merge_patch(&kind.schema(), &mut object, step.sent.clone())?,
        "merge" => merge_patch(&mut object, step.sent.clone())?,
        _ => json_patch(&mut object, &step.sent)?,
    }
    Ok(object)
}

fn judged(kind: &BuiltinKind, result: Result<Value, PatchError>, step: &Step) -> Result<(), String> {
    let (mut ours, mut theirs) = match result {
        Ok(object) if step.code < 300 => (object, step.answer.clone()),
        Ok(_) => return Err(format!("patched, but there: {}", step.answer["message"])),
        Err(error) if u64::from(error.status()) != step.code => {
            return Err(format!("here {} {error}, there {}", error.status(), step.code));
        }
        // The real server hides what is wrong with a JSON patch.
        Err(_) if step.code == 422 => return Ok(()),
        Err(error) if step.answer["message"] == error.to_string() => return Ok(()),
        Err(error) => return Err(format!("\n  here:  {error}\n  there: {}", step.answer["message"])),
    };
    // Decoding drops what the kind does not have.
    kind.schema().prune(&mut ours);
    kind.normalize(&mut ours);
    support::without_system_metadata(&mut ours);
    support::without_system_metadata(&mut theirs);
    // New items get defaults there, nothing else may differ.
    if support::is_part_of(&ours, &theirs) && fields(&theirs) <= fields(&ours) + step.defaulted() {
        return Ok(());
    }
    Err(format!("\n  here:  {}\n  there: {}", support::text(&ours), support::text(&theirs)))
}

fn fields(value: &Value) -> usize {
    match value {
        Value::Object(fields_of) => fields_of.values().map(|value| 1 + fields(value)).sum(),
        Value::Array(items) => items.iter().map(fields).sum(),
        _ => 0,
    }
}

impl Step {
    /// How many fields defaults may add: a new container gets five, a new port or configuration one.
    fn defaulted(&self) -> usize {
        let text = self.sent.to_string();
        5 * text.matches("\"image\"").count()
            + 3 * text.matches("\"configMap\"").count()
            + 2 * text.matches("\"port\"").count()
            + text.matches("rollingUpdate").count() * 2
    }
}

#[test]
fn deployments_are_patched_as_the_real_server_does() {
    replay("patch/deployment", builtin::find("apps", "v1", "Deployment").expect("it is built in"));
}

#[test]
fn services_are_patched_as_the_real_server_does() {
    replay("patch/service", builtin::find("", "v1", "Service").expect("it is built in"));
}

#[test]
fn config_maps_are_patched_as_the_real_server_does() {
    replay("patch/configmap", builtin::find("", "v1", "ConfigMap").expect("it is built in"));
}

#[test]
fn a_patch_of_too_many_operations_is_refused() {
    let patch: Vec<Value> = (0..10_001).map(|_| json!({"op": "test", "path": "/a", "value": 1})).collect();
    let error = json_patch(&mut json!({"a": 1}), &Value::Array(patch)).expect_err("it is too long");
    let message = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(error, PatchError::TooLarge(message.to_owned()));
}

#[test]
fn copies_cannot_grow_an_object_without_bound() {
    let mut object = json!({"a": ["x".repeat(1000)]});
    let patch: Vec<Value> =
        (0..5_000).map(|_| json!({"op": "copy", "from": "/a/0", "path": "/a/-"})).collect();
    let error = json_patch(&mut object, &Value::Array(patch)).expect_err("it copies five megabytes");
    assert!(error.to_string().contains("accumulated size increase of copy"), "{error}");
}

#[test]
fn copies_cannot_nest_an_object_without_bound() {
    let mut object = json!({"a": {}});
    let patch: Vec<Value> = (0..200)
        .flat_map(|_| {
            [
                json!({"op": "copy", "from": "/a", "path": "/b"}),
                json!({"op": "move", "from": "/b", "path": "/a/c"}),
            ]
        })
        .collect();
    let error = json_patch(&mut object, &Value::Array(patch)).expect_err("it nests 200 deep");
    assert!(error.to_string().contains(&format!("nests deeper than {MAX_DEPTH}")), "{error}");
}

#[test]
fn null_in_a_merge_patch_deletes_a_field_and_is_not_stored() {
    let mut object = json!({"a": {"b": 1, "c": 2}, "l": [1]});
    let patch = json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [{"x": null}], "n": null});
    merge_patch(&mut object, patch).expect("it is an object");
    assert_eq!(object, json!({"a": {"c": 2, "d": {"f": 1}}, "l": [{}]}));
}

proptest::proptest! {
    #[test]
    fn no_patch_makes_the_patcher_panic(patch in any_json(), object in any_json()) {
        let schema = builtin::find("", "v1", "Pod").expect("it is built in").schema();
        let _ = json_patch(&mut object.clone(), &patch);
        let _ = merge_patch(&mut object.clone(), patch.clone());
        let _ = strategic_merge_patch(&schema, &mut object.clone(), patch);
    }
}

/// JSON whose names and texts are often those that mean something to a patch.
fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let name = proptest::sample::select(vec![
        "op",
        "path",
        "from",
        "value",
        "add",
        "copy",
        "/a",
        "/a/0",
        "/a/-",
        "/-1",
        "",
        "~0",
        "a",
        "name",
        "spec",
        "containers",
        "$patch",
        "replace",
        "delete",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "finalizers",
        "metadata",
        "labels",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        name.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            proptest::collection::vec((name.clone(), inner), 0..5).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}
