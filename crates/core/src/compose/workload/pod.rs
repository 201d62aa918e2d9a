//! The pods of an engine's member, whatever the workload around them (spec replica §4.3, §4.4).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMapKeySelector, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource,
    HTTPGetAction, LocalObjectReference, ObjectFieldSelector, PersistentVolumeClaimVolumeSource,
    PodResourceClaim, PodSpec, PodTemplateSpec, Probe, ResourceClaim, ResourceRequirements,
    SecretKeySelector, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use modelplane_api::model_replica::{Engine, Member};
use modelplane_api::{names, template as api};

use super::{ReplicaContext, SERVING_PORT, WorkloadError, container};

/// Where the weights of a model cache are mounted.
pub const MODEL_MOUNT: &str = "/mnt/models";

/// Where shared memory is mounted.
pub const SHARED_MEMORY_MOUNT: &str = "/dev/shm";

/// What a pod is within its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The whole engine.
    Standalone,
    /// The pod of a gang that takes requests.
    Leader,
    /// Another pod of a gang.
    Worker,
}

impl Placement {
    fn takes_requests(self) -> bool {
        self != Self::Worker
    }

    fn is_in_gang(self) -> bool {
        self != Self::Standalone
    }
}

/// The template of a member's pods. `labels` win over the user's.
///
/// # Errors
///
/// If the member has no engine container.
pub fn template<const N: usize>(
    replica: &ReplicaContext,
    engine: &Engine,
    member: &Member,
    placement: Placement,
    labels: [(&str, String); N],
) -> Result<PodTemplateSpec, WorkloadError> {
    let user = member.template.metadata.as_ref();
    let mut all_labels = user.and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
    all_labels.extend(labels.map(|(key, value)| (key.to_owned(), value)));
    let annotations = user.and_then(|metadata| metadata.annotations.clone());
    let metadata = ObjectMeta {
        labels: Some(all_labels).filter(|labels| !labels.is_empty()),
        annotations: annotations.filter(|annotations| !annotations.is_empty()),
        ..ObjectMeta::default()
    };
    Ok(PodTemplateSpec {
        metadata: Some(metadata).filter(|metadata| *metadata != ObjectMeta::default()),
        spec: Some(spec(replica, engine, member, placement)?),
    })
}

fn spec(
    replica: &ReplicaContext,
    engine: &Engine,
    member: &Member,
    placement: Placement,
) -> Result<PodSpec, WorkloadError> {
    let claims = !member.device_requests.is_empty();
    let resource_claim = || PodResourceClaim {
        name: CLAIM.to_owned(),
        resource_claim_template_name: Some(names::claim_template_name(
            &replica.name,
            &engine.name,
            member.role(),
        )),
        resource_claim_name: None,
    };
    let pull_secrets = member.template.spec.as_ref().and_then(|spec| spec.image_pull_secrets.as_deref());
    Ok(PodSpec {
        containers: vec![engine_container(replica, member, placement)?],
        volumes: Some(volumes(replica)),
        node_selector: Some(BTreeMap::from([(names::POOL_LABEL.to_owned(), member.node_pool_name.clone())])),
        resource_claims: claims.then(|| vec![resource_claim()]),
        tolerations: Some(vec![Toleration {
            key: Some(names::GPU_TAINT.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some("NoSchedule".to_owned()),
            ..Toleration::default()
        }]),
        image_pull_secrets: non_empty(
            pull_secrets
                .unwrap_or_default()
                .iter()
                .map(|secret| LocalObjectReference { name: secret.name.clone() }),
        ),
        ..PodSpec::default()
    })
}

/// Name of the pod's resource claim.
const CLAIM: &str = "devices";

fn engine_container(
    replica: &ReplicaContext,
    member: &Member,
    placement: Placement,
) -> Result<Container, WorkloadError> {
    let user = container(member)?;
    let serving = placement.takes_requests();
    let claims = || ResourceRequirements {
        claims: Some(vec![ResourceClaim { name: CLAIM.to_owned(), request: None }]),
        ..ResourceRequirements::default()
    };
    Ok(Container {
        name: api::ENGINE_CONTAINER.to_owned(),
        image: Some(user.image.clone()),
        command: non_empty(user.command().iter().cloned()),
        args: arguments(replica, user, placement),
        env: environment(user, placement),
        ports: serving.then(|| vec![port(SERVING_PORT)]),
        readiness_probe: serving.then(|| health_probe(SERVING_PORT)),
        volume_mounts: Some(volume_mounts(replica)),
        resources: (!member.device_requests.is_empty()).then(claims),
        ..Container::default()
    })
}

/// The user's arguments, and where the weights are if the user does not say.
fn arguments(replica: &ReplicaContext, user: &api::Container, placement: Placement) -> Option<Vec<String>> {
    let mut args = user.args().to_vec();
    let names_model = || args.iter().any(|arg| arg == "--model" || arg.starts_with("--model="));
    let staged = replica.cache_claim.is_some() && placement.takes_requests();
    if staged && user.command().is_empty() && !names_model() {
        args.push(format!("--model={MODEL_MOUNT}"));
    }
    // A Deployment's list is written even when empty (spec replica §4.3).
    (placement == Placement::Standalone || !args.is_empty()).then_some(args)
}

/// The gang's variables, then the user's, which may refer to them.
fn environment(user: &api::Container, placement: Placement) -> Option<Vec<EnvVar>> {
    let gang: &[(&str, &str)] = if placement.is_in_gang() {
        &[("MODELPLANE_LEADER_ADDRESS", "$(LWS_LEADER_ADDRESS)"), ("MODELPLANE_RANK", "$(LWS_WORKER_INDEX)")]
    } else {
        &[]
    };
    let gang = gang.iter().map(|(name, value)| variable(name, value));
    non_empty(gang.chain(user.env().iter().map(user_variable)))
}

/// An environment variable with a fixed value.
pub fn variable(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None }
}

