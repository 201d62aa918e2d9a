//! The definitions derived from the types are those that are published.

use crate::support::shared;
use modelplane_api::{kind, schema, xrd};
use serde_json::{Value, json};

/// Removes what is ours to word: descriptions of schema nodes and messages of rules.
fn without_words(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    node.remove("description");
    if let Some(rules) = node.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
        for rule in rules {
            let rule = rule.as_object_mut().expect("a rule is an object");
            rule.remove("message");
            // Line breaks within an expression are formatting.
            let expression = rule["rule"].as_str().expect("a rule is a text").split_whitespace();
            let expression = expression.collect::<Vec<_>>().join(" ");
            rule.insert("rule".to_owned(), expression.into());
        }
    }
    if let Some(required) = node.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by_key(|name| name.as_str().map(str::to_owned));
    }
    for child in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(child) {
            without_words(child);
        }
    }
    if let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(without_words);
    }
}

fn schema_of(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Paths at which two documents differ.
fn differences(path: &str, left: &Value, right: &Value, found: &mut Vec<String>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<_> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let (l, r) = (left.get(key).unwrap_or(&Value::Null), right.get(key).unwrap_or(&Value::Null));
                differences(&format!("{path}/{key}"), l, r, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (l, r)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}/{index}"), l, r, found);
            }
        }
        _ if left != right => found.push(format!("{path}: {left} should be {right}")),
        _ => {}
    }
}

/// The sixth cloud, which the published API does not have (issue 4, "adding a provider"): the exact places
/// where it shows in the schemas of published kinds.
const ADDED_CLOUD: [(&str, &str, &str); 2] = [
    ("InferenceClass", "/properties/spec/properties/provisioning", "provider"),
    ("InferenceCluster", "/properties/spec/properties/cluster", "source"),
];

/// Takes the added cloud out again; panics if it is not there, so that the list stays true.
fn without_added_cloud(kind: &str, schema: &mut Value) {
    for (_, pointer, discriminator) in ADDED_CLOUD.iter().filter(|(added, ..)| *added == kind) {
        let node = schema.pointer_mut(pointer).expect("the block exists");
        node["properties"].as_object_mut().expect("fields").remove("doks").expect("the cloud's block");
        let values = node["properties"][discriminator]["enum"].as_array_mut().expect("an enum");
        let before = values.len();
        values.retain(|value| value != "DOKS");
        assert_eq!(values.len(), before - 1);
        let rule = format!("self.{discriminator} != 'DOKS' || has(self.doks)");
        let rules = node["x-kubernetes-validations"].as_array_mut().expect("rules");
        let before = rules.len();
        rules.retain(|entry| entry["rule"] != rule.as_str());
        assert_eq!(rules.len(), before - 1);
    }
}

/// Fields of our own gateway, which the published API does not have (issue 7): where they show.
const ADDED_FIELDS: [(&str, &str, &[&str]); 4] = [
    ("InferenceGateway", "/properties/spec", &["modelplane"]),
    ("ModelEndpoint", "/properties/spec", &["auth", "tls", "host", "model", "headers"]),
    ("ModelService", "/properties/spec", &["traffic"]),
    ("ModelService", "/properties/spec/properties/endpoints/items", &["tier"]),
];

/// Takes the fields of our own gateway out again; panics if one is not there or is required.
fn without_added_fields(kind: &str, schema: &mut Value) {
    for (_, pointer, fields) in ADDED_FIELDS.iter().filter(|(added, ..)| *added == kind) {
        let node = schema.pointer_mut(pointer).expect("the block exists");
        for field in *fields {
            node["properties"].as_object_mut().expect("fields").remove(*field).expect("the field");
            let required = node["required"].as_array().cloned().unwrap_or_default();
            assert!(!required.contains(&Value::from(*field)), "{kind}: {field} may be left out");
        }
    }
    if kind == "InferenceGateway" {
        let backends = schema["properties"]["spec"]["properties"]["backend"]["enum"].as_array_mut();
        assert_eq!(backends.expect("an enum").pop(), Some(Value::from("Modelplane")));
    }
}

