//! Problems name the field, the value and the remedy; decoding and defaults follow the wire.

use crate::support::yaml;
use modelplane_api::common::{Taint, TaintEffect, Toleration, TolerationOperator};
use modelplane_api::kind::{self, UnknownKind};
use modelplane_api::model_deployment::ModelDeployment;
use modelplane_api::validate::{PATTERNS, prepare};
use modelplane_api::{apply_defaults, validate};
use proptest::prelude::*;
use serde_json::{Value, json};

const DEPLOYMENT: &str = "
apiVersion: modelplane.ai/v1alpha1
kind: ModelDeployment
metadata: {name: qwen, namespace: ml}
spec:
  replicas: 2
  template:
    spec:
      engines:
      - name: main
        members:
        - nodeSelector: {devices: [{name: gpu, selectors: [{cel: 'true'}]}]}
          template: {spec: {containers: [{name: engine, image: vllm}]}}
";

/// One edit of a valid document and the problem that follows.
struct Case {
    name: &'static str,
    edit: fn(&mut Value),
    path: &'static str,
    message: &'static str,
    hint: Option<&'static str>,
}

#[test]
fn each_kind_of_mistake_is_reported_where_it_is() {
    let cases = [
        Case {
            name: "a required field is missing",
            edit: |doc| drop(doc["spec"].as_object_mut().unwrap().remove("replicas")),
            path: "spec.replicas",
            message: "required",
            hint: None,
        },
        Case {
            name: "null is missing",
            edit: |doc| doc["spec"]["replicas"] = Value::Null,
            path: "spec.replicas",
            message: "required",
            hint: None,
        },
        Case {
            name: "a number too large",
            edit: |doc| doc["spec"]["replicas"] = json!(11),
            path: "spec.replicas",
            message: "11 is too large; the most is 10",
            hint: None,
        },
        Case {
            name: "a fraction",
            edit: |doc| doc["spec"]["replicas"] = json!(1.5),
            path: "spec.replicas",
            message: "should be an integer, not 1.5",
            hint: None,
        },
        Case {
            name: "a number in quotes",
            edit: |doc| doc["spec"]["replicas"] = json!("2"),
            path: "spec.replicas",
            message: "should be an integer, not the text \"2\"",
            hint: Some("write the value without quotes"),
        },
        Case {
            name: "a misspelt field",
            edit: |doc| doc["spec"]["replica"] = json!(1),
            path: "spec.replica",
            message: "unknown field",
            hint: Some("did you mean replicas?"),
        },
        Case {
            name: "a field in the wrong place",
            edit: |doc| doc["spec"]["tolerations"] = json!([]),
            path: "spec.tolerations",
            message: "unknown field",
            hint: Some("did you mean spec.template.spec.tolerations?"),
        },
        Case {
            name: "an unknown value of an enum",
            edit: |doc| doc["spec"]["template"]["spec"]["serving"] = json!({ "mode": "PrefilDecode" }),
            path: "spec.template.spec.serving.mode",
            message: "\"PrefilDecode\" is not one of Unified, PrefillDecode",
            hint: Some("did you mean PrefillDecode?"),
        },
        Case {
            name: "an empty text",
            edit: |doc| doc["spec"]["template"]["spec"]["modelCacheRef"] = json!({ "name": "" }),
            path: "spec.template.spec.modelCacheRef.name",
            message: "must not be empty",
            hint: None,
        },
        Case {
            name: "an empty list",
            edit: |doc| doc["spec"]["template"]["spec"]["engines"] = json!([]),
            path: "spec.template.spec.engines",
            message: "has 0 items; at least 1 needed",
            hint: None,
        },
        Case {
            name: "two list items with the same key",
            edit: |doc| {
                let engines = doc["spec"]["template"]["spec"]["engines"].as_array_mut().unwrap();
                engines.push(engines[0].clone());
            },
            path: "spec.template.spec.engines[1]",
            message: "another item has the same name: \"main\"",
            hint: None,
        },
        Case {
            name: "a label value that is a number",
            edit: |doc| doc["spec"]["template"]["metadata"] = json!({ "labels": { "example.com/tier": 1 } }),
            path: "spec.template.metadata.labels[\"example.com/tier\"]",
            message: "should be a text, not 1",
            hint: Some("put the value in quotes"),
        },
        Case {
            name: "a name that is no name",
            edit: |doc| doc["metadata"]["name"] = json!("Qwen_2"),
            path: "metadata.name",
            message: "\"Qwen_2\" is not a valid name",
            hint: Some("use lower-case letters, digits, '-' and '.', with a letter or digit at both ends"),
        },
        Case {
            name: "no metadata",
            edit: |doc| doc["metadata"] = Value::Null,
            path: "metadata",
            message: "required, with at least a name",
            hint: None,
        },
    ];
    assert_eq!(validate(&yaml(DEPLOYMENT)).unwrap(), []);
    for case in cases {
        let mut document = yaml(DEPLOYMENT);
        (case.edit)(&mut document);
        let problems = validate(&document).unwrap();
        assert_eq!(problems.len(), 1, "{}: {problems:#?}", case.name);
        let problem = &problems[0];
        let found = (problem.path.as_str(), problem.message.as_str(), problem.hint.as_deref());
        assert_eq!(found, (case.path, case.message, case.hint), "{}", case.name);
    }
}

