//! The rule above all others, for every kind that has a composition: nothing observed is dropped because
//! an input is missing, late or malformed. It is kept, or the whole answer is an error.
//!
//! `hold_rule/<Kind>.yaml` has a valid request per kind. It is followed to a fixed point, with everything
//! wanted observed and ready; then each input is broken in turn: every field of the composite (where the
//! schema says the result is invalid; a valid change is a wish, not an accident), every required
//! resource, and every observed resource.

mod support;

use std::collections::BTreeSet;

use modelplane_core::contract::Desired;
use serde_json::{Value, json};
use support::Request;
use support::fixed_point::{Fixture, State, fixtures, run};

/// The one kind without composed resources.
const COMPOSES_NOTHING: &str = "InferenceClass";

/// A request with one thing wrong, and its name.
type Breakage = (String, Request);

#[test]
fn every_kind_holds_what_is_observed_whatever_is_wrong_with_its_inputs() {
    let mut failures = Vec::new();
    for fixture in fixtures() {
        match fixture {
            Ok((kind, fixture)) => failures.extend(check(&kind, &fixture)),
            Err(problem) => failures.push(problem),
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn check(kind: &str, fixture: &Fixture) -> Vec<String> {
    let problems = modelplane_api::validate::validate(&fixture.composite).expect("fixtures are of our kinds");
    if !problems.is_empty() {
        return vec![format!("{kind}: its valid request is invalid: {problems:?}")];
    }
    let state = match fixture.fixed_point() {
        Ok(state) => state,
        Err(problem) => return vec![format!("{kind}: {problem}")],
    };
    if state.resources.is_empty() && kind != COMPOSES_NOTHING {
        return vec![format!("{kind}: its valid request composes nothing, so nothing can be dropped")];
    }
    let mut failures = Vec::new();
    let steps = fixture.steps();
    for (name, broken) in breakages(&state) {
        let Ok(wanted) = run(&steps, &broken, keys) else { continue };
        let excepted = |key: &str| {
            let exceptions = fixture.exceptions.iter();
            exceptions.clone().any(|e| name.starts_with(&e.input) && key.starts_with(&e.drops))
        };
        let lost: Vec<&String> =
            broken.resource_keys().filter(|key| !wanted.contains(*key) && !excepted(key)).collect();
        if !lost.is_empty() {
            failures.push(format!("{kind}: {name}: drops {lost:?}"));
        }
    }
    failures
}

fn keys(wanted: &Desired<'_>) -> BTreeSet<String> {
    wanted.resources.keys().map(|key| key.to_string()).collect()
}

/// Everything that can be wrong with one input.
fn breakages(state: &State) -> Vec<Breakage> {
    let valid = state.request();
    let mut found = Vec::new();
    let mut broken = |name: String, change: &dyn Fn(&mut Request)| {
        let mut request = valid.clone();
        change(&mut request);
        found.push((name, request));
    };
    for (name, composite) in broken_documents(&state.composite) {
        broken(format!("composite {name}"), &|request| request.set_composite(&composite));
    }
    for (key, items) in &state.required {
        let empty = vec![json!({}); items.len()];
        broken(format!("required {key} is late"), &|request| request.set_required(key, None));
        broken(format!("required {key} is absent"), &|request| request.set_required(key, Some(&[])));
        broken(format!("required {key} is empty"), &|request| request.set_required(key, Some(&empty)));
        for (index, item) in items.iter().enumerate() {
            for (name, document) in broken_documents(item) {
                let mut items = items.clone();
                items[index] = document;
                let name = format!("required {key}[{index}] {name}");
                broken(name, &|request| request.set_required(key, Some(&items)));
            }
        }
    }
    for (key, resource) in &state.resources {
        broken(format!("observed {key} is late"), &|request| request.set_resource(key, None));
        for (name, document) in broken_resources(resource) {
            broken(format!("observed {key} {name}"), &|request| request.set_resource(key, Some(&document)));
        }
    }
    found
}

/// The document with each field in turn left out or of another type, where that makes it invalid.
fn broken_documents(document: &Value) -> Vec<(String, Value)> {
    let mut paths = BTreeSet::new();
    collect_paths(document, String::new(), &mut paths);
    let mut found = Vec::new();
    for path in paths {
        for (name, replacement) in replacements(document.pointer(&path).unwrap_or(&Value::Null)) {
            if is_wish(&path, replacement.as_ref()) {
                continue;
            }
            let mut broken = document.clone();
            match replacement {
                Some(value) => *broken.pointer_mut(&path).expect("collected from the document") = value,
                None => remove(&mut broken, &path),
            }
            let invalid = modelplane_api::validate::validate(&broken).map_or(true, |found| !found.is_empty());
            if invalid {
                found.push((format!("{path} {name}"), broken));
            }
        }
    }
    found
}

/// Whether a change, though invalid, says clearly that something is to go: an item of a list that is left
/// out, or gets another name.
fn is_wish(path: &str, replacement: Option<&Value>) -> bool {
    let is_item = path.rsplit('/').next().is_some_and(|step| step.parse::<usize>().is_ok());
    let is_name = path.ends_with("/name") && path != "/metadata/name";
    match replacement {
        None => is_item,
        Some(value) => is_name && value == "",
    }
}

fn collect_paths(value: &Value, path: String, paths: &mut BTreeSet<String>) {
    if let Some(object) = value.as_object() {
        for (key, child) in object {
            let key = key.replace('~', "~0").replace('/', "~1");
            collect_paths(child, format!("{path}/{key}"), paths);
        }
    }
    for (index, child) in value.as_array().into_iter().flatten().enumerate() {
        collect_paths(child, format!("{path}/{index}"), paths);
    }
    if !path.is_empty() {
        paths.insert(path);
    }
}

/// Values of other types than this one; `None` leaves the field out.
fn replacements(value: &Value) -> Vec<(&'static str, Option<Value>)> {
    let others = [
        ("is left out", None),
        ("is null", Some(Value::Null)),
        ("is a text", Some("broken".into())),
        ("is an empty text", Some("".into())),
        ("is a number", Some(7.into())),
        ("is a list", Some(json!(["broken"]))),
        ("is an object", Some(json!({"broken": true}))),
    ];
    let is_other = |other: &Option<Value>| other.as_ref().is_none_or(|other| other != value);
    others.into_iter().filter(|(_, other)| is_other(other)).collect()
}

fn remove(document: &mut Value, path: &str) {
    let (parent, key) = path.rsplit_once('/').expect("paths start with a slash");
    match document.pointer_mut(parent) {
        Some(Value::Object(object)) => {
            object.shift_remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            items.remove(key.parse().expect("list steps are numbers"));
        }
        _ => {}
    }
}

/// What a provider, or somebody else, can make of an observed resource.
fn broken_resources(resource: &Value) -> Vec<(&'static str, Value)> {
    let with = |path: &[&str], value: Value| {
        let mut broken = resource.clone();
        let (last, parents) = path.split_last().expect("paths are not empty");
        let parent = parents.iter().fold(&mut broken, |object, key| &mut object[*key]);
        parent[*last] = value;
        broken
    };
    vec![
        ("is empty", json!({})),
        ("has no status", with(&["status"], Value::Null)),
        ("has a text for a status", with(&["status"], "broken".into())),
        ("has a text for conditions", with(&["status", "conditions"], "broken".into())),
        ("has numbers for conditions", with(&["status", "conditions"], json!([7]))),
        ("has a list for a provider's status", with(&["status", "atProvider"], json!([7]))),
        ("has a text for a spec", with(&["spec"], "broken".into())),
        ("has a text for metadata", with(&["metadata"], "broken".into())),
    ]
}
