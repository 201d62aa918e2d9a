//! The published definitions: CompositeResourceDefinitions and Compositions for Crossplane, and plain
//! CustomResourceDefinitions, with what Crossplane would add, for embedded mode (spec api §0).

use serde_json::{Map, Value, json};

use crate::kind::{ALL, KindInfo};
use crate::schema;

/// The definition of every kind, in the order of [`ALL`].
pub fn all() -> Vec<Value> {
    ALL.iter().map(|info| xrd(info)).collect()
}

/// The CompositeResourceDefinition of a kind.
pub fn xrd(info: &KindInfo) -> Value {
    let mut version = Map::new();
    version.insert("name".to_owned(), json!(info.version));
    version.insert("served".to_owned(), json!(true));
    version.insert("referenceable".to_owned(), json!(true));
    if let Some(scale) = scale(info) {
        version.insert("subresources".to_owned(), json!({ "scale": scale }));
    }
    if !info.printer_columns.is_empty() {
        version.insert("additionalPrinterColumns".to_owned(), Value::Array(columns(info)));
    }
    version.insert("schema".to_owned(), json!({ "openAPIV3Schema": schema::published(info) }));
    json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": { "name": info.definition_name() },
        "spec": {
            "group": info.group,
            "scope": info.scope.as_str(),
            "names": names(info),
            "versions": [version],
        },
    })
}

/// The Composition of a kind: a pipeline of our functions.
///
/// One function answers every step. The first step follows from the composite's kind; a later one has to be
/// named, because Crossplane does not tell a function which step it is called for.
pub fn composition(info: &KindInfo) -> Value {
    let steps = info.steps.iter().enumerate();
    let pipeline: Vec<Value> = steps
        .map(|(position, step)| {
            let mut entry = json!({ "step": step.name, "functionRef": { "name": step.function } });
            if position > 0 {
                entry["input"] =
                    json!({ "apiVersion": info.api_version(), "kind": "StepInput", "step": step.name });
            }
            entry
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": { "name": info.composition },
        "spec": {
            "compositeTypeRef": { "apiVersion": info.api_version(), "kind": info.kind },
            "mode": "Pipeline",
            "pipeline": pipeline,
        },
    })
}

/// The CustomResourceDefinition that Crossplane makes of a kind's definition: for embedded mode.
pub fn crd(info: &KindInfo) -> Value {
    let mut names = names(info);
    names.insert("singular".to_owned(), json!(info.kind.to_lowercase()));
    names.insert("listKind".to_owned(), json!(format!("{}List", info.kind)));
    let mut subresources = Map::from_iter([("status".to_owned(), json!({}))]);
    if let Some(scale) = scale(info) {
        subresources.insert("scale".to_owned(), scale);
    }
    let mut printer_columns = columns(info);
    printer_columns.extend(crossplane_columns());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": info.definition_name() },
        "spec": {
            "group": info.group,
            "scope": info.scope.as_str(),
            "names": names,
            "versions": [{
                "name": info.version,
                "served": true,
                "storage": true,
                "subresources": subresources,
                "additionalPrinterColumns": printer_columns,
                "schema": { "openAPIV3Schema": schema::installed(info) },
            }],
        },
    })
}

/// The names of a kind, as both kinds of definition write them.
fn names(info: &KindInfo) -> Map<String, Value> {
    let mut names = Map::new();
    names.insert("kind".to_owned(), json!(info.kind));
    names.insert("plural".to_owned(), json!(info.plural));
    if !info.short_names.is_empty() {
        names.insert("shortNames".to_owned(), json!(info.short_names));
    }
    if !info.categories.is_empty() {
        names.insert("categories".to_owned(), json!(info.categories));
    }
    names
}

/// The scale subresource of a kind.
fn scale(info: &KindInfo) -> Option<Value> {
    info.scale.map(|scale| {
        json!({
            "specReplicasPath": scale.spec_replicas_path,
            "statusReplicasPath": scale.status_replicas_path,
        })
    })
}

/// The printer columns of a kind.
fn columns(info: &KindInfo) -> Vec<Value> {
    info.printer_columns
        .iter()
        .map(|column| json!({ "name": column.name, "type": column.type_, "jsonPath": column.json_path }))
        .collect()
}

/// The printer columns that Crossplane adds to every kind.
fn crossplane_columns() -> [Value; 5] {
    [
        json!({ "name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Synced')].status" }),
        json!({ "name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status" }),
        json!({ "name": "COMPOSITION", "type": "string", "jsonPath": ".spec.crossplane.compositionRef.name" }),
        json!({
            "name": "COMPOSITIONREVISION",
            "type": "string",
            "jsonPath": ".spec.crossplane.compositionRevisionRef.name",
            "priority": 1,
        }),
        json!({ "name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp" }),
    ]
}
