//! What the composition asks for, and what it makes of the model cache (spec scheduling §2).

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::inference_cluster::InferenceCluster;
use modelplane_api::kind::Object;
use modelplane_api::model_cache::ModelCache;
use modelplane_api::model_deployment::ModelDeployment;
use modelplane_api::model_replica::ModelReplica;
use modelplane_api::names::{ALL_REPLICAS_REQUIREMENT, CACHE_REQUIREMENT, CLUSTERS_REQUIREMENT};

use crate::contract::{Condition, Desired, Observed, Required, Requirement, Severity};
use crate::schedule::{ClusterLabels, NewReplicas, Problem};

/// The model cache a deployment refers to.
#[derive(Debug)]
pub(super) struct Cache<'o> {
    /// Its name, empty if the deployment uses none.
    pub(super) name: &'o str,
    pub(super) state: CacheState,
    /// What of it cannot be read.
    defect: Option<String>,
    /// Labels a cluster needs for the deployment, and for the cache as far as that is known.
    labels: ClusterLabels,
}

/// How much is known of the model cache (spec scheduling §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheState {
    /// The deployment uses none.
    Unused,
    /// It has not been fetched yet, or what was fetched cannot be read.
    Unresolved,
    /// It does not exist.
    Absent,
    /// It was read.
    Resolved,
}

impl<'o> Cache<'o> {
    /// What is known of the deployment's cache.
    pub(super) fn resolve(observed: &Observed<'_>, deployment: &'o ModelDeployment) -> Self {
        let deployment_labels = deployment.spec.template.spec.cluster_labels().cloned();
        let labels =
            ClusterLabels { deployment: deployment_labels.unwrap_or_default(), ..ClusterLabels::default() };
        let mut cache = Self { name: "", state: CacheState::Unused, defect: None, labels };
        let Some(name) = deployment.spec.template.spec.model_cache() else { return cache };
        cache.name = name;
        cache.state = match observed.required(CACHE_REQUIREMENT) {
            Required::NotFetched => CacheState::Unresolved,
            Required::Absent => CacheState::Absent,
            Required::Present(items) => match ClusterLabels::new(deployment, Some(items[0].document)) {
                Ok(labels) => {
                    cache.labels = labels;
                    CacheState::Resolved
                }
                Err(error) => {
                    cache.defect = Some(error.to_string());
                    CacheState::Unresolved
                }
            },
        };
        cache
    }

    /// Whether new replicas may be placed: not while the clusters that have the weights are unknown.
    pub(super) fn placement(&self) -> NewReplicas {
        match self.state {
            CacheState::Unused | CacheState::Resolved => NewReplicas::Allowed,
            CacheState::Unresolved | CacheState::Absent => NewReplicas::HeldByCache,
        }
    }

    /// Sets the condition `ModelCacheResolved`, if the deployment uses a cache.
    pub(super) fn report(&self, desired: &mut Desired<'_>) {
        let condition_type = ConditionType::ModelCacheResolved.as_str();
        let held = "existing replicas stay, new ones wait";
        let (reason, message) = match self.state {
            CacheState::Unused => return,
            CacheState::Resolved => {
                desired.condition(Condition::is_true(condition_type, Reason::ModelCacheResolved.as_str()));
                return;
            }
            CacheState::Unresolved => (
                Reason::ModelCacheUnresolved,
                match &self.defect {
                    None => format!("ModelCache {} has not been fetched yet; {held}", self.name),
                    Some(defect) => format!("ModelCache {} cannot be read: {defect}; {held}", self.name),
                },
            ),
            CacheState::Absent => (
                Reason::ModelCacheNotFound,
                format!("modelCacheRef names ModelCache {}, which does not exist; {held}", self.name),
            ),
        };
        if self.state == CacheState::Absent || self.defect.is_some() {
            desired.event(Severity::Warning, message.clone());
        }
        desired.condition(Condition::is_false(condition_type, reason.as_str()).because(message));
    }
}

/// Asks for the cache, the candidate clusters and everybody's replicas.
pub(super) fn require(desired: &mut Desired<'_>, cache: &Cache<'_>, namespace: &str) {
    if cache.state != CacheState::Unused {
        let info = ModelCache::INFO;
        let requirement = Requirement::named(&info.api_version(), info.kind, cache.name);
        desired.require(CACHE_REQUIREMENT, requirement.in_namespace(namespace));
    }
    let clusters = InferenceCluster::INFO;
    let requirement = Requirement::labelled(&clusters.api_version(), clusters.kind, cache.labels.merged());
    desired.require(CLUSTERS_REQUIREMENT, requirement);
    let replicas = ModelReplica::INFO;
    desired.require(ALL_REPLICAS_REQUIREMENT, Requirement::all(&replicas.api_version(), replicas.kind));
}

/// How many notes an event spells out.
const SPELLED_OUT: usize = 3;

/// Warns of what could not be used of clusters and replicas.
pub(super) fn report_notes(desired: &mut Desired<'_>, problem: &Problem<'_>) {
    let mut notes = problem.notes();
    let first: Vec<String> = notes.by_ref().take(SPELLED_OUT).map(ToString::to_string).collect();
    if first.is_empty() {
        return;
    }
    let more = match notes.count() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    desired.event(Severity::Warning, format!("skipped while scheduling: {}{more}", first.join("; ")));
}
