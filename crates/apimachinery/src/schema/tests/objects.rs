use serde_json::{Value, json};

use super::{data, paths, recorded, shown};
use crate::schema::Schema;
use crate::schema::decode::decode;

/// Creates an object as a server does: decode, default, prune, validate.
fn create(schema: &Schema, object: &Value) -> (Value, Vec<String>, Vec<String>) {
    let mut object = decode(object.to_string().as_bytes()).unwrap().value;
    schema.apply_defaults(&mut object);
    let dropped = schema.prune(&mut object);
    let dropped = paths(&dropped).into_iter().map(str::to_owned).collect();
    let causes = schema.validate(&object, None);
    (object, dropped, shown(&causes))
}

#[test]
fn objects_are_judged_as_kube_apiserver_does() {
    let recordings = data(include_str!("../testdata/objects.json"));
    let schema = Schema::parse(&recordings["schema"]).unwrap();
    let mut wrong = Vec::new();
    for case in recordings["cases"].as_array().unwrap() {
        // Refused while decoding, before any of this runs.
        if case["refused"].is_string() {
            continue;
        }
        let (object, dropped, mut causes) = create(&schema, &case["object"]);
        if case["old"].is_object() {
            let (old, ..) = create(&schema, &case["old"]);
            causes = shown(&schema.validate(&object, Some(&old)));
        }
        let unknown: Vec<&str> =
            case["unknown"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if causes != recorded(case) {
            wrong.push(format!("{}:\n  ours {causes:#?}\n  real {:#?}", case["name"], recorded(case)));
        }
        if case["stored"].is_object() && object["spec"] != case["stored"] {
            wrong.push(format!("{}:\n  ours {}\n  real {}", case["name"], object["spec"], case["stored"]));
        }
        if dropped != unknown {
            wrong.push(format!("{}:\n  ours {dropped:?}\n  real {unknown:?}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn metadata_is_pruned_but_never_the_type() {
    let schema = Schema::parse(&json!({ "type": "object" })).unwrap();
    let mut object = json!({
        "apiVersion": "t.io/v1", "kind": "T", "spec": {},
        "metadata": { "name": "a", "x": 1, "labels": {}, "ownerReferences": [{ "kind": "", "y": 1 }] },
    });
    let dropped = schema.prune(&mut object);
    assert_eq!(paths(&dropped), ["metadata.ownerReferences[0].y", "metadata.x", "spec"]);
    assert_eq!(
        object,
        json!({
            "apiVersion": "t.io/v1", "kind": "T",
            "metadata": { "name": "a", "ownerReferences": [{ "kind": "" }] },
        })
    );
}

#[test]
fn the_status_is_validated_alone() {
    let schema = Schema::parse(&json!({
        "type": "object",
        "properties": {
            "spec": { "type": "string" },
            "status": { "type": "object", "properties": { "phase": { "type": "string", "maxLength": 3 } } },
        },
    }))
    .unwrap();
    let object = json!({ "spec": 5, "status": { "phase": "long" } });
    assert_eq!(
        shown(&schema.validate_status(&object, None)),
        ["FieldValueTooLong status.phase: Too long: may not be more than 3 bytes"]
    );
}

#[test]
fn unknown_fields_are_kept_where_the_schema_says_so() {
    let schema = Schema::parse(&json!({
        "type": "object",
        "properties": {
            "kept": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": { "strict": { "type": "object", "properties": { "a": { "type": "string" } } } },
            },
            "any": { "type": "object", "additionalProperties": true },
            "list": { "type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {
                "type": "object", "properties": { "a": { "type": "object" } },
            } },
        },
    }))
    .unwrap();
    let mut object = json!({
        "kept": { "x": { "y": 1 }, "strict": { "a": "", "b": 1 } },
        "any": { "x": { "y": 1 }, "z": 1 },
        "list": [{ "x": 1, "a": { "y": 1 } }],
    });
    let dropped = schema.prune(&mut object);
    assert_eq!(paths(&dropped), ["any.x.y", "kept.strict.b", "list[0].a.y"]);
    assert_eq!(object["any"], json!({ "x": {}, "z": 1 }));
    assert_eq!(object["list"], json!([{ "x": 1, "a": {} }]));
}
