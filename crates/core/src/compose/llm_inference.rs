//! `LLMInference`: one model on one cluster, served by the vLLM Production Stack (spec llm-inference).
//!
//! The final state of that API; `docs/llm-inference.md` lists where its first state differs. Everything
//! but the model follows from the number of accelerators; nothing depends on which model it is.

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::llm_inference::LLMInference;
use serde::Serialize;
use serde_json::json;

use super::object::{KubernetesObject, Metadata, ProviderConfigRef, Spec};
use crate::contract::{Body, ComposeError, Condition, Desired, Event, Observed, Ready, Severity};
use crate::versions::VLLM_PRODUCTION_STACK;

/// Key of the runtime.
const RUNTIME: &str = "vllm_runtime";
/// What the first state of the API called it.
const SEED_RUNTIME: &str = "vllm-runtime";
/// Key of the Ingress.
const INGRESS: &str = "ingress";
/// Processors per accelerator.
const CPUS_PER_GPU: i64 = 2;
/// Memory per accelerator, in Gi.
const MEMORY_PER_GPU: i64 = 8;
/// Port of the Service that the operator makes for a runtime.
const SERVICE_PORT: u16 = 80;

/// Composes a model's runtime and, if it has a host name, its Ingress.
///
/// # Errors
///
/// If the composite cannot be read, has no name, model or provider config, or a negative number of
/// accelerators.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let inference: LLMInference = observed.decode_composite()?;
    check(observed, &inference)?;
    let spec = &inference.spec;
    let mut desired = Desired::starting_from(observed);

    let runtime =
        manifest(&inference, "production-stack.vllm.ai/v1alpha1", "VLLMRuntime", runtime(&inference));
    // A runtime made by the first state keeps its key: under another one it would be deleted and made anew.
    let seeded = observed.has(SEED_RUNTIME) && !observed.has(RUNTIME);
    add(&mut desired, observed, if seeded { SEED_RUNTIME } else { RUNTIME }, &inference, runtime);
    if let Some(host) = spec.ingress_host.as_deref().filter(|host| !host.is_empty()) {
        let service = json!({"name": inference.metadata.name, "port": {"number": SERVICE_PORT}});
        let path = json!({"path": "/", "pathType": "Prefix", "backend": {"service": service}});
        let rules = json!({"rules": [{"host": host, "http": {"paths": [path]}}]});
        let ingress = manifest(&inference, "networking.k8s.io/v1", "Ingress", rules);
        add(&mut desired, observed, INGRESS, &inference, ingress);
    }

    desired.events.push(Event {
        severity: Severity::Normal,
        reason: Some("Composed".into()),
        message: format!("serving {} on {} accelerators", spec.model, spec.gpu()),
    });
    desired.condition(Condition::is_true(
        ConditionType::ResourcesComposed.as_str(),
        Reason::AllComposed.as_str(),
    ));
    Ok(desired)
}

/// What the API server's schema lets through, but nothing can be made of.
fn check(observed: &Observed<'_>, inference: &LLMInference) -> Result<(), ComposeError> {
    let spec = &inference.spec;
    let required = [
        ("metadata.name", &inference.metadata.name),
        ("spec.model", &spec.model),
        ("spec.providerConfigName", &spec.provider_config_name),
    ];
    if let Some((field, _)) = required.iter().find(|(_, value)| value.is_empty()) {
        return Err(observed.error(format!("{field} is empty")));
    }
    if spec.gpu() < 0 {
        return Err(observed.error(format!("spec.gpu is {}, but must not be negative", spec.gpu())));
    }
    Ok(())
}

/// The spec of a `VLLMRuntime`, as far as it is set here.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuntimeSpec<'s> {
    model: Model<'s>,
    vllm_config: VllmConfig,
    deployment_config: DeploymentConfig,
}

#[derive(Serialize)]
struct Model<'s> {
    #[serde(rename = "modelURL")]
    model_url: &'s str,
    dtype: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VllmConfig {
    /// Text, as the operator wants it.
    gpu_memory_utilization: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensor_parallel_size: Option<i64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    env: &'static [Variable],
}

#[derive(Serialize)]
struct Variable {
    name: &'static str,
    value: &'static str,
}

#[derive(Serialize)]
struct DeploymentConfig {
    replicas: u32,
    image: Image,
    resources: Resources,
}

#[derive(Serialize)]
struct Image {
    registry: &'static str,
    name: String,
}

#[derive(Serialize)]
struct Resources {
    cpu: String,
    memory: String,
    gpu: String,
}

/// What several accelerators need: forking after CUDA is initialised does not work.
const PARALLEL_ENV: &[Variable] = &[Variable { name: "VLLM_WORKER_MULTIPROC_METHOD", value: "spawn" }];

fn runtime(inference: &LLMInference) -> RuntimeSpec<'_> {
    let gpu = inference.spec.gpu();
    let parallel = gpu > 1;
    let image = &VLLM_PRODUCTION_STACK;
    RuntimeSpec {
        model: Model { model_url: &inference.spec.model, dtype: "auto" },
        vllm_config: VllmConfig {
            gpu_memory_utilization: "0.9",
            tensor_parallel_size: parallel.then_some(gpu),
            env: if parallel { PARALLEL_ENV } else { &[] },
        },
        deployment_config: DeploymentConfig {
            replicas: 1,
            image: Image { registry: image.registry, name: format!("{}:{}", image.repository, image.tag) },
            resources: Resources {
                cpu: gpu.saturating_mul(CPUS_PER_GPU).to_string(),
                memory: format!("{}Gi", gpu.saturating_mul(MEMORY_PER_GPU)),
                gpu: gpu.to_string(),
            },
        },
    }
}

/// A manifest named like the composite, in the target namespace or else the composite's.
fn manifest<S>(
    inference: &LLMInference,
    api_version: &'static str,
    kind: &'static str,
    spec: S,
) -> KubernetesObject<'static, Spec<S>> {
    let target = inference.spec.target_namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let namespace = target.unwrap_or(inference.metadata.namespace());
    let mut metadata = Metadata::named(inference.metadata.name.as_str());
    if !namespace.is_empty() {
        metadata = metadata.and_namespace(namespace);
    }
    KubernetesObject::with_spec(api_version, kind, spec).with_metadata(metadata)
}

fn add<'a, S: Serialize>(
    desired: &mut Desired<'a>,
    observed: &Observed<'a>,
    key: &'static str,
    inference: &LLMInference,
    manifest: KubernetesObject<'static, Spec<S>>,
) {
    let provider_config = ProviderConfigRef::namespaced(inference.spec.provider_config_name.as_str());
    let object = KubernetesObject::provider_object(provider_config, None, manifest);
    desired.add(key, Body::of(&object), Ready::when(observed.is_ready(key)));
}
