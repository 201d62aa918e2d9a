//! The schemas of Kubernetes' built-in kinds, from the OpenAPI documents in its Go module, and their protobuf
//! messages (see [`crate::vendor_messages`]).
//!
//! The OpenAPI v3 documents, not `swagger.json`: only they tell structs that are always there (`default: {}`)
//! from optional ones, on which the ownership of fields depends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::vendor::{Download, Outcome, Report, VendorError, fetch, pretty, read, verify_checksum, write};
use crate::vendor_messages;

const MODULE: &str = "k8s.io/kubernetes";
const VERSION: &str = "v1.36.3";
/// The version of the modules that Kubernetes is made of.
const MODULES_VERSION: &str = "v0.36.3";
const SOURCE: &str = "api/openapi-spec/v3";
const FOLDER: &str = "third_party/kubernetes";
const CHANGES: &str = "made by `cargo xtask vendor`: the definitions that the kinds below need, once each; \
                       descriptions removed, references shortened to the definition's name; messages.json: the protobuf messages of \
                       the same kinds, from the modules named here";

/// The kinds that are kept, by document.
const KINDS: &[(&str, &[&str])] = &[
    (
        "api__v1",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    (
        "apis__admissionregistration.k8s.io__v1",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apis__apiextensions.k8s.io__v1", &["CustomResourceDefinition"]),
    ("apis__apiregistration.k8s.io__v1", &["APIService"]),
    ("apis__apps__v1", &["DaemonSet", "Deployment", "ReplicaSet", "Scale", "StatefulSet"]),
    ("apis__authentication.k8s.io__v1", &["SelfSubjectReview", "TokenReview"]),
    (
        "apis__authorization.k8s.io__v1",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    ("apis__autoscaling__v2", &["HorizontalPodAutoscaler"]),
    ("apis__batch__v1", &["CronJob", "Job"]),
    ("apis__coordination.k8s.io__v1", &["Lease"]),
    ("apis__discovery.k8s.io__v1", &["EndpointSlice"]),
    ("apis__events.k8s.io__v1", &["Event"]),
    ("apis__networking.k8s.io__v1", &["Ingress", "NetworkPolicy"]),
    ("apis__policy__v1", &["PodDisruptionBudget"]),
    ("apis__rbac.authorization.k8s.io__v1", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    (
        "apis__resource.k8s.io__v1",
        &["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"],
    ),
    ("apis__scheduling.k8s.io__v1", &["PriorityClass"]),
    ("apis__storage.k8s.io__v1", &["CSIDriver", "StorageClass"]),
];

/// Vendors the schemas below `root`, the folder of the workspace.
pub(crate) fn vendor(root: &Path, check: bool, report: &mut Report) -> Result<(), VendorError> {
    let module = format!("{MODULE}@{VERSION}");
    let download = fetch(&module)?;
    let folder = root.join(FOLDER);
    let origin_path = folder.join("origin.json");
    verify_checksum(&origin_path, VERSION, &module, &download.sum)?;
    let modules = modules(&origin_path)?;
    let sums = modules.iter().map(|(module, download)| (module.as_str(), download.sum.as_str()));
    let origin = json!({
        "goModule": MODULE,
        "version": VERSION,
        "moduleChecksum": download.sum,
        "sourceFolder": SOURCE,
        "modules": sums.collect::<BTreeMap<_, _>>(),
        "licence": "Apache-2.0",
        "changes": CHANGES,
    });
    let definitions = definitions(&download.dir.join(SOURCE))?;
    let kinds = KINDS.iter().flat_map(|(document, kinds)| kinds.iter().map(move |kind| (*document, *kind)));
    let messages = vendor_messages::messages(kinds, |module| {
        modules[&format!("{module}@{MODULES_VERSION}")].dir.as_path()
    })?;
    for (path, content) in [
        (folder.join("messages.json"), messages),
        (folder.join("schemas.json"), one_per_line(&definitions)),
        (origin_path, pretty(&origin)),
        (folder.join("LICENSE"), read(&download.dir.join("LICENSE"))?),
    ] {
        let outcome: Outcome = write(&path, &content, check)?;
        report.files.push((path, outcome));
    }
    Ok(())
}

/// Downloads the modules with messages; fails if one is not what was vendored before.
fn modules(origin: &Path) -> Result<BTreeMap<String, Download>, VendorError> {
    let recorded: Value =
        read(origin).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let mut modules = BTreeMap::new();
    for module in vendor_messages::MODULES {
        let module = format!("{module}@{MODULES_VERSION}");
        let download = fetch(&module)?;
        if let Some(recorded) = recorded["modules"][&module].as_str().filter(|sum| *sum != download.sum) {
            let (recorded, found) = (recorded.to_owned(), download.sum);
            return Err(VendorError::Checksum { module, recorded, found });
        }
        modules.insert(module, download);
    }
    Ok(modules)
}

/// The definitions that [`KINDS`] need, by name.
fn definitions(folder: &Path) -> Result<BTreeMap<String, Value>, VendorError> {
    let mut kept = BTreeMap::new();
    for (document, kinds) in KINDS {
        let path = folder.join(format!("{document}_openapi.json"));
        let malformed = |message: String| VendorError::Malformed { path: path.clone(), message };
        let document: Value =
            serde_json::from_str(&read(&path)?).map_err(|error| malformed(error.to_string()))?;
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        let schemas = schemas.ok_or_else(|| malformed("no schemas".to_owned()))?;
        let mut wanted: Vec<String> = Vec::new();
        for kind in *kinds {
            let found = schemas.iter().find(|(_, schema)| has_kind(schema, kind));
            let (name, _) = found.ok_or_else(|| malformed(format!("no schema of {kind}")))?;
            wanted.push(name.clone());
        }
        let mut seen = BTreeSet::new();
        while let Some(name) = wanted.pop() {
            let Some(schema) = schemas.get(&name).filter(|_| seen.insert(name.clone())) else { continue };
            let schema = reduced(schema, &mut wanted);
            kept.insert(name, schema);
        }
    }
    Ok(kept)
}

fn has_kind(schema: &Value, kind: &str) -> bool {
    let kinds = schema["x-kubernetes-group-version-kind"].as_array();
    kinds.is_some_and(|kinds| kinds.len() == 1 && kinds[0]["kind"] == kind)
}

/// A schema without prose, its references shortened and collected.
fn reduced(schema: &Value, references: &mut Vec<String>) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut out = Map::new();
    for (keyword, value) in object {
        match keyword.as_str() {
            "description" | "x-kubernetes-unions" => {}
            "$ref" => refer(value, &mut out, references),
            "allOf" => {
                value.as_array().into_iter().flatten().for_each(|of| refer(&of["$ref"], &mut out, references))
            }
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields = fields.map(|(name, schema)| (name.clone(), reduced(schema, references)));
                out.insert(keyword.clone(), Value::Object(fields.collect()));
            }
            "items" | "additionalProperties" => {
                out.insert(keyword.clone(), reduced(value, references));
            }
            _ => {
                out.insert(keyword.clone(), value.clone());
            }
        }
    }
    Value::Object(out)
}

fn refer(reference: &Value, out: &mut Map<String, Value>, references: &mut Vec<String>) {
    let name = reference.as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    out.insert("$ref".to_owned(), json!(name));
    references.push(name.to_owned());
}

/// An object with one field per line: small, and readable as a difference.
fn one_per_line(definitions: &BTreeMap<String, Value>) -> String {
    let lines: Vec<String> =
        definitions.iter().map(|(name, schema)| format!("{}:{schema}", json!(name))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_shortened_and_prose_is_removed() {
        let schema = json!({
            "description": "prose",
            "properties": {
                "description": {"type": "string", "description": "prose"},
                "spec": {"allOf": [{"$ref": "#/components/schemas/a.Spec"}], "default": {}},
                "list": {"type": "array", "items": {"$ref": "#/components/schemas/a.Item"}},
            },
        });
        let mut references = Vec::new();
        let expected = json!({
            "properties": {
                "description": {"type": "string"},
                "spec": {"$ref": "a.Spec", "default": {}},
                "list": {"type": "array", "items": {"$ref": "a.Item"}},
            },
        });
        assert_eq!(reduced(&schema, &mut references), expected);
        assert_eq!(references, ["a.Spec", "a.Item"]);
    }
}