#[test]
fn problems_of_an_older_document_have_the_paths_it_was_written_with() {
    let document = yaml(
        "{apiVersion: modelplane.ai/v1alpha1, kind: ModelDeployment, metadata: {name: x, namespace: y},
          spec: {replicas: 1, engines: [{name: ''}]}}",
    );
    let paths: Vec<String> = validate(&document).unwrap().into_iter().map(|problem| problem.path).collect();
    assert_eq!(paths, ["spec.engines[0].members", "spec.engines[0].name"]);
}

#[test]
fn unknown_kinds_are_told_apart() {
    let of = |api_version: &str, kind: &str| {
        kind::of(&json!({ "apiVersion": api_version, "kind": kind })).map(|info| info.plural)
    };
    assert_eq!(of("modelplane.ai/v1alpha1", "ModelService"), Ok("modelservices"));
    assert!(matches!(of("modelplane.ai/v1beta1", "ModelService"), Err(UnknownKind::WrongVersion { .. })));
    assert!(matches!(of("v1", "Secret"), Err(UnknownKind::Foreign { .. })));
    assert!(matches!(of("example.com/v1", "ModelService"), Err(UnknownKind::Foreign { .. })));
    assert_eq!(kind::of(&json!({ "kind": "X" })).unwrap_err(), UnknownKind::Untyped { field: "apiVersion" });
}

