//! `ModelReplica`: the workloads, claims and routing of one replica on one cluster (spec replica).
//!
//! Every manifest travels in a provider-kubernetes `Object`; of the cluster only the provider config's name is read.
//! An engine that cannot be built keeps what it has and is reported, and the rest of the replica goes on. While the
//! cluster or its provider config is missing, everything stays as it is.

pub mod picker;
pub mod routing;
mod status;

use std::borrow::Cow;

use modelplane_api::inference_cluster::InferenceCluster;
use modelplane_api::kind::Object;
use modelplane_api::model_replica::{Engine, ModelReplica};
use modelplane_api::names::{
    CLUSTER_REQUIREMENT as CLUSTER, cache_claim_name, label_value, model_serving_key, resource_claim_key,
};
use modelplane_api::template::{EnginePhase, MemberRole, Serving, ServingMode};
use serde::Serialize;

use self::routing::RoutingNames;
use self::status::Report;
use super::object::{KubernetesObject, ProviderConfigRef, Readiness};
use super::workload::{Backend, ReplicaContext, WorkloadError, claim, llm_d, picker_config};
use crate::contract::{Body, ComposeError, Desired, Observed, Ready, Required, Requirement};

/// When a Deployment or LeaderWorkerSet counts as ready.
const AVAILABLE: &str = "has(object.status.conditions) && object.status.conditions.exists(c, c.type == \"Available\" \
                         && c.status == \"True\")";

/// Composes everything of a `ModelReplica` on its cluster.
///
/// # Errors
///
/// If the replica cannot be read, has no namespace or name, or has no engine, or lacks one its mode needs.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let replica: ModelReplica = observed.decode_composite()?;
    let namespace = observed.namespace()?;
    let name = observed.name()?;
    let leading = leading_engine(&replica).map_err(|problem| observed.error(problem))?;

    let mut desired = Desired::starting_from(observed);
    let cluster = InferenceCluster::INFO;
    let requirement = Requirement::named(&cluster.api_version(), cluster.kind, &replica.spec.cluster_name);
    desired.require(CLUSTER, requirement);
    let mut report = Report::new(&replica);
    match provider_config(observed, &replica.spec.cluster_name) {
        Err(missing) => {
            desired.hold_all(observed);
            report.missing = Some(missing);
        }
        Ok(provider_config) => {
            let context = ReplicaContext {
                name: name.to_owned(),
                label: label_value(name).into_owned(),
                cache_claim: replica.spec.model_cache().map(|cache| cache_claim_name(namespace, cache)),
            };
            let mut manifests = Manifests { desired: &mut desired, provider_config };
            for (index, engine) in replica.spec.engines.iter().enumerate() {
                if let Err(error) = add_engine(&mut manifests, &context, &replica, engine) {
                    hold(manifests.desired, observed, engine);
                    report.problems.push(format!("spec.engines[{index}] ({}): {error}", engine.name));
                }
            }
            let config = picker_config::render(mode(&replica), picker_config::block_size(leading));
            let names = RoutingNames::new(namespace, name);
            routing::add(&mut manifests, &names, &config);
            report.conflict = status::route_conflict(observed, &names);
        }
    }
    report.write(&mut desired, observed);
    Ok(desired)
}

/// Where manifests go.
pub(crate) struct Manifests<'d, 'a> {
    desired: &'d mut Desired<'a>,
    provider_config: &'a str,
}

impl<'a> Manifests<'_, 'a> {
    /// Wants a manifest that is there once it has been created.
    pub(crate) fn add<M: Serialize>(&mut self, key: impl Into<Cow<'a, str>>, manifest: &M) {
        self.add_with(key, Readiness::SuccessfulCreate, manifest);
    }

    /// Wants a workload.
    pub(crate) fn add_workload<M: Serialize>(&mut self, key: impl Into<Cow<'a, str>>, manifest: &M) {
        self.add_with(key, Readiness::DeriveFromCelQuery { cel_query: AVAILABLE.into() }, manifest);
    }

    fn add_with<M: Serialize>(
        &mut self,
        key: impl Into<Cow<'a, str>>,
        readiness: Readiness<'_>,
        manifest: &M,
    ) {
        let provider_config = ProviderConfigRef::cluster(self.provider_config);
        let object = KubernetesObject::provider_object(provider_config, Some(readiness), manifest);
        self.desired.add(key, Body::of(&object), Ready::Unspecified);
    }
}

/// The name of the cluster's provider config, or what is missing for it.
fn provider_config<'a>(observed: &Observed<'a>, cluster: &str) -> Result<&'a str, String> {
    match observed.required(CLUSTER) {
        Required::NotFetched => Err(format!("InferenceCluster {cluster} has not been fetched yet")),
        Required::Absent => Err(format!(
            "spec.clusterName: InferenceCluster {cluster} does not exist; create it or delete the replica"
        )),
        Required::Present(clusters) => {
            let name = clusters[0].document.text_at(&["status", "providerConfigRef", "name"]);
            name.ok_or_else(|| format!("InferenceCluster {cluster} has no status.providerConfigRef.name yet"))
        }
    }
}

fn mode(replica: &ModelReplica) -> ServingMode {
    replica.spec.serving.as_ref().map(Serving::mode).unwrap_or_default()
}

/// The engine whose block size the picker uses; also checks that the mode has the engines it needs.
fn leading_engine(replica: &ModelReplica) -> Result<&Engine, String> {
    let with_phase = |phase| replica.spec.engines.iter().find(|engine| engine.phase == Some(phase));
    match mode(replica) {
        ServingMode::Unified => replica
            .spec
            .engines
            .first()
            .ok_or_else(|| "spec.engines: a replica needs at least one engine".to_owned()),
        ServingMode::PrefillDecode => {
            let needs = |phase| {
                format!(
                    "spec.engines: serving mode PrefillDecode needs an engine with phase {phase}, there is none"
                )
            };
            with_phase(EnginePhase::Prefill).ok_or_else(|| needs("Prefill"))?;
            with_phase(EnginePhase::Decode).ok_or_else(|| needs("Decode"))
        }
    }
}

/// Wants the workload of an engine and the claims of its members.
fn add_engine(
    manifests: &mut Manifests<'_, '_>,
    context: &ReplicaContext,
    replica: &ModelReplica,
    engine: &Engine,
) -> Result<(), WorkloadError> {
    for member in &engine.members {
        if let Some(template) = claim::build(context, engine, member) {
            manifests.add(resource_claim_key(&engine.name, member.role()), &template);
        }
    }
    let mut workload = Backend::of(engine).build(context, engine)?;
    if let (ServingMode::PrefillDecode, Some(phase)) = (mode(replica), engine.phase) {
        llm_d::disaggregate(workload.serving_template(), context, phase)?;
    }
    manifests.add_workload(model_serving_key(&engine.name), &workload);
    Ok(())
}

/// Keeps what an engine has and is not wanted anyway.
fn hold<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>, engine: &Engine) {
    let roles = [MemberRole::Standalone, MemberRole::Leader, MemberRole::Worker];
    let claims = roles.map(|role| resource_claim_key(&engine.name, role));
    for key in claims.into_iter().chain([model_serving_key(&engine.name)]) {
        if let Some((key, resource)) = observed.resources.get_key_value(key.as_str()) {
            desired.hold(key, resource);
        }
    }
}