#[test]
fn definitions_equal_the_published_ones_but_for_the_older_shape() {
    let Some(folder) = shared("spec/schemas") else { return };
    let mut found = Vec::new();
    for info in kind::MODELPLANE {
        let text = std::fs::read_to_string(folder.join(format!("{}.json", info.plural))).unwrap();
        let mut expected: Value = serde_json::from_str(&text).unwrap();
        let mut actual = xrd::xrd(info);
        *schema_of(&mut actual) = schema::strict(info).clone();
        without_added_cloud(info.kind, schema_of(&mut actual));
        without_added_fields(info.kind, schema_of(&mut actual));
        without_words(schema_of(&mut actual));
        without_words(schema_of(&mut expected));
        differences(info.plural, &actual, &expected, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Everything in which the published definitions differ from the newer shape, as paths below the schema.
const OLDER_SHAPE: [(&str, &[&str]); 4] = [
    (
        "ModelDeployment",
        &[
            "/properties/spec/properties/clusterSelector",
            "/properties/spec/properties/engines",
            "/properties/spec/properties/modelCacheRef",
            "/properties/spec/properties/serving",
            "/properties/spec/required",
            "/properties/spec/x-kubernetes-validations",
        ],
    ),
    (
        "InferenceCluster",
        &[
            "/properties/spec/anyOf",
            "/properties/spec/properties/cluster/properties/gke/properties/project",
            "/properties/spec/properties/nodePools/items/properties/fabric/anyOf",
            "/properties/spec/properties/nodePools/items/properties/fabric/pattern",
            "/properties/spec/properties/nodePools/items/properties/fabric/type",
            "/properties/spec/properties/nodePools/items/properties/fabric/x-kubernetes-preserve-unknown-fields",
            "/properties/spec/properties/nodePools/items/properties/fabric/x-kubernetes-validations",
            "/properties/spec/x-kubernetes-validations",
        ],
    ),
    (
        "GKECluster",
        &[
            "/properties/spec/properties/project",
            "/properties/status/properties/secrets/items/properties/type/enum",
        ],
    ),
    ("ServingStack", &["/properties/spec/properties/secrets/items/properties/type/enum"]),
];

#[test]
fn the_older_shape_is_the_only_addition() {
    for info in kind::ALL {
        let (mut strict, mut published) = (schema::strict(info).clone(), schema::published(info).clone());
        without_words(&mut strict);
        without_words(&mut published);
        let mut found = Vec::new();
        differences("", &published, &strict, &mut found);
        let found: Vec<&str> = found.iter().filter_map(|line| line.split(": ").next()).collect();
        let listed =
            OLDER_SHAPE.iter().find(|(kind, _)| *kind == info.kind).map_or(&[][..], |(_, paths)| paths);
        assert_eq!(found, listed, "{}", info.kind);
    }
}

#[test]
fn every_field_is_described_and_every_rule_has_a_message() {
    fn walk(node: &Value, path: &str, missing: &mut Vec<String>) {
        for rule in node["x-kubernetes-validations"].as_array().into_iter().flatten() {
            if rule["message"].as_str().is_none_or(str::is_empty) {
                missing.push(format!("{path}: message of {}", rule["rule"]));
            }
        }
        for (name, child) in node["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if child["description"].as_str().is_none_or(|text| text.len() < 4) {
                missing.push(path.clone());
            }
            walk(child, &path, missing);
        }
        for key in ["items", "additionalProperties"] {
            if node[key].is_object() {
                walk(&node[key], path, missing);
            }
        }
    }
    let mut missing = Vec::new();
    for info in kind::ALL {
        walk(schema::published(info), info.kind, &mut missing);
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn schemas_are_structural() {
    fn walk(node: &Value, path: &str) {
        let fields = node.as_object().unwrap_or_else(|| panic!("{path} is no schema"));
        let untyped = fields.contains_key("x-kubernetes-preserve-unknown-fields");
        assert!(untyped || node["type"].is_string(), "{path} has no single type");
        for keyword in ["$ref", "$defs", "definitions", "oneOf", "title", "nullable"] {
            assert!(!fields.contains_key(keyword), "{path} has {keyword}");
        }
        if node["type"] == "array" {
            walk(&node["items"], &format!("{path}[]"));
        }
        for (name, child) in node["properties"].as_object().into_iter().flatten() {
            walk(child, &format!("{path}.{name}"));
        }
        if node["additionalProperties"].is_object() {
            walk(&node["additionalProperties"], &format!("{path}{{}}"));
        }
    }
    for info in kind::ALL {
        walk(&schema::installed(info), info.kind);
    }
}

#[test]
fn compositions_call_the_functions_in_order() {
    let info = kind::find("infrastructure.modelplane.ai/v1alpha1", "ServingStack").unwrap();
    let expected = json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": { "name": "servingstacks.infrastructure.modelplane.ai" },
        "spec": {
            "compositeTypeRef": {
                "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
                "kind": "ServingStack",
            },
            "mode": "Pipeline",
            "pipeline": [
                {
                    "step": "compose-serving-stack",
                    "functionRef": { "name": "modelplane-modelplanecompose-serving-stack" },
                },
                {
                    "step": "compose-usages",
                    "functionRef": { "name": "modelplane-modelplanecompose-usages" },
                    "input": {
                        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
                        "kind": "StepInput",
                        "step": "compose-usages",
                    },
                },
            ],
        },
    });
    assert_eq!(xrd::composition(info), expected);
}

#[test]
fn a_plain_definition_has_what_crossplane_adds() {
    let info = kind::find("modelplane.ai/v1alpha1", "ModelDeployment").unwrap();
    let crd = xrd::crd(info);
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["subresources"]["scale"]["statusReplicasPath"], ".status.replicas.total");
    assert_eq!(version["subresources"]["status"], json!({}));
    assert_eq!(crd["spec"]["names"]["singular"], "modeldeployment");
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(schema["metadata"]["properties"]["name"]["maxLength"], 63);
    let references = &schema["spec"]["properties"]["crossplane"]["properties"]["resourceRefs"]["items"];
    assert!(references["properties"]["namespace"].is_null(), "only cluster-scoped composites have it");
    assert_eq!(schema["status"]["properties"]["conditions"]["x-kubernetes-list-map-keys"], json!(["type"]));
    assert_eq!(schema["status"]["properties"]["replicas"]["type"], "object", "its own status stays");
    let cluster = xrd::crd(kind::find("modelplane.ai/v1alpha1", "InferenceCluster").unwrap());
    let schema = &cluster["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let references = &schema["spec"]["properties"]["crossplane"]["properties"]["resourceRefs"]["items"];
    assert_eq!(references["properties"]["namespace"]["type"], "string");
}