#[test]
fn the_table_of_patterns_is_complete() {
    fn patterns(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(node) => {
                found.extend(node.get("pattern").and_then(Value::as_str).map(str::to_owned));
                node.values().for_each(|child| patterns(child, found));
            }
            Value::Array(list) => list.iter().for_each(|child| patterns(child, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    kind::ALL.iter().for_each(|info| patterns(modelplane_api::schema::normalized(info), &mut found));
    assert!(!found.is_empty());
    for pattern in found {
        assert!(PATTERNS.iter().any(|known| known.expression == pattern), "{pattern} is not in the table");
    }
    for (expression, text, expected) in [
        ("^cr-[0-9a-f]+$", "cr-0a9", true),
        ("^cr-[0-9a-f]+$", "cr-", false),
        ("^cr-[0-9a-f]+$", "cr-G", false),
        ("^[a-z][a-z0-9]{0,11}$", "gpu1", true),
        ("^[a-z][a-z0-9]{0,11}$", "1gpu", false),
        ("^[a-z][a-z0-9]{0,11}$", "abcdefghijklm", false),
    ] {
        let pattern = PATTERNS.iter().find(|pattern| pattern.expression == expression).unwrap();
        assert_eq!((pattern.matches)(text), expected, "{expression} on {text}");
    }
}

#[test]
fn defaults_are_those_of_the_schema() {
    let mut document = yaml(DEPLOYMENT);
    document["spec"]["template"]["spec"]["serving"] = json!({});
    document["spec"]["template"]["spec"]["tolerations"] = json!([{ "key": "k", "operator": null }]);
    apply_defaults(&mut document);
    let spec = &document["spec"]["template"]["spec"];
    assert_eq!(spec["engines"][0]["copies"], 1);
    assert_eq!(spec["engines"][0]["members"][0]["role"], "Standalone");
    assert_eq!(spec["engines"][0]["members"][0]["nodeSelector"]["devices"][0]["count"], 1);
    assert_eq!(spec["serving"]["mode"], "Unified");
    assert_eq!(spec["tolerations"][0]["operator"], "Equal", "null is replaced");
    let once = document.clone();
    apply_defaults(&mut document);
    assert_eq!(document, once, "filling in twice changes nothing");
}

#[test]
fn rules_come_with_the_value_they_are_about() {
    let prepared = prepare(&yaml(DEPLOYMENT)).unwrap();
    let sites = prepared.rule_sites();
    let member = sites.iter().find(|site| site.path == "spec.template.spec.engines[0].members[0]").unwrap();
    assert_eq!(member.rule, "!has(self.worker) || self.role == 'Worker'");
    assert_eq!(member.value["role"], "Standalone", "defaults are filled in first");
    assert!(sites.iter().all(|site| !site.message.is_empty()));
}

#[test]
fn integers_decode_from_doubles_and_nothing_else() {
    let decode = |replicas: Value| {
        let mut document = yaml(DEPLOYMENT);
        document["spec"]["replicas"] = replicas;
        serde_json::from_value::<ModelDeployment>(document).map(|deployment| deployment.spec.replicas)
    };
    assert_eq!(decode(json!(3.0)).unwrap(), 3);
    assert_eq!(decode(json!(-1)).unwrap(), -1);
    for wrong in [json!(1.5), json!(1e300), json!("3"), json!(u64::MAX), json!(true)] {
        assert!(decode(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn a_null_list_is_an_absent_one() {
    let mut document = yaml(DEPLOYMENT);
    document["spec"]["template"]["spec"]["tolerations"] = Value::Null;
    document["metadata"]["labels"] = Value::Null;
    let decoded: ModelDeployment = serde_json::from_value(document).unwrap();
    assert!(decoded.spec.template.spec.tolerations.is_empty() && decoded.metadata.labels.is_empty());
    let written = serde_json::to_value(&decoded).unwrap();
    assert_eq!(written, yaml(DEPLOYMENT), "absent stays absent");
}

#[test]
fn tolerations_match_taints_as_kubernetes_does() {
    let taint = Taint { key: "m".into(), value: Some("v".into()), effect: TaintEffect::NoExecute };
    let toleration = |key: Option<&str>, operator, value: Option<&str>, effect| Toleration {
        key: key.map(str::to_owned),
        operator,
        value: value.map(str::to_owned),
        effect,
    };
    let exists = Some(TolerationOperator::Exists);
    for (name, toleration, expected) in [
        ("same key exists", toleration(Some("m"), exists, None, None), true),
        ("no key tolerates everything", toleration(None, exists, None, None), true),
        ("other effect", toleration(Some("m"), exists, None, Some(TaintEffect::NoSchedule)), false),
        ("equal by default", toleration(Some("m"), None, Some("v"), None), true),
        ("absent value is empty", toleration(Some("m"), None, None, None), false),
        ("equal without key matches nothing", toleration(None, None, Some("v"), None), false),
    ] {
        assert_eq!(toleration.tolerates(&taint), expected, "{name}");
    }
}

/// Any JSON value of limited depth, with field names that occur in the schemas.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("spec".to_owned()),
        Just("template".to_owned()),
        Just("engines".to_owned()),
        Just("nodePools".to_owned()),
        Just("fabric".to_owned()),
        Just("secrets".to_owned()),
        ".{0,4}",
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_panics_on_any_document(spec in any_json(), metadata in any_json(), row in 0..kind::ALL.len()) {
        let info = kind::ALL[row];
        let mut document = json!({
            "apiVersion": info.api_version(), "kind": info.kind, "metadata": metadata, "spec": spec,
        });
        let _ = validate(&document);
        let _ = prepare(&document).map(|prepared| prepared.rule_sites().len());
        apply_defaults(&mut document);
        let _ = modelplane_api::normalize::convert(&mut document);
        let _ = crate::support::round_trip(&document);
    }
}