/// An environment variable with the value of one of the pod's fields.
pub fn field_variable(name: &str, field_path: &str) -> EnvVar {
    let field_ref = ObjectFieldSelector { field_path: field_path.to_owned(), api_version: None };
    let source = EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}

fn user_variable(variable: &api::EnvVar) -> EnvVar {
    EnvVar {
        name: variable.name.clone(),
        value: variable.value.clone(),
        value_from: variable.value_from.as_ref().map(user_variable_source),
    }
}

fn user_variable_source(source: &api::EnvVarSource) -> EnvVarSource {
    let secret = |key: &api::KeyRef| SecretKeySelector {
        name: key.name.clone(),
        key: key.key.clone(),
        optional: key.optional,
    };
    let config_map = |key: &api::KeyRef| ConfigMapKeySelector {
        name: key.name.clone(),
        key: key.key.clone(),
        optional: key.optional,
    };
    let field = |field: &api::FieldRef| ObjectFieldSelector {
        field_path: field.field_path.clone(),
        api_version: field.api_version.clone(),
    };
    EnvVarSource {
        secret_key_ref: source.secret_key_ref.as_ref().map(secret),
        config_map_key_ref: source.config_map_key_ref.as_ref().map(config_map),
        field_ref: source.field_ref.as_ref().map(field),
        ..EnvVarSource::default()
    }
}

/// A container port without a name.
pub fn port(number: u16) -> ContainerPort {
    ContainerPort { container_port: number.into(), ..ContainerPort::default() }
}

/// The readiness probe of everything that speaks the OpenAI API.
pub fn health_probe(port: u16) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some("/health".to_owned()),
            port: IntOrString::Int(port.into()),
            ..HTTPGetAction::default()
        }),
        initial_delay_seconds: Some(30),
        period_seconds: Some(10),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}

/// A volume in memory.
pub fn memory_volume(name: &str) -> Volume {
    let empty_dir = EmptyDirVolumeSource { medium: Some("Memory".to_owned()), size_limit: None };
    Volume { name: name.to_owned(), empty_dir: Some(empty_dir), ..Volume::default() }
}

/// A volume mounted for reading and writing.
pub fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

const SHARED_MEMORY: &str = "dshm";
const MODEL_CACHE: &str = "model-cache";

fn volumes(replica: &ReplicaContext) -> Vec<Volume> {
    let cache = replica.cache_claim.as_ref().map(|claim| Volume {
        name: MODEL_CACHE.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.clone(),
            read_only: None,
        }),
        ..Volume::default()
    });
    std::iter::once(memory_volume(SHARED_MEMORY)).chain(cache).collect()
}

fn volume_mounts(replica: &ReplicaContext) -> Vec<VolumeMount> {
    let cache = replica.cache_claim.as_ref().map(|_| mount(MODEL_CACHE, MODEL_MOUNT));
    std::iter::once(mount(SHARED_MEMORY, SHARED_MEMORY_MOUNT)).chain(cache).collect()
}

fn non_empty<T>(items: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let items: Vec<T> = items.collect();
    (!items.is_empty()).then_some(items)
}
