//! The guard: a cluster with replicas on it cannot be deleted (spec clusters §3.3).

use std::collections::BTreeMap;

use modelplane_api::inference_cluster::InferenceCluster;
use modelplane_api::kind::Object;
use modelplane_api::model_replica::ModelReplica;
use modelplane_api::names::{CLUSTER_LABEL, MODEL_REPLICAS_REQUIREMENT};

use crate::compose::usage::{UsedBy, cluster_usage};
use crate::contract::{Body, Desired, Observed, Ready, Required, Requirement};

/// Key of the guard.
pub(super) const KEY: &str = "usage-replicas";

/// Asks for the replicas on the cluster and composes the guard if there are any; until they have been
/// looked up, a guard that exists stays.
pub(super) fn compose<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>, name: &str) {
    let replicas = ModelReplica::INFO;
    let labels = BTreeMap::from([(CLUSTER_LABEL.to_owned(), name.to_owned())]);
    let requirement = Requirement::labelled(&replicas.api_version(), replicas.kind, labels);
    desired.require(MODEL_REPLICAS_REQUIREMENT, requirement);
    match observed.required(MODEL_REPLICAS_REQUIREMENT) {
        Required::Absent => {}
        Required::NotFetched => {
            if let Some((key, guard)) = observed.resources.get_key_value(KEY) {
                desired.hold(key, guard);
            }
        }
        Required::Present(replicas) => {
            let cluster = InferenceCluster::INFO;
            let of = UsedBy::named(cluster.api_version(), cluster.kind, name);
            let reason = match replicas.len() {
                1 => "1 ModelReplica is placed on this cluster".to_owned(),
                count => format!("{count} ModelReplicas are placed on this cluster"),
            };
            desired.add(KEY, Body::of(&cluster_usage(of, reason)), Ready::True);
        }
    }
}
