//! From what a pipeline wants to what is applied: names, owner, labels, and whether applying would change
//! anything.

use modelplane_api::names::{COMPOSITE_LABEL, COMPOSITION_RESOURCE_NAME_ANNOTATION};
use modelplane_core::document::Document;
use modelplane_core::simulate::{ObjectKey, composed_name};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::object::Stored;

/// Field manager of what is applied to a composite itself.
pub const COMPOSITE_MANAGER: &str = "apiextensions.crossplane.io/composite";

/// A composed resource, ready to be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Identity.
    pub key: ObjectKey,
    /// What is applied.
    pub body: Value,
    /// Digest of the body: equal digests mean equal bodies.
    pub digest: u64,
}

/// The field manager with which a composite's resources are applied.
pub fn composed_manager(composite: &ObjectKey) -> String {
    let kind = match composite.group.as_str() {
        "" => composite.kind.clone(),
        group => format!("{}.{group}", composite.kind),
    };
    let digest = Sha256::digest(format!("{}{kind}", composite.name).as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("apiextensions.crossplane.io/composed/{hex}")
}

/// Gives a wanted resource its identity and the metadata that ties it to its composite.
///
/// # Errors
///
/// What is wrong with the resource, if it cannot be applied.
pub fn render(
    composite: &Stored,
    resource_key: &str,
    wanted: &[u8],
    observed: Option<&Stored>,
) -> Result<Rendered, String> {
    let mut body = Document::from_struct(wanted).to_json().map_err(|error| error.to_string())?;
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version.is_empty() || kind.is_empty() {
        return Err("it has no apiVersion or kind".to_owned());
    }
    let mut metadata = match body.get_mut("metadata").map(Value::take) {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let name = match (observed, metadata.get("name").and_then(Value::as_str)) {
        // What exists keeps its name, whatever is wanted now.
        (Some(observed), _) => observed.key.name.clone(),
        (None, Some(name)) if !name.is_empty() => name.to_owned(),
        (None, _) => composed_name(&composite.key, resource_key),
    };
    let own = composite.key.namespace.as_str();
    let namespace = match metadata.get("namespace").and_then(Value::as_str) {
        _ if !own.is_empty() => own.to_owned(),
        Some(namespace) => namespace.to_owned(),
        None => observed.map(|observed| observed.key.namespace.clone()).unwrap_or_default(),
    };
    metadata.insert("name".to_owned(), json!(name));
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    let label = composite.label(COMPOSITE_LABEL).unwrap_or(&composite.key.name);
    insert_into(&mut metadata, "labels", COMPOSITE_LABEL, label);
    insert_into(&mut metadata, "annotations", COMPOSITION_RESOURCE_NAME_ANNOTATION, resource_key);
    metadata.insert("ownerReferences".to_owned(), json!([owner_reference(composite)]));
    body["metadata"] = Value::Object(metadata);
    let key = ObjectKey::of(&body);
    let digest = digest(&body);
    Ok(Rendered { api_version, key, body, digest })
}

/// The reference by which a composite controls what it composes.
fn owner_reference(composite: &Stored) -> Value {
    json!({
        "apiVersion": composite.api_version(),
        "kind": composite.key.kind,
        "name": composite.key.name,
        "uid": composite.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn insert_into(metadata: &mut Map<String, Value>, field: &str, key: &str, value: &str) {
    let entry = metadata.entry(field).or_insert_with(|| json!({}));
    if !entry.is_object() {
        *entry = json!({});
    }
    entry[key] = json!(value);
}

fn digest(value: &Value) -> u64 {
    let text = value.to_string();
    let digest = Sha256::digest(text.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// Whether everything that is wanted is already so: fields may have been added, list items may not.
///
/// The depth is that of documents, which is bounded.
pub fn is_within(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, value)| {
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            match live.get(key) {
                Some(live) => is_within(value, live),
                None => empty,
            }
        }),
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted.iter().zip(live).all(|(wanted, live)| is_within(wanted, live))
        }
        (Value::Number(wanted), Value::Number(live)) => wanted == live || wanted.as_f64() == live.as_f64(),
        (wanted, live) => wanted == live,
    }
}

/// The references that a composite keeps to what it composes, in Crossplane's order.
pub fn resource_refs<'r>(composite: &ObjectKey, rendered: impl Iterator<Item = &'r Rendered>) -> Value {
    let namespaced = !composite.namespace.is_empty();
    let mut refs: Vec<(String, Value)> = rendered
        .map(|rendered| {
            let ObjectKey { kind, namespace, name, .. } = &rendered.key;
            let mut reference = json!({"apiVersion": rendered.api_version, "kind": kind, "name": name});
            if !namespaced && !namespace.is_empty() {
                reference["namespace"] = json!(namespace);
            }
            (format!("{}{kind}{name}{namespace}", rendered.api_version), reference)
        })
        .collect();
    refs.sort_by(|(a, _), (b, _)| a.cmp(b));
    refs.into_iter().map(|(_, reference)| reference).collect()
}

#[cfg(test)]
mod tests {
    use modelplane_core::document::encode;

    use super::*;
    use crate::object::key;

    fn composite(namespace: &str) -> Stored {
        Stored::from_value(json!({
            "apiVersion": "x.io/v1", "kind": "X",
            "metadata": {"name": "top", "namespace": namespace, "uid": "u1"},
        }))
        .unwrap()
    }

    fn rendered(composite: &Stored, body: &Value, observed: Option<&Value>) -> Rendered {
        let observed = observed.map(|observed| Stored::from_value(observed.clone()).unwrap());
        render(composite, "part", &encode(body).unwrap(), observed.as_ref()).unwrap()
    }

    #[test]
    fn names_are_given_kept_or_derived() {
        let derived = composed_name(&composite("n").key, "part");
        let observed = json!({"kind": "K", "metadata": {"name": "before", "namespace": "n"}});
        for (name, metadata, observed, expected) in [
            ("given", json!({"name": "mine"}), None, "mine"),
            ("kept", json!({"name": "mine"}), Some(&observed), "before"),
            ("derived", json!({}), None, derived.as_str()),
        ] {
            let body = json!({"apiVersion": "v1", "kind": "K", "metadata": metadata});
            assert_eq!(rendered(&composite("n"), &body, observed).key.name, expected, "{name}");
        }
    }

    #[test]
    fn metadata_ties_a_resource_to_its_composite() {
        let body = json!({
            "apiVersion": "v1", "kind": "K",
            "metadata": {"namespace": "elsewhere", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        });
        let rendered = rendered(&composite("n"), &body, None);
        let metadata = &rendered.body["metadata"];
        assert_eq!(metadata["namespace"], "n", "a namespaced composite composes in its own namespace");
        assert_eq!(metadata["labels"], json!({"a": "b", "crossplane.io/composite": "top"}));
        assert_eq!(
            metadata["annotations"],
            json!({"c": "d", "crossplane.io/composition-resource-name": "part"})
        );
        let owner = &metadata["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&json!("u1"), &json!(true)));
    }

    #[test]
    fn a_cluster_scoped_composite_composes_anywhere() {
        let body = json!({"apiVersion": "v1", "kind": "K", "metadata": {"namespace": "elsewhere"}});
        assert_eq!(rendered(&composite(""), &body, None).key.namespace, "elsewhere");
    }

    #[test]
    fn applying_is_needless_if_everything_wanted_is_there() {
        for (name, wanted, live, expected) in [
            ("more is there", json!({"a": 1}), json!({"a": 1, "b": 2}), true),
            ("another value", json!({"a": 1}), json!({"a": 2}), false),
            ("missing", json!({"a": 1}), json!({}), false),
            ("items with defaults", json!({"a": [{"b": 1}]}), json!({"a": [{"b": 1, "c": 2}]}), true),
            ("another item", json!({"a": [1]}), json!({"a": [1, 2]}), false),
            ("numbers of another form", json!({"a": 1}), json!({"a": 1.0}), true),
            ("an empty object is nothing", json!({"a": {}}), json!({}), true),
        ] {
            assert_eq!(is_within(&wanted, &live), expected, "{name}");
        }
    }

    #[test]
    fn references_are_in_order_and_name_namespaces_only_where_they_differ() {
        let rendered = |kind: &str, name: &str| Rendered {
            api_version: "v1".to_owned(),
            key: key("", kind, "n", name),
            body: Value::Null,
            digest: 0,
        };
        let list = [rendered("B", "1"), rendered("A", "2"), rendered("A", "1")];
        let names = |refs: &Value| -> Vec<String> {
            refs.as_array().unwrap().iter().map(|r| format!("{}{}", r["kind"], r["name"])).collect()
        };
        let namespaced = resource_refs(&key("x", "X", "n", "top"), list.iter());
        assert_eq!(names(&namespaced), [r#""A""1""#, r#""A""2""#, r#""B""1""#]);
        assert!(namespaced[0].get("namespace").is_none());
        assert_eq!(resource_refs(&key("x", "X", "", "top"), list.iter())[0]["namespace"], "n");
    }

    #[test]
    fn the_manager_is_the_one_crossplane_uses() {
        // sha256("topX.x.io")
        let manager = composed_manager(&key("x.io", "X", "n", "top"));
        assert!(
            manager.starts_with("apiextensions.crossplane.io/composed/") && manager.len() == 101,
            "{manager}"
        );
        assert_eq!(manager, composed_manager(&key("x.io", "X", "other", "top")));
    }
}
