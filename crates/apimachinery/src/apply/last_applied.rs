//! The way from client-side to server-side apply, for the manager named `kubectl`.
//!
//! Where an object has the annotation of client-side apply, fields that are as they were last applied that
//! way are no conflicts, and the annotation follows what is applied, so that either way keeps working.

use serde_json::{Value, json};

use crate::schema::go_json;

use super::compare::Comparison;
use super::types::Type;
use super::update::Clash;
use super::walk::{check, fields_of};
use super::{FieldSet, WriteRequest};

const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// All annotations of an object together may not be larger (`TotalAnnotationSizeLimitB`).
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The conflicts that are not explained by an earlier client-side apply.
pub(super) fn not_explained(request: &WriteRequest<'_>, live: &Value, clashes: Vec<Clash>) -> Vec<Clash> {
    if request.manager != MANAGER {
        return clashes;
    }
    match unchanged_since_applied(request, live) {
        Some(allowed) => clashes.into_iter().filter(|clash| !allowed.contains(&clash.path.0)).collect(),
        None => clashes,
    }
}

fn unchanged_since_applied(request: &WriteRequest<'_>, live: &Value) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(request.api_version) {
        return None;
    }
    let (_, schema) = request.versions.iter().find(|(version, _)| *version == request.api_version)?;
    let root = Type::root(schema);
    check(root, &last).ok()?;
    let found = Comparison::of(root, &last, live);
    Some(fields_of(root, &last).difference(&found.changed()).difference(&found.removed))
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Writes what was applied to the annotation, if there is one.
pub(super) fn refresh(request: &WriteRequest<'_>, object: &mut Value, applied: &Value) {
    if request.manager != MANAGER || annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.shift_remove(ANNOTATION);
    }
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else { return };
    annotations.insert(ANNOTATION.to_owned(), json!(format!("{}\n", go_json(&applied))));
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_LIMIT {
        annotations.shift_remove(ANNOTATION);
    }
}
