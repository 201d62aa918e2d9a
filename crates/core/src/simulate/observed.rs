//! Objects as an API server holds them: who composed them, and how a manifest is applied on top of them.
//!
//! An observed object stays as it was reported until something wants it otherwise: a simulation that starts
//! from a live fleet must not find changes where a real control plane would make none.

use modelplane_api::kind::{self, Scope};
use serde_json::{Map, Value};

use super::reconcile::RESOURCE_NAME_ANNOTATION;
use super::world::{ObjectKey, Owner, group};

/// Where `kubectl apply` keeps what it applied last.
const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Metadata that changes with every write and says nothing about the object.
const BOOKKEEPING: [&str; 4] = ["managedFields", "resourceVersion", "generation", "selfLink"];

/// Who composed an observed object: its controller, if the controller is a composite of ours.
pub(super) fn owner_of(body: &Value) -> Option<Owner> {
    let metadata = &body["metadata"];
    let references = metadata["ownerReferences"].as_array()?;
    let controller = references.iter().find(|reference| reference["controller"] == true)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = controller["apiVersion"].as_str().unwrap_or_default();
    let info = kind::find(api_version, controller["kind"].as_str().unwrap_or_default())?;
    let namespace = match info.scope {
        Scope::Namespaced => text(&metadata["namespace"]),
        Scope::Cluster => String::new(),
    };
    let composite = ObjectKey {
        group: group(api_version).to_owned(),
        kind: info.kind.to_owned(),
        namespace,
        name: text(&controller["name"]),
    };
    Some(Owner { composite, resource_key: text(&metadata["annotations"][RESOURCE_NAME_ANNOTATION]) })
}

/// Takes away what an API server adds and compositions do not read.
pub(super) fn strip(body: &mut Value) {
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.retain(|field, _| !BOOKKEEPING.contains(&field.as_str()));
    }
    let conditions = body.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.retain(|field, _| !["lastTransitionTime", "observedGeneration"].contains(&field.as_str()));
    }
}

/// Whether everything wanted is there already; what is there beyond it (defaults, status) does not count.
pub(super) fn covers(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted
            .iter()
            .all(|(field, value)| there.get(field).map_or(value.is_null(), |there| covers(there, value))),
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(there, value)| covers(there, value))
        }
        // Compositions read and write all numbers as doubles.
        (Value::Number(there), Value::Number(wanted)) => there.as_f64() == wanted.as_f64(),
        _ => there == wanted,
    }
}

/// The object as it would be once the manifest is applied: a three-way merge, as `kubectl apply` does it for
/// kinds without a merge strategy. Fields that were applied last time and are no longer in the manifest go.
pub(super) fn apply(there: &Value, manifest: &Value) -> Value {
    let last = there["metadata"]["annotations"][LAST_APPLIED_ANNOTATION].as_str();
    let last: Value = last.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut applied = there.clone();
    merge(&mut applied, &last, manifest);
    applied
}

fn merge(there: &mut Value, last: &Value, manifest: &Value) {
    let (Value::Object(fields), Value::Object(wanted)) = (&mut *there, manifest) else {
        if !covers(there, manifest) {
            *there = manifest.clone();
        }
        return;
    };
    for (field, value) in wanted {
        match fields.get_mut(field) {
            Some(there) => merge(there, &last[field.as_str()], value),
            None => {
                fields.insert(field.clone(), value.clone());
            }
        }
    }
    let dropped =
        last.as_object().into_iter().flat_map(Map::keys).filter(|field| !wanted.contains_key(*field));
    for field in dropped {
        fields.remove(field);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_beyond_the_wanted_does_not_count() {
        for (reason, there, wanted, expected) in [
            ("a default", json!({"a": 1, "b": 2}), json!({"a": 1}), true),
            ("a double", json!({"a": 1}), json!({"a": 1.0}), true),
            ("another value", json!({"a": 1}), json!({"a": 2}), false),
            ("a missing field", json!({}), json!({"a": 1}), false),
            ("a list item's default", json!([{"a": 1, "b": 2}]), json!([{"a": 1}]), true),
            ("one item more", json!([1, 2]), json!([1]), false),
        ] {
            assert_eq!(covers(&there, &wanted), expected, "{reason}");
        }
    }

    #[test]
    fn fields_that_leave_the_manifest_leave_the_object() {
        let last = json!({"spec": {"kept": 1, "gone": {"x": 1}}}).to_string();
        let there = json!({
            "metadata": {"annotations": {LAST_APPLIED_ANNOTATION: last}, "finalizers": ["f"]},
            "spec": {"kept": 1, "gone": {"x": 1}, "byOthers": true},
            "status": {"ready": true},
        });
        let applied = apply(&there, &json!({"spec": {"kept": 2, "new": [1]}}));
        assert_eq!(applied["spec"], json!({"kept": 2, "byOthers": true, "new": [1]}));
        assert_eq!((&applied["status"], &applied["metadata"]), (&there["status"], &there["metadata"]));
    }

    #[test]
    fn the_controller_is_the_composer() {
        let object = json!({
            "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelReplica",
            "metadata": {
                "name": "r", "namespace": "team",
                "annotations": {RESOURCE_NAME_ANNOTATION: "replica-0"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "other"},
                    {"apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelDeployment", "name": "d",
                     "controller": true},
                ],
            },
        });
        let owner = owner_of(&object).unwrap();
        assert_eq!(owner.resource_key, "replica-0");
        assert_eq!(owner.composite.to_string(), "ModelDeployment team/d");
    }
}
