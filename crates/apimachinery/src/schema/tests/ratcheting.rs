use serde_json::{Value, json};

use super::shown;
use crate::schema::Schema;
use crate::schema::evaluate::evaluate;

fn schema() -> Schema {
    Schema::parse(&json!({
        "type": "object",
        "required": ["must"],
        "properties": {
            "must": { "type": "string" },
            "name": { "type": "string", "maxLength": 3 },
            "spec": {
                "type": "object",
                "properties": {
                    "mode": { "type": "string", "enum": ["A"] },
                    "map": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                        "items": { "type": "object", "required": ["k"], "properties": {
                            "k": { "type": "string" }, "v": { "type": "integer", "maximum": 5 },
                        } } },
                    "atomic": { "type": "array", "items": { "type": "integer", "maximum": 5 } },
                    "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
                    "ruled": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self > 0" }] },
                    "moved": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self >= oldSelf" }] },
                    "started": { "type": "integer", "x-kubernetes-validations": [
                        { "rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": true },
                    ] },
                },
            },
        },
    }))
    .unwrap()
}

#[test]
fn what_did_not_change_is_excused() {
    let spec = |spec: Value| json!({ "must": "x", "spec": spec });
    let cases: [(&str, Value, Value, &[&str]); 14] = [
        (
            "an unchanged field",
            spec(json!({ "mode": "B", "ruled": 1 })),
            spec(json!({ "mode": "B", "ruled": 2 })),
            &[],
        ),
        (
            "a changed field",
            spec(json!({ "mode": "B" })),
            spec(json!({ "mode": "C" })),
            &["spec.mode", "<nil>"],
        ),
        (
            "a missing field stays required",
            json!({ "name": "a" }),
            json!({ "name": "b" }),
            &["must", "<nil>"],
        ),
        ("nothing changed at all", json!({ "name": "abcdef" }), json!({ "name": "abcdef" }), &[]),
        (
            "an item found by its key",
            spec(json!({ "map": [{ "k": "a", "v": 9 }, { "k": "b", "v": 1 }] })),
            spec(json!({ "map": [{ "k": "b", "v": 2 }, { "k": "a", "v": 9 }] })),
            &[],
        ),
        (
            "an item with a changed field",
            spec(json!({ "map": [{ "k": "a", "v": 9 }] })),
            spec(json!({ "map": [{ "k": "a", "v": 8 }] })),
            &["spec.map[0].v"],
        ),
        (
            "an item of an atomic list",
            spec(json!({ "atomic": [9] })),
            spec(json!({ "atomic": [9, 1] })),
            &["spec.atomic[0]"],
        ),
        (
            "an unchanged atomic list",
            spec(json!({ "atomic": [9] })),
            spec(json!({ "atomic": [9], "ruled": 1 })),
            &[],
        ),
        (
            "a set that was wrong before",
            spec(json!({ "set": ["a", "a"] })),
            spec(json!({ "set": ["a", "a", "b", "b"] })),
            &[],
        ),
        (
            "a set that becomes wrong",
            spec(json!({ "set": ["a"] })),
            spec(json!({ "set": ["a", "a"] })),
            &["spec.set[1]"],
        ),
        (
            "an unchanged value under a rule",
            spec(json!({ "ruled": 0 })),
            spec(json!({ "ruled": 0, "mode": "A" })),
            &[],
        ),
        (
            "a changed value under a rule",
            spec(json!({ "ruled": 0 })),
            spec(json!({ "ruled": -1 })),
            &["spec.ruled"],
        ),
        ("a rule about changes", spec(json!({ "moved": 2 })), spec(json!({ "moved": 1 })), &["spec.moved"]),
        ("an optional former value", spec(json!({})), spec(json!({ "started": 1 })), &["spec.started"]),
    ];
    let schema = schema();
    for (name, old, new, expected) in cases {
        let causes = schema.validate(&new, Some(&old));
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, expected, "{name}: {:?}", shown(&causes));
    }
}

#[test]
fn rules_stop_when_the_budget_of_the_object_is_spent() {
    let schema = Schema::parse(&json!({
        "type": "object",
        "properties": { "list": { "type": "array", "maxItems": 100, "items": {
            "type": "array", "maxItems": 50, "items": { "type": "integer" },
            "x-kubernetes-validations": [{ "rule": "self.all(x, self.all(y, x + y >= 0))" }],
        } } },
    }))
    .unwrap();
    let row: Vec<i64> = (0..400).collect();
    let causes = evaluate(&schema, &json!({ "list": vec![row; 100] }), None, "");
    assert_eq!(causes.len(), 1, "{:?}", shown(&causes));
    assert!(causes[0].message.contains("cost"), "{:?}", shown(&causes));
}
