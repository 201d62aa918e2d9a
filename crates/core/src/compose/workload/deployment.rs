//! The native backend: a Deployment whose pods each hold a whole engine (spec replica §4.1).

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use modelplane_api::model_replica::Engine;
use modelplane_api::names;
use modelplane_api::template::MemberRole;

use super::pod::{self, Placement};
use super::{ReplicaContext, WorkloadError, member, to_i32};

/// The Deployment of an engine with a Standalone member.
///
/// # Errors
///
/// If the member or its engine container is missing.
pub fn build(replica: &ReplicaContext, engine: &Engine) -> Result<Deployment, WorkloadError> {
    let member = member(engine, MemberRole::Standalone)?;
    let name = names::workload_name(&replica.name, &engine.name);
    let labels = [(names::SERVING_LABEL, replica.label.clone()), (names::WORKLOAD_LABEL, name.clone())];
    let template = pod::template(replica, engine, member, Placement::Standalone, labels)?;
    let selector = BTreeMap::from([(names::WORKLOAD_LABEL.to_owned(), name.clone())]);
    Ok(Deployment {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(names::WORKLOAD_NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(to_i32("copies", engine.copies())?),
            selector: LabelSelector { match_labels: Some(selector), match_expressions: None },
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    })
}
