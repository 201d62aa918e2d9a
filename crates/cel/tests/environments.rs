//! Selectors' inputs, plain objects, and validation rules.

use modelplane_cel::device::{
    Attribute, Device, DeviceEnvironment, DeviceFeatures, PreparedDevice, Selector,
};
use modelplane_cel::object::Program;
use modelplane_cel::validation::{Rule, RuleSource, SchemaRules};
use serde_json::{Value, json};

fn device() -> PreparedDevice<'static> {
    PreparedDevice::new(Device {
        driver: "gpu.nvidia.com".into(),
        attributes: vec![
            ("model".into(), Attribute::String("H100".into())),
            ("x.io/n".into(), Attribute::Int(4)),
        ],
        capacity: vec![("memory".into(), "24Gi".into())],
        allow_multiple_allocations: false,
    })
    .expect("the device is well-formed")
}

#[test]
fn inputs_of_a_selector_are_explained() {
    let selector = Selector::compile(
        "device.driver == \"d\" || device.capacity[\"gpu.nvidia.com\"].memory.isInteger() \
         || cel.bind(a, device.attributes[\"x.io\"], a.n > 3 && has(a.m))",
    )
    .unwrap();
    let inputs = selector.explain_inputs(&device());
    let shown: Vec<(&str, &str)> =
        inputs.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("device.driver", "\"gpu.nvidia.com\""),
            ("device.capacity[\"gpu.nvidia.com\"].memory", "24Gi"),
            ("device.attributes[\"x.io\"].n", "4"),
            ("device.attributes[\"x.io\"].m", "absent"),
        ]
    );
}

#[test]
fn features_decide_what_selectors_may_use() {
    let compiles = |features: DeviceFeatures, text: &str| {
        Selector::compile_in(&DeviceEnvironment::new(features), text).is_ok()
    };
    let features = DeviceFeatures::default();
    for (features, text, expected, reason) in [
        (features, "device.allowMultipleAllocations", true, "on by default since 1.36"),
        (
            DeviceFeatures { consumable_capacity: false, ..features },
            "device.allowMultipleAllocations",
            false,
            "the gate is off",
        ),
        (features, "[3, 1].sort() == [1, 3]", true, "lists v3 since 1.34"),
        (
            DeviceFeatures { kubernetes_minor: 33, ..features },
            "[3, 1].sort() == [1, 3]",
            false,
            "before 1.34",
        ),
        (features, "semver(\"1.0.0\").major() == 1", true, "since 1.33"),
        (DeviceFeatures { kubernetes_minor: 32, ..features }, "isSemver(\"1.0.0\")", false, "before 1.33"),
        (features, "math.greatest(1, 2) == 2", false, "no math in Kubernetes"),
        (DeviceFeatures { math: true, ..features }, "math.greatest(1, 2) == 2", true, "switched on"),
        (features, "device.attributes[\"d\"].a.includes(1)", false, "alpha, off by default"),
        (
            DeviceFeatures { list_attributes: true, ..features },
            "device.attributes[\"d\"].a.includes(1)",
            true,
            "the gate is on",
        ),
    ] {
        assert_eq!(compiles(features, text), expected, "{text}: {reason}");
    }
}

#[test]
fn readiness_queries_read_plain_objects() {
    let object = json!({
        "metadata": {"generation": 3},
        "status": {"ratio": 0.5, "conditions": [{"type": "Ready", "status": "False"}, {"type": "Available", "status": "True"}]},
    });
    for (text, expected) in [
        ("object.status.conditions.exists(c, c.type == \"Available\" && c.status == \"True\")", Ok(true)),
        ("object.status.conditions.all(c, c.status == \"True\")", Ok(false)),
        ("has(object.status.nope)", Ok(false)),
        ("object.metadata.generation == 3 && object.status.ratio < 1", Ok(true)),
        ("object.?status.?phase.orValue(\"x\") == \"x\"", Ok(true)),
        ("object.status.nope == 1", Err("no such key: nope")),
        ("other == 1", Err("a variable of the expression has no value")),
    ] {
        let program = Program::compile(&["object", "other"], text).unwrap();
        let result = program.evaluate_bool(&[("object", &object)]);
        assert_eq!(
            result.as_ref().map_err(|error| error.message()),
            expected.as_ref().map_err(|error| *error),
            "{text}"
        );
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "namespace": {"type": "string"},
            "replicas": {"type": "integer"},
            "ratio": {"type": "number"},
            "port": {"x-kubernetes-int-or-string": true},
            "since": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "timeout": {"type": "string", "format": "duration"},
            "data": {"type": "string", "format": "byte"},
            "a.b-c": {"type": "boolean"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "tags": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                "items": {"type": "object", "properties": {"n": {"type": "integer"}, "v": {"type": "string"}}},
            },
            "template": {"type": "object", "x-kubernetes-embedded-resource": true},
        },
    })
}

