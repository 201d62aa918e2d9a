//! What is said about a replica: conditions, events and readiness of its composed resources (spec replica §7).

use std::collections::BTreeSet;

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::model_replica::ModelReplica;
use modelplane_api::names::{MODEL_ROUTE_KEY, model_serving_key};

use super::routing::RoutingNames;
use crate::contract::{Condition, Desired, Observed, Ready, Severity};
use crate::document::Document;

/// What came of composing a replica.
pub(super) struct Report {
    /// What is missing of the cluster, if everything had to be held.
    pub(super) missing: Option<String>,
    /// Engines that could not be built, and why.
    pub(super) problems: Vec<String>,
    /// Another replica's claim to this one's objects.
    pub(super) conflict: Option<String>,
    /// Keys of the workloads.
    workloads: BTreeSet<String>,
    /// What is being started, for the first event.
    starting: String,
}

impl Report {
    pub(super) fn new(replica: &ModelReplica) -> Self {
        let spec = &replica.spec;
        let first = spec.engines.first().and_then(|engine| engine.members.first());
        let container = first.and_then(|member| member.template.spec.as_ref()).and_then(|spec| spec.engine());
        let image = container.map(|container| container.image.as_str()).unwrap_or_default();
        Self {
            missing: None,
            problems: Vec::new(),
            conflict: None,
            workloads: spec.engines.iter().map(|engine| model_serving_key(&engine.name)).collect(),
            starting: format!("deploying {image} to cluster {}", spec.cluster_name),
        }
    }

    /// Writes conditions, events and the readiness of every desired resource.
    pub(super) fn write(self, desired: &mut Desired<'_>, observed: &Observed<'_>) {
        for (key, resource) in &mut desired.resources {
            let ready = if self.workloads.contains(key.as_ref()) {
                observed.is_ready(key)
            } else {
                observed.has(key)
            };
            if ready {
                resource.ready = Ready::True;
            }
        }
        let exists = self.workloads.iter().any(|key| observed.has(key));
        let accepted = self.workloads.iter().all(|key| is_accepted(observed, key));
        let ready = self.workloads.iter().all(|key| observed.is_ready(key));
        desired.condition(self.accepted_condition(accepted));
        desired.condition(ready_condition(ready, accepted && self.missing.is_none()));
        match &self.missing {
            Some(missing) if exists => {
                desired.event(Severity::Warning, format!("{missing}; what is deployed stays as it is"));
            }
            Some(missing) => desired.event(Severity::Normal, format!("waiting: {missing}")),
            None if !exists => desired.event(Severity::Normal, self.starting),
            None => {}
        }
        for problem in self.problems.into_iter().chain(self.conflict) {
            desired.event(Severity::Warning, problem);
        }
    }

    fn accepted_condition(&self, accepted: bool) -> Condition {
        let condition_type = ConditionType::ModelAccepted.as_str();
        let no = |reason: Reason| Condition::is_false(condition_type, reason.as_str());
        if let Some(missing) = &self.missing {
            return no(Reason::WaitingForCluster).because(missing);
        }
        if !self.problems.is_empty() {
            return no(Reason::InvalidSpec).because(self.problems.join("; "));
        }
        let mut condition = if accepted {
            Condition::is_true(condition_type, Reason::WorkloadsAccepted.as_str())
        } else {
            no(Reason::Deploying)
        };
        condition.message.clone_from(&self.conflict);
        condition
    }
}

fn ready_condition(ready: bool, accepted: bool) -> Condition {
    let condition_type = ConditionType::ModelReady.as_str();
    if ready {
        Condition::is_true(condition_type, Reason::Serving.as_str())
    } else if accepted {
        Condition::is_false(condition_type, Reason::ModelStarting.as_str())
    } else {
        Condition::is_false(condition_type, Reason::WaitingForModel.as_str())
    }
}

/// Whether the workload exists on the cluster.
fn is_accepted(observed: &Observed<'_>, key: &str) -> bool {
    let manifest = observed.resources.get(key).and_then(|object| remote_manifest(object.document));
    manifest.is_some_and(|manifest| manifest.as_struct_bytes().is_some_and(|bytes| !bytes.is_empty()))
}

/// The object on the cluster, as last seen.
fn remote_manifest(object: Document<'_>) -> Option<Document<'_>> {
    object.get(&["status", "atProvider", "manifest"])
}

/// Names do not contain the replica's namespace, so a replica of the same name in another one, on the same cluster,
/// fights over the same objects (spec replica §10, P1). The path of the route on the cluster tells.
pub(super) fn route_conflict(observed: &Observed<'_>, names: &RoutingNames) -> Option<String> {
    let route = remote_manifest(observed.resources.get(MODEL_ROUTE_KEY)?.document)?;
    let rules: Vec<Document<'_>> = route.decode_at(&["spec", "rules"]).ok()??;
    let matches: Vec<Document<'_>> = rules.first()?.decode_at(&["matches"]).ok()??;
    let path = matches.first()?.text_at(&["path", "value"])?;
    let other = path.strip_prefix('/')?.strip_suffix(&format!("/{}/", names.route))?;
    (path != names.path).then(|| {
        format!(
            "HTTPRoute {route} on the cluster has the path {path:?} instead of {:?}: a replica of the same name in \
             namespace {other} shares the cluster and overwrites this one's objects; rename one of the deployments",
            names.path,
            route = names.route,
        )
    })
}
