//! What is said about a cache: status, conditions, events and its own readiness (spec cache §6–§8).

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::model_cache::{AuthSecret, CacheCluster, CachePhase, CacheSummary, ModelCacheStatus};
use modelplane_api::names::cache_claim_key;

use super::manifest::Manifests;
use super::{Target, Token};
use crate::contract::{Condition, Desired, Observed, Ready, Severity};

/// The cache's status: every target with its phase.
pub(super) fn status(targets: &[Target<'_>]) -> ModelCacheStatus {
    let clusters = targets.iter().map(|target| CacheCluster {
        name: target.name.to_owned(),
        phase: Some(target.phase),
        message: target.access.is_none().then(|| {
            "kept as it is: the cluster publishes no provider config or no cache storage class at the moment"
                .to_owned()
        }),
    });
    let summary = CacheSummary { ready: Some(format!("{}/{}", staged(targets), targets.len())) };
    ModelCacheStatus { conditions: Vec::new(), summary: Some(summary), clusters: Some(clusters.collect()) }
}

fn staged(targets: &[Target<'_>]) -> usize {
    targets.iter().filter(|target| target.phase == CachePhase::Ready).count()
}

/// Writes conditions, events and the cache's readiness.
pub(super) fn write(
    desired: &mut Desired<'_>,
    observed: &Observed<'_>,
    targets: &[Target<'_>],
    cache: &Manifests<'_>,
    token: &Token<'_>,
) {
    let matched = if targets.is_empty() { Reason::NoClusters } else { Reason::Matched };
    desired.condition(condition(ConditionType::ClustersMatched, !targets.is_empty(), matched));
    let all_staged = !targets.is_empty() && staged(targets) == targets.len();
    let missing = match token {
        Token::Missing(secret) if !targets.is_empty() && !all_staged => Some(missing_token(cache, secret)),
        _ => None,
    };
    let reason = artifact_reason(targets, missing.is_some());
    let mut artifact = condition(ConditionType::ArtifactReady, all_staged, reason);
    artifact.message = missing.clone().or_else(|| detail(targets, reason));
    desired.condition(artifact);
    if all_staged {
        desired.ready = Ready::True;
    } else if targets.is_empty() {
        // Nothing is composed, which would otherwise count as everything being ready.
        desired.ready = Ready::False;
    }
    if let Some(missing) = missing {
        desired.event(Severity::Warning, missing);
    }
    report_progress(desired, observed, targets, cache);
}

fn missing_token(cache: &Manifests<'_>, secret: &AuthSecret) -> String {
    format!(
        "spec.huggingFace.authSecret: Secret {}/{} has no value under key {:?}; create it, or set authSecret.key \
         to the key it has",
        cache.namespace,
        secret.name,
        secret.key()
    )
}

/// What people need to know beyond the reason.
fn detail(targets: &[Target<'_>], reason: Reason) -> Option<String> {
    let on = |phase| -> Vec<&str> {
        targets.iter().filter(|target| target.phase == phase).map(|target| target.name).collect()
    };
    match reason {
        Reason::NoClusters => Some(
            "spec.clusterSelector: no selected InferenceCluster publishes a provider config and a cache storage \
             class; check the labels, and the cache of the clusters"
                .to_owned(),
        ),
        Reason::Failed => Some(format!(
            "the download failed on {} and is retried; the Job's log there tells why",
            on(CachePhase::Failed).join(", ")
        )),
        _ => None,
    }
}

/// Events at the start and at the end of staging.
fn report_progress(
    desired: &mut Desired<'_>,
    observed: &Observed<'_>,
    targets: &[Target<'_>],
    cache: &Manifests<'_>,
) {
    let count = targets.len();
    let started = targets.iter().any(|target| observed.has(&cache_claim_key(target.name)));
    if count > 0 && !started {
        let names: Vec<&str> = targets.iter().map(|target| target.name).collect();
        let message = format!("staging {} on {count} clusters: {}", cache.source.repo, names.join(", "));
        desired.event(Severity::Normal, message);
    }
    if count > 0 && staged(targets) == count && !observed.composite.is_true("Ready") {
        desired.event(Severity::Normal, format!("the weights are staged on all {count} clusters"));
    }
}

fn condition(condition_type: ConditionType, holds: bool, reason: Reason) -> Condition {
    if holds {
        Condition::is_true(condition_type.as_str(), reason.as_str())
    } else {
        Condition::is_false(condition_type.as_str(), reason.as_str())
    }
}

/// Why the weights are, or are not, staged: the first of spec cache §7 that applies.
fn artifact_reason(targets: &[Target<'_>], token_missing: bool) -> Reason {
    let ready = staged(targets);
    if targets.is_empty() {
        Reason::NoClusters
    } else if token_missing {
        Reason::AuthSecretMissing
    } else if targets.iter().any(|target| target.phase == CachePhase::Failed) {
        Reason::Failed
    } else if ready == targets.len() {
        Reason::Staged
    } else if ready > 0 {
        Reason::Partial
    } else {
        Reason::Hydrating
    }
}