#[test]
fn rules_see_values_as_their_schema_types_them() {
    let value = json!({
        "name": "n", "namespace": "ns", "replicas": 3, "ratio": 1, "port": "http", "since": "2025-01-01T00:00:00Z",
        "day": "2025-01-02", "timeout": "1h30m", "data": "aGk=", "a.b-c": true, "labels": {"x": "y"},
        "tags": ["b", "a"], "ports": [{"n": 1, "v": "a"}, {"n": 2, "v": "b"}], "unknown": 1,
        "template": {"metadata": {"name": "t"}},
    });
    for (rule, expected) in [
        ("self.name == \"n\" && self.__namespace__ == \"ns\"", Ok(true)),
        ("self.replicas > 2 && self.ratio == 1.0", Ok(true)),
        ("type(self.port) == string ? self.port == \"http\" : self.port > 0", Ok(true)),
        ("self.since.getFullYear() == 2025 && self.day > self.since", Ok(true)),
        ("self.timeout == duration(\"90m\") && self.data == b\"hi\"", Ok(true)),
        ("self.a__dot__b__dash__c && self.labels.x == \"y\" && self.labels.all(k, k == \"x\")", Ok(true)),
        ("self.tags == [\"a\", \"b\"]", Ok(true)),
        ("self.template.metadata.name == \"t\"", Ok(true)),
        ("!has(self.template.kind)", Ok(true)),
        ("self.ports.exists(p, p.n == 2 && p.v == \"b\")", Ok(true)),
        ("self.replicas == \"3\"", Err("== is not defined for (int, string)")),
        ("self.unknown == 1", Err("the object has no field unknown")),
        ("self.any == 1", Err("the object has no field any")),
        ("self.name", Err("the expression must evaluate to bool, not string")),
        ("cel.bind(x, 1, x == 1)", Err("x is not declared")),
    ] {
        let compiled = Rule::compile(&schema(), false, RuleSource { rule, ..RuleSource::default() });
        let result = compiled.map(|rule| rule.evaluate(&value, None).result.expect("the rule evaluates"));
        assert_eq!(
            result.as_ref().map_err(|error| error.message()),
            expected.as_ref().map_err(|error| *error),
            "{rule}"
        );
    }
}

#[test]
fn transition_rules_need_a_former_value_unless_it_is_optional() {
    let source = RuleSource { rule: "self.replicas >= oldSelf.replicas", ..RuleSource::default() };
    let rule = Rule::compile(&schema(), false, source).unwrap();
    assert!(rule.uses_old_self() && rule.applies(true) && !rule.applies(false));
    let verdict = rule.evaluate(&json!({"replicas": 2}), Some(&json!({"replicas": 3})));
    assert_eq!(verdict.result, Ok(false));
    let source = RuleSource {
        rule: "!oldSelf.hasValue() || self.replicas >= oldSelf.value().replicas",
        message_expression: Some("\"replicas must not shrink to \" + string(self.replicas)"),
        optional_old_self: true,
    };
    let rule = Rule::compile(&schema(), false, source).unwrap();
    assert!(rule.applies(false));
    assert_eq!(rule.evaluate(&json!({"replicas": 2}), None).result, Ok(true));
    assert_eq!(rule.evaluate(&json!({"replicas": 2}), Some(&json!({"replicas": 3}))).result, Ok(false));
    assert_eq!(rule.message(&json!({"replicas": 2}), None).as_deref(), Some("replicas must not shrink to 2"));
}

#[test]
fn rules_at_every_level_of_a_schema_run() {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": "self.min <= self.max", "message": "min is above max"}],
                "properties": {
                    "min": {"type": "integer"},
                    "max": {"type": "integer"},
                    "pools": {
                        "type": "array", "maxItems": 10, "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "name": {"type": "string", "maxLength": 10},
                                "size": {
                                    "type": "integer",
                                    "x-kubernetes-validations": [{"rule": "self >= oldSelf", "reason": "FieldValueForbidden"}],
                                },
                            },
                        },
                    },
                },
            },
        },
    });
    let rules = SchemaRules::compile(&schema).unwrap();
    assert!(rules.estimated_cost() > 0 && rules.estimated_cost() < 1000);
    let old =
        json!({"spec": {"min": 1, "max": 2, "pools": [{"name": "b", "size": 5}, {"name": "a", "size": 1}]}});
    let new =
        json!({"spec": {"min": 3, "max": 2, "pools": [{"name": "a", "size": 1}, {"name": "b", "size": 4}]}});
    assert!(rules.validate(&old, None).is_empty());
    let found: Vec<(String, String)> = rules
        .validate(&new, Some(&old))
        .into_iter()
        .map(|violation| (violation.path, violation.message))
        .collect();
    assert_eq!(
        found,
        [
            ("spec".to_owned(), "min is above max".to_owned()),
            ("spec.pools[1].size".to_owned(), "failed rule: self >= oldSelf".to_owned()),
        ]
    );
}
