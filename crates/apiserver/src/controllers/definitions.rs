//! The end of a CustomResourceDefinition: its objects are deleted first; when none is left, the finalizer goes,
//! and with it the definition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use modelplane_store::{EventKind, ListRequest};
use serde_json::json;

use super::client::{Client, Failure, Propagation};
use super::feed::{Change, Feed};
use super::graph::Meta;
use super::{Stop, stopped};
use crate::core::{Core, DEFINITIONS};
use crate::object::{finalizers, is_terminating, metadata_text};
use crate::registry::{custom, resource};
use crate::verbs::kinds::DEFINITION_FINALIZER;

const NAME: &str = "crd-finalizer";
/// How soon a definition is looked at again while finalizers hold its objects.
const RETRY: Duration = Duration::from_millis(250);

/// Ends definitions until told to stop.
pub(super) async fn run(core: Arc<Core>, mut stop: Stop) {
    let mut feed = Feed::new(&core.store, resource::prefix(DEFINITIONS.0, DEFINITIONS.1));
    let client = Client::new(core, NAME);
    let mut pending: BTreeSet<Arc<str>> = BTreeSet::new();
    let ends = |value: &[u8]| {
        let meta = Meta::of(value);
        meta.is_terminating() && meta.has_finalizer(DEFINITION_FINALIZER)
    };
    loop {
        tokio::select! {
            () = stopped(&mut stop) => return,
            change = feed.next() => match change {
                Change::End => return,
                Change::All(entries) => {
                    let ending = entries.iter().filter(|entry| ends(&entry.value));
                    pending = ending.map(|entry| Arc::clone(&entry.key)).collect();
                }
                Change::Some(events) => for event in events {
                    if event.kind == EventKind::Put && ends(&event.value) {
                        pending.insert(Arc::clone(&event.key));
                    }
                },
            },
            () = tokio::time::sleep(RETRY), if !pending.is_empty() => {}
        }
        let mut left = BTreeSet::new();
        for key in pending {
            let ended = end(&client, &key).await.unwrap_or_else(|error| {
                if !error.is_outdated() {
                    tracing::warn!(%key, %error, "ending a definition will be tried again");
                }
                false
            });
            if !ended {
                left.insert(key);
            }
        }
        pending = left;
    }
}

/// Takes a definition towards its end; true when there is nothing more to do.
async fn end(client: &Client, key: &str) -> Result<bool, Failure> {
    let Some(definition) = client.read(key) else { return Ok(true) };
    if !is_terminating(&definition) || !finalizers(&definition).contains(&DEFINITION_FINALIZER) {
        return Ok(true);
    }
    let (group, plural) = custom::group_and_plural(&definition);
    let prefix = resource::prefix(&group, &plural);
    for (key, meta) in objects(client, &prefix) {
        if meta.is_terminating() {
            continue;
        }
        match client.delete(&key, &meta.uid, Propagation::Background).await {
            Err(error) if !error.is_outdated() && !error.is_refusal() => return Err(error),
            _ => {}
        }
    }
    if !objects(client, &prefix).is_empty() {
        return Ok(false);
    }
    let kept: Vec<&str> =
        finalizers(&definition).into_iter().filter(|name| *name != DEFINITION_FINALIZER).collect();
    let patch = json!({"metadata": {
        "uid": metadata_text(&definition, "uid"),
        "resourceVersion": metadata_text(&definition, "resourceVersion"),
        "finalizers": kept,
    }});
    client.merge(key, &patch).await?;
    Ok(true)
}

fn objects(client: &Client, prefix: &str) -> Vec<(Arc<str>, Meta)> {
    let request = ListRequest { prefix, ..ListRequest::default() };
    let page = client.core().store.list(request);
    let entries = page.map(|page| page.entries).unwrap_or_default();
    entries.into_iter().map(|entry| (entry.key, Meta::of(&entry.value))).collect()
}
