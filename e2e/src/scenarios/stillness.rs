//! Reconciling what is as it should be changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use modelplane_api::kind::MODELPLANE;

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
        let before = versions(environment).await.map_err(not_yet)?;
        tokio::time::sleep(A_PAUSE).await;
        let now = versions(environment).await.map_err(not_yet)?;
        if now == before { Ok(before) } else { Err("it is still changing".to_owned()) }
    })
    .await?;
    throughout("nothing is written", A_ROUND, async || {
        let now = versions(environment).await.map_err(not_yet)?;
        let changed: Vec<&String> = now.keys().filter(|key| now.get(*key) != before.get(*key)).collect();
        let gone: Vec<&String> = before.keys().filter(|key| !now.contains_key(*key)).collect();
        if changed.is_empty() && gone.is_empty() { Ok(()) } else { Err(format!("{changed:?} {gone:?}")) }
    })
    .await
}

/// Resource versions of everything that our function decides about.
async fn versions(environment: &Environment) -> Outcome<BTreeMap<String, String>> {
    let mut versions = BTreeMap::new();
    let ours = MODELPLANE.iter().map(|info| Resource::of(info)).chain([OBJECT, RELEASE, HTTP_ROUTE]);
    for resource in ours {
        for object in environment.control().list(resource, "", "").await? {
            let key = format!("{} {}", resource.kind, name(&object));
            versions.insert(key, text(&object, "/metadata/resourceVersion").to_owned());
        }
    }
    for (cluster, _) in CLUSTERS {
        for resource in [DEPLOYMENT, RESOURCE_CLAIM_TEMPLATE, HTTP_ROUTE] {
            for object in environment.workload(cluster)?.list(resource, "", "").await? {
                let key = format!("{cluster}: {} {}", resource.kind, name(&object));
                versions.insert(key, text(&object, "/metadata/resourceVersion").to_owned());
            }
        }
    }
    Ok(versions)
}
