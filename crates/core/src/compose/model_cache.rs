//! `ModelCache`: the weights of a model staged on a shared volume of every matching cluster (spec cache).
//!
//! Per cluster a volume claim, a download Job and, for gated models, a copied token; Job and token go once the weights
//! are there. A cluster is matched while it publishes a provider config and a cache StorageClass. One that is still
//! selected but has lost either is *held*: what is staged on it stays and keeps counting, since re-staging costs hours.

mod manifest;
mod phase;
mod report;

use modelplane_api::inference_cluster::InferenceCluster;
use modelplane_api::kind::Object;
use modelplane_api::model_cache::{AuthSecret, CachePhase, HuggingFace, ModelCache, ModelCacheStatus};
use modelplane_api::names::{
    AUTH_SECRET_REQUIREMENT, CLUSTERS_REQUIREMENT, cache_claim_key, cache_job_key, cache_secret_key,
};

use self::manifest::Manifests;
use crate::contract::{Body, ComposeError, Desired, Observed, Ready, Required, Requirement, Resource};

/// A cluster the weights are, or are to be, staged on.
struct Target<'a> {
    name: &'a str,
    phase: CachePhase,
    /// How to reach it; `None` if it is held.
    access: Option<Access<'a>>,
}

/// What a cluster publishes for caches.
#[derive(Clone, Copy)]
struct Access<'a> {
    provider_config: &'a str,
    storage_class: &'a str,
}

/// The access token of a gated model.
enum Token<'a> {
    /// The model needs none.
    NotNeeded,
    /// The Secret, its key or the value is missing.
    Missing(&'a AuthSecret),
    /// The key, and the value in base64.
    Present(&'a str, &'a str),
}

/// Composes everything of a `ModelCache`.
///
/// # Errors
///
/// If the cache cannot be read, has no namespace or name, or lacks the block of its source.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let cache: ModelCache = observed.decode_composite()?;
    let namespace = observed.namespace()?;
    let name = observed.name()?;
    let source = cache.spec.hugging_face.as_ref().ok_or_else(|| {
        observed.error("spec.huggingFace: source HuggingFace needs this block; name the repository in it")
    })?;
    let mut desired = Desired::starting_from(observed);
    require(&mut desired, &cache, source, namespace);
    let Some(token) = token(observed, source.auth_secret.as_ref()) else {
        return Ok(hold(desired, observed, &cache));
    };
    let clusters = match observed.required(CLUSTERS_REQUIREMENT) {
        Required::NotFetched => return Ok(hold(desired, observed, &cache)),
        Required::Absent => &[][..],
        Required::Present(clusters) => clusters,
    };
    let targets: Vec<Target<'_>> =
        clusters.iter().filter_map(|cluster| target(observed, &cache, cluster)).collect();
    if clusters.iter().any(|cluster| cluster.identity().name.is_empty()) {
        // Whose volumes these are cannot be told, so none may go.
        desired.hold_all(observed);
    }
    let manifests = Manifests { namespace, name, source };
    for target in &targets {
        stage(&mut desired, observed, target, &manifests, &token);
    }
    desired.set_status(&report::status(&targets));
    report::write(&mut desired, observed, &targets, &manifests, &token);
    Ok(desired)
}

fn require(desired: &mut Desired<'_>, cache: &ModelCache, source: &HuggingFace, namespace: &str) {
    let labels = cache.spec.cluster_selector.as_ref().map(|selector| selector.match_labels.clone());
    let cluster = InferenceCluster::INFO;
    let clusters = Requirement::labelled(&cluster.api_version(), cluster.kind, labels.unwrap_or_default());
    desired.require(CLUSTERS_REQUIREMENT, clusters);
    if let Some(secret) = &source.auth_secret {
        let requirement = Requirement::named("v1", "Secret", &secret.name).in_namespace(namespace);
        desired.require(AUTH_SECRET_REQUIREMENT, requirement);
    }
}

/// The token; `None` while its Secret has not been fetched.
fn token<'t>(observed: &'t Observed<'_>, secret: Option<&'t AuthSecret>) -> Option<Token<'t>> {
    let Some(secret) = secret else { return Some(Token::NotNeeded) };
    let value = match observed.required(AUTH_SECRET_REQUIREMENT) {
        Required::NotFetched => return None,
        Required::Absent => None,
        Required::Present(secrets) => secrets[0].document.text_at(&["data", secret.key()]),
    };
    Some(value.map_or(Token::Missing(secret), |value| Token::Present(secret.key(), value)))
}

/// Everything stays as it is, the status too: it remembers which clusters have the weights.
fn hold<'a>(mut desired: Desired<'a>, observed: &Observed<'a>, cache: &ModelCache) -> Desired<'a> {
    desired.hold_all(observed);
    if let Some(status) = &cache.status
        && (status.clusters.is_some() || status.summary.is_some())
    {
        desired.set_status(&ModelCacheStatus { conditions: Vec::new(), ..status.clone() });
    }
    desired
}

/// The target a selected cluster is, if it is one: it publishes what staging needs, or has staged weights.
fn target<'a>(observed: &Observed<'a>, cache: &ModelCache, cluster: &Resource<'a>) -> Option<Target<'a>> {
    let name = cluster.document.text_at(&["metadata", "name"])?;
    let access = cluster
        .document
        .text_at(&["status", "providerConfigRef", "name"])
        .zip(cluster.document.text_at(&["status", "cache", "storageClassName"]))
        .map(|(provider_config, storage_class)| Access { provider_config, storage_class });
    if access.is_none() && !observed.has(&cache_claim_key(name)) {
        return None;
    }
    Some(Target { name, phase: phase::of(observed, cache, name), access })
}

/// Wants what a cluster needs in its phase.
fn stage<'a>(
    desired: &mut Desired<'a>,
    observed: &Observed<'a>,
    target: &Target<'a>,
    manifests: &Manifests<'_>,
    token: &Token<'_>,
) {
    let claim = cache_claim_key(target.name);
    let job = cache_job_key(target.name);
    let secret = cache_secret_key(target.name);
    let staged = target.phase == CachePhase::Ready;
    let Some(access) = target.access else {
        let kept = if staged { vec![claim] } else { vec![claim, job, secret] };
        kept.iter().for_each(|key| keep(desired, observed, key));
        return;
    };
    let mut want = |key: String, body: Body<'a>| {
        let ready = Ready::when(observed.is_ready(&key));
        desired.add(key, body, ready);
    };
    want(claim, manifests.claim(access));
    if staged {
        return;
    }
    match token {
        // What runs may still finish with the token it has.
        Token::Missing(_) => [job, secret].iter().for_each(|key| keep(desired, observed, key)),
        Token::NotNeeded => want(job, manifests.job(access)),
        Token::Present(key, value) => {
            want(secret, manifests.secret(access, key, value));
            want(job, manifests.job(access));
        }
    }
}

/// Keeps a composed resource, if it exists.
fn keep<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>, key: &str) {
    if let Some((key, resource)) = observed.resources.get_key_value(key) {
        desired.hold(key, resource);
    }
}
