//! `InferenceCluster`: one member of the fleet, from its source to a cluster that serves (spec clusters §3).
//!
//! In order: the guard that keeps a cluster with replicas from being deleted, the classes of its pools, the
//! cluster itself on its cloud ([`provision`]), the serving stack on it ([`backend`]), and the capacity it
//! offers ([`status`]). The clouds are in [`crate::compose::cluster::provider`]; an existing cluster is only
//! a kubeconfig. Nothing here decides where replicas go.
//!
//! A class that is missing or unusable stops nothing that runs: the cluster, its stack and its published
//! capacity stay as they are until the class is back.

mod backend;
mod classes;
mod guard;
mod provision;
mod status;

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::inference_cluster::{InferenceCluster, InferenceClusterSpec};
use modelplane_api::names::SERVING_STACK_KEY;

use self::backend::Access;
use self::classes::Classes;
use crate::compose::cluster::{Provider, stand_still};
use crate::contract::{ComposeError, Condition, ConditionStatus, Desired, Observed, Ready, Severity};

/// Key of the provider config that reaches the cluster.
const PROVIDER_CONFIG_KEY: &str = "cluster-provider-config-kubernetes";

/// One pass over one InferenceCluster.
struct Pass<'r, 'a> {
    observed: &'r Observed<'a>,
    desired: Desired<'a>,
    name: &'a str,
    spec: &'r InferenceClusterSpec,
    classes: &'r Classes,
    /// What keeps the cluster from being what the spec asks for.
    problem: Option<Problem>,
}

/// Why the cluster cannot be made what the spec asks for, as a reason of `ClusterReady`.
#[derive(Debug, Clone)]
struct Problem {
    reason: Reason,
    message: String,
}

/// What became of the cluster itself.
#[derive(Debug, Default)]
struct Provisioned {
    /// How to reach it, if that is known.
    access: Option<Access>,
    /// Whether it runs.
    running: bool,
    /// What it waits for, unless that is obvious.
    waiting_for: Option<String>,
    /// StorageClass for model weights.
    storage_class: Option<String>,
}

/// Composes an `InferenceCluster`.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let InferenceCluster { spec, .. } = observed.decode_composite()?;
    let name = observed.composite.identity().name;
    if name.is_empty() {
        return Err(observed.error("metadata.name is missing"));
    }
    let mut desired = Desired::starting_from(observed);
    guard::compose(&mut desired, observed, name);
    let classes = Classes::resolve(&mut desired, observed, &spec.node_pools);
    let mut pass = Pass { observed, desired, name, spec: &spec, classes: &classes, problem: None };
    if pass.waits_for_classes() {
        return Ok(pass.desired);
    }
    let provider = Provider::find(spec.cluster.source);
    let provisioned = match provider {
        Some(provider) => provision::compose(&mut pass, provider),
        None => provision::existing(&mut pass),
    };
    let Some(provisioned) = provisioned else { return Ok(pass.desired) };
    backend::compose(&mut pass, provider, &provisioned);
    status::compose(&mut pass, provider, provisioned.storage_class.clone());
    pass.conditions(&provisioned);
    Ok(pass.desired)
}

impl Pass<'_, '_> {
    /// Says which classes are missing; true if there is nothing yet that could go on without them.
    fn waits_for_classes(&mut self) -> bool {
        let missing = self.classes.missing();
        if missing.is_empty() {
            self.problem = self.classes.unusable(&self.spec.node_pools);
            if let Some(problem) = &self.problem {
                self.desired.event(Severity::Warning, problem.message.clone());
            }
            return false;
        }
        let message = format!("waiting for InferenceClass {}", missing.join(", "));
        self.desired.event(Severity::Normal, message.clone());
        let nothing_yet = self.observed.resources.keys().all(|key| *key == guard::KEY);
        if nothing_yet {
            let reason = Reason::WaitingForClasses.as_str();
            let condition = Condition::is_false(ConditionType::ClusterReady.as_str(), reason);
            self.desired.condition(condition.because(message));
            // With nothing composed the cluster would look ready. While the classes are still being
            // fetched this is not the last word, and nothing is said about readiness.
            if !self.classes.not_fetched() {
                self.desired.ready = Ready::False;
            }
            return true;
        }
        self.problem = Some(Problem { reason: Reason::WaitingForClasses, message });
        false
    }

    /// Reports what keeps the cluster from being what the spec asks for.
    fn report(&mut self, message: String) {
        self.desired.event(Severity::Warning, message.clone());
        self.problem = Some(Problem { reason: Reason::InvalidNodePool, message });
    }

    /// Keeps everything because the block of the source is missing.
    fn lacks_source(&mut self, message: String) {
        self.desired.event(Severity::Warning, message);
        stand_still(&mut self.desired, self.observed);
    }

    fn conditions(&mut self, cluster: &Provisioned) {
        let type_ = ConditionType::ClusterReady.as_str();
        let condition = match &self.problem {
            Some(Problem { reason, message }) => {
                Condition::is_false(type_, reason.as_str()).because(message.clone())
            }
            None if cluster.running => Condition::is_true(type_, Reason::ClusterRunning.as_str()),
            None => {
                let condition = Condition::is_false(type_, Reason::Provisioning.as_str());
                Condition { message: cluster.waiting_for.clone(), ..condition }
            }
        };
        self.desired.condition(condition);

        let healthy = self.observed.is_ready(SERVING_STACK_KEY);
        let reason = match (cluster.running, healthy) {
            (false, _) => Reason::WaitingForCluster,
            (true, true) => Reason::BackendHealthy,
            (true, false) => Reason::Installing,
        };
        let condition = Condition::is_false(ConditionType::BackendReady.as_str(), reason.as_str());
        let status = if healthy { ConditionStatus::True } else { ConditionStatus::False };
        self.desired.condition(Condition { status, ..condition });
    }
}
