//! Bodies that kubectl 1.32 sent, against the JSON that it prints for the same commands.
//!
//! `testdata/protobuf/*.bin` are request bodies of `kubectl create …`, the `.json` beside each is the output of
//! the same command with `--dry-run=client -o json`.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::builtin;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/protobuf")
}

fn body(name: &str) -> Vec<u8> {
    fs::read(folder().join(name).with_extension("bin")).unwrap()
}

/// The bodies with their names, in order.
fn bodies() -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "bin"));
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

/// Without nulls and without the status, which clients do not set.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn comparable(mut object: Value) -> Value {
    without_nulls(&mut object);
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
    }
    object
}

#[test]
fn bodies_of_kubectl_are_the_objects_of_their_json() {
    let mut compared = 0;
    for (name, body) in bodies() {
        let decoded = decode(&body).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Ok(text) = fs::read_to_string(folder().join(&name).with_extension("json")) else { continue };
        let mut expected = comparable(serde_json::from_str(&text).unwrap());
        let mut found = comparable(decoded);
        // The namespace is added when an object is printed and not when it is sent, or the other way round.
        for object in [&mut expected, &mut found] {
            if object["metadata"]["namespace"] == "default" {
                object["metadata"].as_object_mut().unwrap().shift_remove("namespace");
            }
        }
        assert_eq!(found, expected, "{name}");
        compared += 1;
    }
    assert!(compared >= 25, "only {compared} bodies were compared");
}

#[test]
fn bodies_of_kubectl_are_valid_and_normal() {
    for (name, body) in bodies() {
        let object = decode(&body).unwrap();
        let api_version = object["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object["kind"].as_str().unwrap();
        let Some(kind) = builtin::find(group, version, kind) else { continue };
        let mut normal = object.clone();
        kind.normalize(&mut normal);
        let fields = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(fields(&normal).iter().all(|field| fields(&object).contains(field)), "{name}");
    }
}

#[test]
fn reviews_are_decoded() {
    let review = decode(&body("can-i")).unwrap();
    assert_eq!(review["kind"], "SelfSubjectAccessReview");
    let expected =
        json!({"namespace": "team-a", "verb": "create", "group": "apps", "resource": "deployments"});
    assert_eq!(review["spec"]["resourceAttributes"], expected);
    assert_eq!(decode(&body("can-i-list")).unwrap()["spec"], json!({"namespace": "default"}));
    assert_eq!(decode(&body("whoami")).unwrap()["kind"], "SelfSubjectReview");
}

/// A number in base 128.
fn varint(mut number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// A field of bytes.
fn field(number: usize, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len()), content.to_vec()].concat()
}

fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &type_meta), field(2, object)].concat()
}

#[test]
fn zeros_stay_exactly_where_gos_json_has_them() {
    // replicas 0 is a pointer; minReadySeconds 0 is not.
    let deployment = decode(&envelope("apps/v1", "Deployment", &field(2, &[0x08, 0, 0x28, 0]))).unwrap();
    let template = json!({"metadata": {}, "spec": {"containers": null}});
    let spec = json!({"replicas": 0, "selector": null, "template": template, "strategy": {}});
    let mut found = deployment["spec"].clone();
    found.as_object_mut().unwrap().entry("selector").or_insert(Value::Null);
    assert_eq!(found, spec);
    // Not a pointer, but always there.
    assert_eq!(decode(&envelope("scheduling.k8s.io/v1", "PriorityClass", &[])).unwrap()["value"], 0);
}

