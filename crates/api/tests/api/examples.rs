//! Published manifests of both shapes decode, survive a round trip and have no problems.

use crate::support::{documents, round_trip, shared};
use modelplane_api::normalize::{convert, needs_normalizing, normalize};
use modelplane_api::{kind, schema, validate};
use serde_json::Value;

#[test]
fn every_example_survives_a_round_trip() {
    let Some(folder) = shared("examples") else { return };
    let mut checked = 0;
    for (file, document) in documents(&folder) {
        let Some(result) = round_trip(&document) else { continue };
        let written = result.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut expected = document;
        normalize(&mut expected).unwrap();
        assert_eq!(written, expected, "{}", file.display());
        checked += 1;
    }
    assert!(checked > 100, "only {checked} documents were found");
}

#[test]
fn every_example_is_valid() {
    let Some(folder) = shared("examples") else { return };
    for (file, document) in documents(&folder) {
        let Ok(problems) = validate(&document) else { continue };
        assert!(problems.is_empty(), "{}: {problems:#?}", file.display());
    }
}

#[test]
fn every_converted_example_has_the_newer_shape_alone() {
    let Some(folder) = shared("examples") else { return };
    let mut changed = 0;
    for (file, mut document) in documents(&folder) {
        let Ok(info) = kind::of(&document) else { continue };
        changed += usize::from(!convert(&mut document).unwrap().is_empty());
        assert!(!needs_normalizing(&document), "{}", file.display());
        assert_eq!(convert(&mut document).unwrap(), [], "{}: converting twice", file.display());
        assert_fields_known(schema::strict(info), &document["spec"], &file.display().to_string());
    }
    // 13 deployments, 7 clusters with a project, 2 with a named fabric, a GKECluster, a ServingStack.
    assert!(changed >= 22, "only {changed} documents were converted");
}

/// Asserts that the strict schema knows every field of the spec.
fn assert_fields_known(schema: &Value, spec: &Value, file: &str) {
    fn walk(schema: &Value, value: &Value, path: &str) {
        if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
            for (name, field) in fields {
                let child = properties.get(name).unwrap_or_else(|| panic!("{path}.{name} is not known"));
                walk(child, field, &format!("{path}.{name}"));
            }
        }
        for item in value.as_array().into_iter().flatten() {
            walk(&schema["items"], item, &format!("{path}[]"));
        }
    }
    walk(&schema["properties"]["spec"], spec, file);
}
