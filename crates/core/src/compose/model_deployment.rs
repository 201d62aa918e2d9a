//! `ModelDeployment`: a ModelReplica per placement and a ModelEndpoint per replica that serves
//! (spec scheduling §§2-9).
//!
//! Where replicas go is the scheduler's business ([`crate::schedule`]); this file asks for its inputs, turns
//! its plan into objects and reports. Engine templates and the serving block are passed on unread. Without a
//! usable set of inputs nothing is decided: what exists is held.

mod bodies;
mod inputs;

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::model_deployment::{ModelDeployment, ModelDeploymentStatus, ReplicaCounts};
use modelplane_api::names::{ALL_REPLICAS_REQUIREMENT, CLUSTERS_REQUIREMENT, endpoint_key, replica_key};

use self::bodies::{Composer, Templates};
use self::inputs::{Cache, CacheState};
use crate::check;
use crate::contract::{
    ComposeError, Condition, Desired, Observed, Ready, Required, Scheduled, Severity, Work,
};
use crate::schedule::{self, Inputs, Kept, Plan, Problem};

/// Most replicas a deployment may ask for; the API admits 10.
const MAX_REPLICAS: i64 = 1000;

/// Composes the replicas and endpoints of a `ModelDeployment`.
///
/// # Errors
///
/// If the deployment cannot be read, has no namespace or name, or asks for an absurd number of replicas.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let deployment: ModelDeployment = observed.decode_composite()?;
    let namespace = observed.namespace()?;
    let name = observed.name()?;
    if deployment.spec.replicas > MAX_REPLICAS {
        let message = format!("spec.replicas: {} is more than {MAX_REPLICAS}", deployment.spec.replicas);
        return Err(observed.error(message));
    }
    let mut desired = Desired::starting_from(observed);
    let cache = Cache::resolve(observed, &deployment);
    inputs::require(&mut desired, &cache, namespace);
    cache.report(&mut desired);

    let Required::Present(clusters) = observed.required(CLUSTERS_REQUIREMENT) else {
        hold_all(&mut desired, observed, &deployment);
        report_no_clusters(&mut desired, &deployment);
        return Ok(desired);
    };
    let Some(replicas) = observed.required.get(ALL_REPLICAS_REQUIREMENT) else {
        hold_all(&mut desired, observed, &deployment);
        desired.condition(
            Condition::is_false(ConditionType::ReplicasScheduled.as_str(), Reason::WaitingForInput.as_str())
                .because("the ModelReplicas of the fleet have not been fetched yet"),
        );
        return Ok(desired);
    };
    let composed = schedule::composed_replicas(observed);
    let inputs = Inputs {
        deployment: &deployment,
        clusters,
        replicas,
        composed: &composed,
        labels: None,
        placement: cache.placement(),
    };
    let problem = match Problem::new(inputs) {
        Ok(problem) => problem,
        Err(error) => {
            hold_all(&mut desired, observed, &deployment);
            report_invalid_selector(&mut desired, &error);
            return Ok(desired);
        }
    };
    let plan = schedule::solve(&problem);
    if let Some(violation) = check::validate(&problem, &plan).first() {
        return Err(observed.error(format!("the scheduler made an invalid plan: {violation}")));
    }
    inputs::report_notes(&mut desired, &problem);
    let composer = Composer { name, namespace, deployment: &deployment, templates: Templates::of(observed) };
    let outcome = compose_plan(&mut desired, observed, &composer, &plan);
    report(&mut desired, &cache, &problem, &plan, outcome);
    Ok(desired)
}

/// Numbers of replicas, as they are seen now.
#[derive(Debug, Default, Clone, Copy)]
struct Outcome {
    /// Replicas that are to exist.
    total: usize,
    /// Those of them that exist.
    existing: usize,
    /// Those of them that are ready.
    ready: usize,
}

/// Wants what the plan says.
fn compose_plan<'a>(
    desired: &mut Desired<'a>,
    observed: &Observed<'a>,
    composer: &Composer<'_, 'a>,
    plan: &Plan<'_>,
) -> Outcome {
    let mut outcome = Outcome::default();
    for placement in &plan.placements {
        let key = replica_key(placement.cluster, placement.index);
        let ready = observed.is_ready(&key);
        outcome.count(observed.has(&key), ready);
        desired.add(key, composer.replica(placement), Ready::when(ready));
        if let (Some(gateway), true) = (placement.gateway, ready) {
            let key = endpoint_key(placement.cluster, placement.index);
            let ready = Ready::when(observed.is_ready(&key));
            desired.add(key, composer.endpoint(placement, gateway), ready);
        }
    }
    for kept in &plan.kept {
        let ready = hold_kept(desired, observed, kept);
        outcome.count(true, ready);
    }
    outcome
}

/// Holds a replica that is left alone, and its endpoint, which has the same name; says whether it is ready.
fn hold_kept<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>, kept: &Kept<'_>) -> bool {
    let mut ready = false;
    for (key, resource) in &observed.resources {
        let identity = resource.identity();
        if identity.name == kept.replica {
            desired.hold(key, resource);
            ready |= identity.kind == "ModelReplica" && resource.is_true("Ready");
        }
    }
    ready
}

