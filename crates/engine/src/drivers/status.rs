//! Writing what drivers report: status, finalizer, metadata.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::FINALIZER;
use crate::cache::Caches;
use crate::client::{Target, Write};
use crate::conditions::{Conditions, NewCondition};
use crate::controller::{ReconcileError, Trying};
use crate::object::Stored;

/// What a driver reports of an object.
#[derive(Debug, Default)]
pub(super) struct Report<'a> {
    /// Conditions to set.
    pub(super) conditions: Vec<NewCondition<'a>>,
    /// `status.atProvider`, if it is known.
    pub(super) at_provider: Option<Value>,
}

/// Replaces the status of an object unless it says so already.
pub(super) async fn report(
    caches: &Caches,
    object: &Stored,
    report: Report<'_>,
) -> Result<(), ReconcileError> {
    let current = caches.get(&object.key);
    let object = current.as_deref().unwrap_or(object);
    let value = object.value();
    let mut conditions = Conditions::of(&value, Timestamp::now());
    report.conditions.iter().for_each(|condition| conditions.set(condition));
    let mut status = value["status"].as_object().cloned().unwrap_or_default();
    status.insert("conditions".to_owned(), conditions.into_value());
    if let Some(at_provider) = report.at_provider {
        status.insert("atProvider".to_owned(), at_provider);
    }
    let status = Value::Object(status);
    if value["status"] == status {
        return Ok(());
    }
    let api = caches.api();
    let resource = api.resource(object.api_version(), &object.key.kind).await.trying("cannot update")?;
    // As a whole: a merge would keep what is gone from the manifest.
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": object.uid},
        {"op": "add", "path": "/status", "value": status},
    ]);
    match api.write(&resource, &Target::of(&object.key).status(), Write::Json, &patch).await {
        Ok(written) => {
            caches.put(written);
            Ok(())
        }
        Err(error) if error.is_not_found() => Ok(()),
        Err(source) => Err(ReconcileError::Request { action: "cannot write the status", source }),
    }
}

/// Gives an object a finalizer unless it has it.
pub(super) async fn add_finalizer(
    caches: &Caches,
    object: &Stored,
    finalizer: &str,
) -> Result<(), ReconcileError> {
    let mut finalizers = object.finalizers();
    if finalizers.contains(&finalizer) {
        return Ok(());
    }
    finalizers.push(finalizer);
    let version = object.version.to_string();
    let body = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version, "uid": object.uid}});
    let api = caches.api();
    let resource = api.resource(object.api_version(), &object.key.kind).await.trying("cannot update")?;
    let written = api.write(&resource, &Target::of(&object.key), Write::Merge, &body).await;
    caches.put(written.trying("cannot add the finalizer")?);
    Ok(())
}

/// Gives an object the drivers' finalizer, and whatever annotations and labels it lacks.
pub(super) async fn adopt(
    caches: &Caches,
    object: &Arc<Stored>,
    annotations: &[(&str, &str)],
    labels: &[(&str, &str)],
) -> Result<Arc<Stored>, ReconcileError> {
    let mut metadata = Map::new();
    let missing = |wanted: &[(&str, &str)], known: &dyn Fn(&str) -> Option<String>| -> Map<String, Value> {
        let missing = wanted.iter().filter(|(key, value)| known(key).as_deref() != Some(*value));
        missing.map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
    };
    let annotations = missing(annotations, &|key| object.annotation(key).map(str::to_owned));
    let labels = missing(labels, &|key| object.label(key).map(str::to_owned));
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    let mut finalizers = object.finalizers();
    if !finalizers.contains(&FINALIZER) && !object.is_deleting() {
        finalizers.push(FINALIZER);
        metadata.insert("finalizers".to_owned(), json!(finalizers));
        metadata.insert("resourceVersion".to_owned(), json!(object.version.to_string()));
    }
    if metadata.is_empty() {
        return Ok(Arc::clone(object));
    }
    metadata.insert("uid".to_owned(), json!(object.uid));
    let api = caches.api();
    let resource = api.resource(object.api_version(), &object.key.kind).await.trying("cannot update")?;
    let body = json!({"metadata": metadata});
    let written = api.write(&resource, &Target::of(&object.key), Write::Merge, &body).await;
    let written = written.trying("cannot add the finalizer")?;
    Ok(caches.put(written).unwrap_or_else(|| Arc::clone(object)))
}
