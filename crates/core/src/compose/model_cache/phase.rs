//! How far staging on a cluster is, from what is observed there (spec cache §3).

use modelplane_api::model_cache::{CachePhase, ModelCache};
use modelplane_api::names::{cache_claim_key, cache_job_key};

use crate::contract::{Observed, Resource};
use crate::document::Document;

/// The phase of a cluster.
///
/// Once `Ready` it stays so, by the cache's own status, while the volume is bound: the Job is gone by then.
pub(super) fn of(observed: &Observed<'_>, cache: &ModelCache, cluster: &str) -> CachePhase {
    let remote = |key: &str| observed.resources.get(key).and_then(remote_object);
    let job = remote(&cache_job_key(cluster)).map(Resource::new);
    let finished = |condition: &str| job.as_ref().is_some_and(|job| job.is_true(condition));
    let bound = remote(&cache_claim_key(cluster))
        .is_some_and(|claim| claim.text_at(&["status", "phase"]) == Some("Bound"));
    if finished("Failed") {
        CachePhase::Failed
    } else if !bound {
        CachePhase::Pending
    } else if finished("Complete") || was_ready(cache, cluster) {
        CachePhase::Ready
    } else {
        CachePhase::Hydrating
    }
}

/// The object on the cluster, as last seen.
fn remote_object<'a>(object: &Resource<'a>) -> Option<Document<'a>> {
    object.document.get(&["status", "atProvider", "manifest"])
}

fn was_ready(cache: &ModelCache, cluster: &str) -> bool {
    let clusters = cache.status.as_ref().map(|status| status.clusters()).unwrap_or_default();
    clusters.iter().any(|entry| entry.name == cluster && entry.phase == Some(CachePhase::Ready))
}
