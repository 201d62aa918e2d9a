//! The end of a namespace: everything in it is deleted; when nothing is left, the finalizer `kubernetes` goes,
//! and with it the namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use modelplane_store::{EventKind, ListRequest};
use serde_json::{Value, json};

use super::client::{Client, Failure, Propagation};
use super::feed::{Change, Feed};
use super::graph::Meta;
use super::{Stop, stopped};
use crate::core::Core;
use crate::object::{is_terminating, metadata_text};
use crate::registry::custom::set_condition;

const NAME: &str = "namespace-controller";
const PREFIX: &str = "core/namespaces/";
const FINALIZER: &str = "kubernetes";
/// How soon a namespace is looked at again while others' finalizers hold its contents.
const RETRY: Duration = Duration::from_millis(250);

/// Ends namespaces until told to stop.
pub(super) async fn run(core: Arc<Core>, mut stop: Stop) {
    let mut feed = Feed::new(&core.store, PREFIX);
    let client = Client::new(core, NAME);
    let mut pending: BTreeSet<Arc<str>> = BTreeSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => return,
            change = feed.next() => match change {
                Change::End => return,
                Change::All(entries) => {
                    let ending = entries.iter().filter(|entry| Meta::of(&entry.value).is_terminating());
                    pending = ending.map(|entry| Arc::clone(&entry.key)).collect();
                }
                Change::Some(events) => for event in events {
                    if event.kind == EventKind::Put && Meta::of(&event.value).is_terminating() {
                        pending.insert(Arc::clone(&event.key));
                    }
                },
            },
            () = tokio::time::sleep(RETRY), if !pending.is_empty() => {}
        }
        let mut left = BTreeSet::new();
        for key in pending {
            match end(&client, &key).await {
                Ok(true) => {}
                Ok(false) => drop(left.insert(key)),
                Err(error) => {
                    if !error.is_outdated() {
                        tracing::warn!(%key, %error, "ending a namespace will be tried again");
                    }
                    left.insert(key);
                }
            }
        }
        pending = left;
    }
}

/// Takes a namespace towards its end; true when there is nothing more to do.
async fn end(client: &Client, key: &str) -> Result<bool, Failure> {
    let Some(namespace) = client.read(key) else { return Ok(true) };
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    let ours = finalizers.is_some_and(|list| list.iter().any(|name| name == FINALIZER));
    if !is_terminating(&namespace) || !ours {
        return Ok(true);
    }
    let left = empty(client, crate::object::name(&namespace)).await?;
    if left.resources.is_empty() {
        let kept: Vec<&Value> = finalizers.into_iter().flatten().filter(|name| *name != FINALIZER).collect();
        let mut finalized = namespace.clone();
        finalized["spec"]["finalizers"] = json!(kept);
        client.replace(key, "finalize", &finalized).await?;
        return Ok(true);
    }
    report(client, key, namespace, &left).await?;
    Ok(false)
}

/// What is still in a namespace: counts by resource, and by finalizer.
#[derive(Default)]
struct Left {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

/// Deletes everything in a namespace that is not being deleted yet; says what remains.
async fn empty(client: &Client, namespace: &str) -> Result<Left, Failure> {
    let mut left = Left::default();
    let registry = client.core().registry();
    let resources: Vec<_> =
        registry.resources().into_iter().filter(|found| found.namespaced).cloned().collect();
    for resource in resources {
        let prefix = resource.key_prefix(Some(namespace));
        let Some(entries) = list(client, &prefix) else { continue };
        for (key, meta) in &entries {
            if meta.is_terminating() {
                continue;
            }
            match client.delete(key, &meta.uid, Propagation::Background).await {
                Ok(()) => {}
                // What is protected remains, and is reported as such.
                Err(error) if error.is_outdated() || error.is_refusal() => {}
                Err(error) => return Err(error),
            }
        }
        let remaining = list(client, &prefix).unwrap_or_default();
        if !remaining.is_empty() {
            left.resources.insert(resource.qualified(), remaining.len());
        }
        for finalizer in remaining.iter().flat_map(|(_, meta)| meta.finalizers.iter().flatten()) {
            *left.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }
    Ok(left)
}

fn list(client: &Client, prefix: &str) -> Option<Vec<(Arc<str>, Meta)>> {
    let request = ListRequest { prefix, ..ListRequest::default() };
    let page = client.core().store.list(request).ok()?;
    let meta = page.entries.into_iter().map(|entry| (entry.key, Meta::of(&entry.value)));
    Some(meta.collect())
}

/// Says in the namespace's status what holds it.
async fn report(client: &Client, key: &str, mut namespace: Value, left: &Left) -> Result<(), Failure> {
    let now = client.core().now();
    let before =
        namespace.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut conditions = before.clone();
    let resources: Vec<String> =
        left.resources.iter().map(|(name, count)| format!("{name} has {count} resource instances")).collect();
    let text = format!("Some resources are remaining: {}", resources.join(", "));
    set_condition(&mut conditions, ("NamespaceContentRemaining", true, "SomeResourcesRemain", &text), &now);
    if !left.finalizers.is_empty() {
        let finalizers: Vec<String> = left
            .finalizers
            .iter()
            .map(|(name, count)| format!("{name} in {count} resource instances"))
            .collect();
        let text =
            format!("Some content in the namespace has finalizers remaining: {}", finalizers.join(", "));
        let wanted = ("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", text.as_str());
        set_condition(&mut conditions, wanted, &now);
    }
    if conditions == before {
        return Ok(());
    }
    tracing::debug!(namespace = metadata_text(&namespace, "name"), "contents remain");
    namespace["status"]["conditions"] = Value::Array(conditions);
    client.replace(key, "status", &namespace).await
}
