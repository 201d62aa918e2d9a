//! What the published schemas accept beyond the newer shape of the API: the v0.1 shape (issue of the typed API,
//! item 2). All of it is here; the types and [`super::strict`] know the newer shape alone.
//!
//! | Kind | Accepted too |
//! |---|---|
//! | ModelDeployment | `engines`, `serving`, `clusterSelector`, `modelCacheRef` under `spec`, instead of `template` |
//! | InferenceCluster | `spec.cluster.gke.project`; a string as `spec.nodePools[].fabric` |
//! | GKECluster | `spec.project`; the secret type `GCPServiceAccountKey` in its status |
//! | ServingStack | the secret type `GCPServiceAccountKey` |

use serde_json::{Map, Value, json};

use super::rules::{self, Rule};
use crate::kind::KindInfo;

/// The fields of a ModelDeployment's template that v0.1 has directly under `spec`.
pub(crate) const INLINE_FIELDS: [&str; 4] = ["engines", "serving", "clusterSelector", "modelCacheRef"];

/// The v0.1 name of the secret type `GoogleApplicationCredentials`.
pub(crate) const OLDER_GOOGLE_SECRET: &str = "GCPServiceAccountKey";

/// Extends the schema of a kind by the older shape.
pub(super) fn accept(info: &KindInfo, schema: &mut Value) {
    accept_project(info, schema);
    match info.kind {
        "ModelDeployment" => accept_inline_template(schema),
        "InferenceCluster" => accept_fabric_name(schema),
        "GKECluster" => accept_secret_type(&mut schema["properties"]["status"]),
        "ServingStack" => accept_secret_type(&mut schema["properties"]["spec"]),
        _ => {}
    }
}

/// Accepts the explicit Google Cloud project. Normalizing keeps it, since the newer shape has no field for it.
pub(super) fn accept_project(info: &KindInfo, schema: &mut Value) {
    let properties = match info.kind {
        "InferenceCluster" => {
            schema.pointer_mut("/properties/spec/properties/cluster/properties/gke/properties")
        }
        "GKECluster" => schema.pointer_mut("/properties/spec/properties"),
        _ => None,
    };
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        let description = "Google Cloud project, in the v0.1 shape of the API. Newer manifests leave it out; the \
                           project is then that of the provider configuration.";
        properties.insert("project".to_owned(), json!({ "type": "string", "description": description }));
    }
}

/// Accepts the fields of the template directly under `spec`, and rejects a mixture.
fn accept_inline_template(schema: &mut Value) {
    let Some(spec) = schema.pointer_mut("/properties/spec").and_then(Value::as_object_mut) else { return };
    let inline: Vec<(&str, Value)> = INLINE_FIELDS
        .iter()
        .map(|field| {
            let mut value = spec["properties"]["template"]["properties"]["spec"]["properties"][field].clone();
            let text = value["description"].as_str().unwrap_or_default();
            value["description"] = json!(format!(
                "The v0.1 shape of `template.spec.{field}`; not together with `template`. {text}"
            ));
            (*field, value)
        })
        .collect();
    if let Some(properties) = spec.get_mut("properties").and_then(Value::as_object_mut) {
        properties.extend(inline.into_iter().map(|(field, value)| (field.to_owned(), value)));
    }
    spec.insert("required".to_owned(), json!(["replicas"]));
    let guarded = rules::SERVING_PHASES.iter().map(|Rule { rule, message }| {
        json!({ "rule": format!("!has(self.engines) || ({rule})"), "message": message })
    });
    let mut all: Vec<Value> = rules::EITHER_SHAPE.iter().map(|rule| json!(rule)).collect();
    all.extend(guarded);
    spec.insert("x-kubernetes-validations".to_owned(), Value::Array(all));
}

/// Accepts the name of a fabric's type instead of an object.
///
/// A structural schema has one type per node, so this node has none and keeps what it does not know. CEL cannot
/// see such a node; the two rules about it are therefore restated as schema logic.
fn accept_fabric_name(schema: &mut Value) {
    let Some(spec) = schema.pointer_mut("/properties/spec").and_then(Value::as_object_mut) else { return };
    if let Some(rules) = spec.remove("x-kubernetes-validations").and_then(|rules| match rules {
        Value::Array(rules) => Some(rules),
        _ => None,
    }) {
        let visible: Vec<Value> =
            rules.into_iter().filter(|rule| !rule["rule"].as_str().is_some_and(sees_fabric)).collect();
        if !visible.is_empty() {
            spec.insert("x-kubernetes-validations".to_owned(), Value::Array(visible));
        }
    }
    let sources = spec["properties"]["cluster"]["properties"]["source"]["enum"].clone();
    let others: Vec<&Value> =
        sources.as_array().into_iter().flatten().filter(|source| *source != "Nebius").collect();
    spec.insert(
        "anyOf".to_owned(),
        json!([
            { "properties": { "cluster": { "properties": { "source": { "enum": others } } } } },
            { "properties": { "nodePools": { "items": { "properties": { "fabric": { "anyOf": [
                { "required": ["infiniband"] },
                { "properties": { "type": { "enum": ["None", "EFA"] } } },
            ] } } } } } },
        ]),
    );
    let fabric = &mut spec["properties"]["nodePools"]["items"]["properties"]["fabric"];
    if let Some(fabric) = fabric.as_object_mut() {
        untype(fabric);
    }
}

/// Whether a rule of the spec looks into the fabric of a pool.
fn sees_fabric(rule: &str) -> bool {
    rule.contains("p.fabric")
}

/// Turns the object schema of a fabric into one that accepts a string as well.
fn untype(fabric: &mut Map<String, Value>) {
    fabric.remove("type");
    fabric.remove("x-kubernetes-validations");
    let text = fabric.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{text}\n\nIn the v0.1 shape of the API: just the name of the type.");
    fabric.insert("description".to_owned(), json!(description));
    fabric.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
    // Applies to strings only.
    fabric.insert("pattern".to_owned(), json!("^(None|EFA|InfiniBand)$"));
    fabric.insert(
        "anyOf".to_owned(),
        json!([
            { "not": { "required": ["infiniband"] } },
            { "properties": { "type": { "enum": ["InfiniBand"] } } },
        ]),
    );
}

/// Accepts the older name of Google credentials in a list `secrets` below the node.
fn accept_secret_type(node: &mut Value) {
    if let Some(types) =
        node.pointer_mut("/properties/secrets/items/properties/type/enum").and_then(Value::as_array_mut)
    {
        types.push(json!(OLDER_GOOGLE_SECRET));
    }
}