#[test]
fn special_messages_are_what_json_has() {
    let lease = field(2, &[field(3, &[]), field(4, &[0x08, 1, 0x10, 0xe8, 0x07])].concat());
    let lease = decode(&envelope("coordination.k8s.io/v1", "Lease", &lease)).unwrap();
    assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:00:01.000001Z");
    let port = [&[0x18, 80][..], &field(4, &[field(3, b"http"), vec![0x08, 1]].concat())].concat();
    let service = decode(&envelope("v1", "Service", &field(2, &field(1, &port)))).unwrap();
    assert_eq!(service["spec"]["ports"], json!([{"port": 80, "targetPort": "http"}]));
    let managed = field(17, &field(7, &field(1, br#"{"f:data":{}}"#)));
    let map = decode(&envelope("v1", "ConfigMap", &field(1, &managed))).unwrap();
    assert_eq!(map["metadata"]["managedFields"], json!([{"fieldsV1": {"f:data": {}}}]));
    let extra =
        field(5, &[field(1, b"scopes"), field(2, &[field(1, b"a"), field(1, b"b")].concat())].concat());
    let review =
        decode(&envelope("authorization.k8s.io/v1", "SubjectAccessReview", &field(2, &extra))).unwrap();
    assert_eq!(review["spec"]["extra"], json!({"scopes": ["a", "b"]}));
    let volume = field(1, &[field(1, b"v"), field(2, &field(2, &[]))].concat());
    let pod = decode(&envelope("v1", "Pod", &field(2, &volume))).unwrap();
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    let delete = [&[0x08, 5][..], &field(4, b"Orphan")].concat();
    let delete = decode(&envelope("v1", "DeleteOptions", &delete)).unwrap();
    assert_eq!((&delete["gracePeriodSeconds"], &delete["propagationPolicy"]), (&json!(5), &json!("Orphan")));
}

/// A schema within schemas, `depth` deep.
fn nested(depth: usize) -> Vec<u8> {
    const NOT: usize = 28;
    let schema = (0..depth).fold(Vec::new(), |inner, _| field(NOT, &inner));
    let version = field(4, &field(1, &schema));
    envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", &field(2, &field(7, &version)))
}

#[test]
fn what_is_no_object_is_refused() {
    let unknown = |api_version: &str, kind: &str| ProtobufError::UnknownKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    };
    let encoded = [envelope("v1", "Pod", &[]), field(3, b"gzip")].concat();
    let bomb = field(2, &[0x12, 0].repeat(1 << 20));
    for (name, body, expected) in [
        ("nothing", Vec::new(), ProtobufError::Magic),
        ("JSON", b"{}".to_vec(), ProtobufError::Magic),
        ("no kind", MAGIC.to_vec(), unknown("", "")),
        ("a custom resource", envelope("example.org/v1", "Widget", &[]), unknown("example.org/v1", "Widget")),
        (
            "a group alike",
            envelope("apps.example.org/v1", "Deployment", &[]),
            unknown("apps.example.org/v1", "Deployment"),
        ),
        ("a part of a kind", envelope("v1", "PodSpec", &[]), unknown("v1", "PodSpec")),
        ("a coded object", encoded, ProtobufError::ContentEncoding("gzip".to_owned())),
        ("deep nesting", nested(100), ProtobufError::TooDeep),
        ("a bomb", envelope("v1", "Pod", &bomb), ProtobufError::TooLarge),
    ] {
        assert_eq!(decode(&body), Err(expected), "{name}");
    }
    for (name, object) in [
        ("half a field", vec![0x0a, 5, 1]),
        ("an endless length", vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ("an endless number", [0xff; 11].to_vec()),
        ("field zero", vec![0x02, 0]),
        ("a group", vec![0x0b]),
        ("a number for a message", vec![0x08, 1]),
        ("no UTF-8", field(1, &field(1, &[0xff]))),
        ("no JSON", field(1, &field(17, &field(7, &field(1, b"{"))))),
    ] {
        assert!(decode(&envelope("v1", "Pod", &object)).is_err(), "{name}");
    }
    assert!(decode(&nested(20)).is_ok(), "nesting within the limit");
}

#[test]
fn truncated_bodies_never_panic() {
    for (_, body) in bodies() {
        for end in 0..body.len() {
            let _ = decode(&body[..end]);
        }
    }
}

proptest! {
    #[test]
    fn changed_bodies_never_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let bodies = bodies();
        let mut body = which.get(&bodies).1.clone();
        for (at, byte) in changes {
            *at.get_mut(&mut body) = byte;
        }
        let _ = decode(&body);
    }

    #[test]
    fn any_object_of_any_kind_never_panics(
        kind in prop::sample::select(builtin::kinds()),
        object in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let _ = decode(&envelope(&kind.api_version(), kind.kind, &object));
    }
}
