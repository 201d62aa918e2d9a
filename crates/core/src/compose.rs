//! The compositions, one file per kind, and the table that finds the one for a composite.

pub mod cluster;
pub mod gateway_api;
pub mod inference_class;
pub mod inference_cluster;
pub mod inference_gateway;
pub mod llm_inference;
pub mod model_cache;
pub mod model_deployment;
pub mod model_endpoint;
pub mod model_replica;
pub mod model_service;
pub mod object;
pub mod release;
pub mod serving_stack;
pub mod usage;
pub mod usages;
pub mod workload;

use crate::contract::{ComposeError, Desired, Observed};

/// A composition.
pub type Composition = for<'a> fn(&Observed<'a>) -> Result<Desired<'a>, ComposeError>;

/// The composition of a kind, by `apiVersion` and kind of the composite; `None` if it has none.
pub fn composition(api_version: &str, kind: &str) -> Option<Composition> {
    let (group, _) = api_version.split_once('/')?;
    let listed = COMPOSITIONS.iter().find(|(g, k, _)| *g == group && *k == kind);
    listed.map(|(_, _, composition)| *composition).or_else(|| cluster::Provider::composition(group, kind))
}

/// The steps of a kind's pipeline, in order; none if nothing composes it.
pub fn pipeline(api_version: &str, kind: &str) -> Vec<Composition> {
    let mut steps: Vec<Composition> = composition(api_version, kind).into_iter().collect();
    let info = modelplane_api::kind::find(api_version, kind);
    if info.is_some_and(|info| info.steps.iter().any(|step| step.name == usages::STEP)) {
        steps.push(usages::compose);
    }
    steps
}

/// The kinds that have a composition, as `Kind.group`.
pub fn kinds() -> impl Iterator<Item = String> {
    let listed = COMPOSITIONS.iter().map(|(group, kind, _)| (*group, *kind));
    let clouds = cluster::provider::PROVIDERS.iter().map(|cloud| (cloud.cluster.group, cloud.cluster.kind));
    listed.chain(clouds).map(|(group, kind)| format!("{kind}.{group}"))
}

/// Group, kind, composition; one line per kind. Clouds are in [`cluster::provider::PROVIDERS`].
const COMPOSITIONS: &[(&str, &str, Composition)] = &[
    ("inference.devopstoolkit.ai", "LLMInference", llm_inference::compose),
    ("infrastructure.modelplane.ai", "ServingStack", serving_stack::compose),
    ("modelplane.ai", "InferenceClass", inference_class::compose),
    ("modelplane.ai", "InferenceCluster", inference_cluster::compose),
    ("modelplane.ai", "InferenceGateway", inference_gateway::compose),
    ("modelplane.ai", "ModelCache", model_cache::compose),
    ("modelplane.ai", "ModelDeployment", model_deployment::compose),
    ("modelplane.ai", "ModelEndpoint", model_endpoint::compose),
    ("modelplane.ai", "ModelReplica", model_replica::compose),
    ("modelplane.ai", "ModelService", model_service::compose),
];
