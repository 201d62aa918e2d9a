//! Reconciling what is as it should be changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use modelplane_api::kind::MODELPLANE;
use serde_json::Value;

use super::view::serves;
use crate::environment::{CLUSTERS, Environment};
use crate::failure::{Outcome, not_yet, throughout, until};
use crate::kube_api::{name, text};
use crate::resources::{DEPLOYMENT, HTTP_ROUTE, OBJECT, RELEASE, RESOURCE_CLAIM_TEMPLATE, Resource};

/// Longer than the minute after which Crossplane asks the function again without any event, and its jitter.
const A_ROUND: Duration = Duration::from_secs(70);

/// Long enough for one event to lead to the next.
const A_PAUSE: Duration = Duration::from_secs(5);

/// For a whole round of reconciles no composite, no Object and nothing on the clusters is written.
pub(super) async fn writes_nothing(environment: &mut Environment) -> Outcome {
    serves(environment, "qwen", 3).await?;
    let before = until("the fleet has settled", async || {
        let before = objects(environment).await.map_err(not_yet)?;
        tokio::time::sleep(A_PAUSE).await;
        let now = objects(environment).await.map_err(not_yet)?;
        if changes(&before, &now).is_empty() { Ok(before) } else { Err("it is still changing".to_owned()) }
    })
    .await?;
    throughout("nothing is written", A_ROUND, async || {
        let now = objects(environment).await.map_err(not_yet)?;
        match changes(&before, &now) {
            changes if changes.is_empty() => Ok(()),
            changes => Err(changes.join("; ")),
        }
    })
    .await
}

/// What was written, made or deleted, with the fields that differ.
fn changes(before: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>) -> Vec<String> {
    let version = |object: &Value| text(object, "/metadata/resourceVersion").to_owned();
    let mut changes: Vec<String> =
        before.keys().filter(|key| !now.contains_key(*key)).map(|key| format!("{key} is gone")).collect();
    for (key, object) in now {
        match before.get(key) {
            None => changes.push(format!("{key} is new")),
            Some(old) if version(old) == version(object) => {}
            Some(old) => {
                let differences = differences(old, object);
                // An Object's status is the provider's, which reports whatever happens on the cluster.
                let reported = object["kind"] == OBJECT.kind
                    && differences.iter().all(|difference| difference.starts_with("/status/"));
                if !reported {
                    changes.push(format!("{key}: {}", differences.join(", ")));
                }
            }
        }
    }
    changes
}

/// The fields in which two objects differ, beyond who wrote them when.
fn differences(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), old, new)];
    while let Some((path, old, new)) = open.pop() {
        if old == new || path.ends_with("/resourceVersion") || path.ends_with("/managedFields") {
            continue;
        }
        match (old, new) {
            (Value::Object(fields), Value::Object(others)) => {
                let keys = fields.keys().chain(others.keys().filter(|key| !fields.contains_key(*key)));
                open.extend(keys.map(|key| (format!("{path}/{key}"), &old[key], &new[key])));
            }
            _ => found.push(format!("{path} was {old}, is {new}")),
        }
    }
    found
}

/// Everything that our function decides about.
async fn objects(environment: &Environment) -> Outcome<BTreeMap<String, Value>> {
    let mut objects = BTreeMap::new();
    let ours = MODELPLANE.iter().map(|info| Resource::of(info)).chain([OBJECT, RELEASE, HTTP_ROUTE]);
    for resource in ours {
        for object in environment.control().list(resource, "", "").await? {
            let key = format!("{} {}", resource.kind, name(&object));
            objects.insert(key, object);
        }
    }
    for (cluster, _) in CLUSTERS {
        for resource in [DEPLOYMENT, RESOURCE_CLAIM_TEMPLATE, HTTP_ROUTE] {
            for object in environment.workload(cluster)?.list(resource, "", "").await? {
                let key = format!("{cluster}: {} {}", resource.kind, name(&object));
                objects.insert(key, object);
            }
        }
    }
    Ok(objects)
}
