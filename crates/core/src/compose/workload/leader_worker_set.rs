//! The llm-d backend for gangs: a LeaderWorkerSet of one Leader and its Workers per copy (spec replica §4.2).
//!
//! Workers never carry the serving label, so they never get requests.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use modelplane_api::model_replica::Engine;
use modelplane_api::names;
use modelplane_api::template::MemberRole;
use serde::Serialize;

use super::pod::{self, Placement};
use super::{ReplicaContext, WorkloadError, member, to_i32};
use crate::compose::object::{KubernetesObject, Metadata, Spec};

/// A LeaderWorkerSet.
pub type LeaderWorkerSet = KubernetesObject<'static, Spec<LeaderWorkerSetSpec>>;

/// The spec of a LeaderWorkerSet, as far as it is set.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderWorkerSetSpec {
    /// Number of gangs.
    pub replicas: i32,
    /// One gang.
    pub leader_worker_template: LeaderWorkerTemplate,
}

/// One gang.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderWorkerTemplate {
    /// Pods of the gang, the Leader included.
    pub size: i32,
    /// The first pod.
    pub leader_template: PodTemplateSpec,
    /// The others.
    pub worker_template: PodTemplateSpec,
}

/// The LeaderWorkerSet of an engine with a Leader and a Worker member.
///
/// # Errors
///
/// If either member or its engine container is missing.
pub fn build(replica: &ReplicaContext, engine: &Engine) -> Result<LeaderWorkerSet, WorkloadError> {
    let leader = member(engine, MemberRole::Leader)?;
    let worker = member(engine, MemberRole::Worker)?;
    let labels =
        [(names::SERVING_LABEL, replica.label.clone()), (names::LWS_ROLE_LABEL, "leader".to_owned())];
    let template = LeaderWorkerTemplate {
        size: to_i32("worker.nodes", worker.pods().saturating_add(1))?,
        leader_template: pod::template(replica, engine, leader, Placement::Leader, labels)?,
        worker_template: pod::template(replica, engine, worker, Placement::Worker, [])?,
    };
    let spec = LeaderWorkerSetSpec {
        replicas: to_i32("copies", engine.copies())?,
        leader_worker_template: template,
    };
    let metadata = Metadata::named(names::gang_name(&replica.name, &engine.name))
        .and_namespace(names::WORKLOAD_NAMESPACE);
    Ok(KubernetesObject::with_spec("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)
        .with_metadata(metadata))
}