/// Holds everything that exists, with its numbers, when there is nothing to decide by. A deployment that lacks
/// replicas is not ready: that all of none are ready would be a pretence.
fn hold_all<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>, deployment: &ModelDeployment) {
    desired.hold_all(observed);
    let mut outcome = Outcome::default();
    for resource in observed.resources.values() {
        if resource.identity().kind == "ModelReplica" {
            outcome.count(true, resource.is_true("Ready"));
        }
    }
    if outcome.total > 0 {
        desired.set_status(&outcome.status());
    }
    if i64::try_from(outcome.total).is_ok_and(|total| total < deployment.spec.replicas) {
        desired.ready = Ready::False;
    }
}

fn report_no_clusters(desired: &mut Desired<'_>, deployment: &ModelDeployment) {
    let selector = deployment.spec.template.spec.cluster_labels().filter(|labels| !labels.is_empty());
    let message = match selector {
        None => "there is no InferenceCluster; existing replicas are held".to_owned(),
        Some(labels) => format!(
            "no InferenceCluster has the labels of clusterSelector and of the model cache ({}); existing \
             replicas are held",
            labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
        ),
    };
    desired.condition(
        Condition::is_false(ConditionType::ReplicasScheduled.as_str(), Reason::NoClusters.as_str())
            .because(message.clone()),
    );
    desired.event(Severity::Warning, message);
}

fn report_invalid_selector(desired: &mut Desired<'_>, error: &schedule::InvalidSelector) {
    let hint = error.source.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = format!("{error}{hint}; existing replicas are held");
    desired.condition(
        Condition::is_false(ConditionType::ReplicasScheduled.as_str(), Reason::InvalidNodeSelector.as_str())
            .because(message.clone()),
    );
    desired.event(Severity::Warning, message);
    desired.ready = Ready::False;
}

/// Status, conditions, readiness and the event of a first placement (spec scheduling §§8, 9).
fn report(
    desired: &mut Desired<'_>,
    cache: &Cache<'_>,
    problem: &Problem<'_>,
    plan: &Plan<'_>,
    outcome: Outcome,
) {
    desired.set_status(&outcome.status());
    desired.work = Work {
        selector_evaluations: problem.selector_evaluations(),
        replicas: Some(Scheduled {
            placed: outcome.total as u64,
            unplaced: problem.wanted().saturating_sub(outcome.total) as u64,
        }),
    };
    if outcome.total < problem.wanted() {
        desired.ready = Ready::False;
    }
    if outcome.total > 0 && outcome.existing == 0 {
        desired.event(Severity::Normal, first_placement(plan));
    }
    desired.condition(scheduled(cache, problem, outcome));
    desired.condition(outcome.readiness());
}

/// The condition `ReplicasScheduled`.
fn scheduled(cache: &Cache<'_>, problem: &Problem<'_>, outcome: Outcome) -> Condition {
    let wanted = problem.wanted();
    let condition_type = ConditionType::ReplicasScheduled.as_str();
    if outcome.existing > 0 {
        let message = format!("{} of {wanted} replicas placed", outcome.total);
        return Condition::is_true(condition_type, Reason::ReplicasCreated.as_str()).because(message);
    }
    if outcome.total > 0 {
        return Condition::is_false(condition_type, Reason::Scheduling.as_str());
    }
    let (reason, message) = match cache.state {
        CacheState::Resolved | CacheState::Unused => {
            let candidates = problem.candidates();
            let message = format!(
                "0 of {wanted} replicas placed: none of {candidates} candidate clusters can take one"
            );
            (Reason::InsufficientCapacity, message)
        }
        // What is in the way is the cache, not the clusters.
        CacheState::Unresolved => (Reason::ModelCacheUnresolved, held_by_cache(wanted, cache)),
        CacheState::Absent => (Reason::ModelCacheNotFound, held_by_cache(wanted, cache)),
    };
    Condition::is_false(condition_type, reason.as_str()).because(message)
}

fn held_by_cache(wanted: usize, cache: &Cache<'_>) -> String {
    format!("0 of {wanted} replicas placed: new replicas wait for ModelCache {}", cache.name)
}

fn first_placement(plan: &Plan<'_>) -> String {
    let mut clusters: Vec<&str> = plan.placements.iter().map(|placement| placement.cluster).collect();
    clusters.dedup();
    let (replicas, count) = (plan.placements.len(), clusters.len());
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "placed {replicas} replica{} on {count} cluster{}: {}",
        plural(replicas),
        plural(count),
        clusters.join(", ")
    )
}

impl Outcome {
    fn count(&mut self, exists: bool, ready: bool) {
        self.total += 1;
        self.existing += usize::from(exists);
        self.ready += usize::from(ready);
    }

    fn status(self) -> ModelDeploymentStatus {
        let count = |count: usize| i64::try_from(count).ok();
        let replicas = ReplicaCounts { total: count(self.total), ready: count(self.ready) };
        ModelDeploymentStatus { replicas: Some(replicas), ..ModelDeploymentStatus::default() }
    }

    fn readiness(self) -> Condition {
        let condition_type = ConditionType::ReplicasReady.as_str();
        let numbers = format!("{} of {} replicas ready", self.ready, self.total);
        match self {
            Self { total: 0, .. } => {
                Condition::is_false(condition_type, Reason::NoReplicasScheduled.as_str())
            }
            Self { total, ready, .. } if ready == total => {
                Condition::is_true(condition_type, Reason::AllReplicasReady.as_str()).because(numbers)
            }
            Self { .. } => {
                Condition::is_false(condition_type, Reason::ModelStarting.as_str()).because(numbers)
            }
        }
    }
}
