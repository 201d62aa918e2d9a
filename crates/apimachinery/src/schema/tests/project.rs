use std::fs;
use std::path::{Path, PathBuf};

use modelplane_api::kind::ALL;
use modelplane_api::xrd::crd;
use serde_json::Value;

use super::shown;
use crate::schema::Schema;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema_of(crd: &Value) -> impl Iterator<Item = &Value> {
    crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|version| &version["schema"]["openAPIV3Schema"])
}

#[test]
fn every_definition_of_the_project_parses() {
    for info in ALL.iter() {
        let crd = crd(info);
        assert!(schema_of(&crd).count() > 0);
        for schema in schema_of(&crd) {
            let parsed = Schema::parse(schema);
            assert!(parsed.is_ok(), "{}: {:#?}", info.kind, shown(&parsed.unwrap_err()));
        }
    }
}

#[test]
fn every_third_party_definition_parses() {
    let mut count = 0;
    for folder in fs::read_dir(root().join("third_party/crds")).unwrap() {
        let file = folder.unwrap().path().join("crds.json");
        let crds: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let crds = crds.as_array().cloned().unwrap_or_else(|| vec![crds]);
        for crd in crds.iter().flat_map(|crd| match &crd["items"] {
            Value::Array(items) => items.clone(),
            _ => vec![crd.clone()],
        }) {
            for schema in schema_of(&crd) {
                let parsed = Schema::parse(schema);
                let name = &crd["metadata"]["name"];
                assert!(parsed.is_ok(), "{name}: {:#?}", shown(&parsed.unwrap_err()));
                count += 1;
            }
        }
    }
    assert!(count > 5, "{count}");
}

#[test]
fn every_example_is_valid() {
    let mut count = 0;
    for folder in fs::read_dir(root().join("examples")).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let text = fs::read_to_string(&file).unwrap();
            let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            for mut object in objects {
                let Some(info) = ALL.iter().find(|info| {
                    object["kind"] == info.kind && object["apiVersion"] == info.api_version().as_str()
                }) else {
                    continue;
                };
                let crd = crd(info);
                let schema = Schema::parse(schema_of(&crd).next().unwrap()).unwrap();
                schema.apply_defaults(&mut object);
                let dropped = schema.prune(&mut object);
                assert!(dropped.is_empty(), "{}: {dropped:?}", file.display());
                let causes = schema.validate(&object, None);
                assert!(causes.is_empty(), "{}: {:#?}", file.display(), shown(&causes));
                assert!(schema.validate(&object, Some(&object)).is_empty());
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count}");
}
