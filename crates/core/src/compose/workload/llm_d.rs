//! What llm-d's prefill/decode disaggregation adds to the pods that take requests (spec replica §6.6).
//!
//! Requests reach the decode pod's sidecar, which has a prefill pod process the prompt first and then hands over to
//! the decode engine beside it; the key-value cache travels between the pods over NIXL. The engine's own
//! key-value-transfer flags are the user's business.

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use modelplane_api::names::{LLM_D_ROLE_LABEL, LLM_D_SERVING_LABEL};
use modelplane_api::template::{ENGINE_CONTAINER, EnginePhase};

use super::{ReplicaContext, SERVING_PORT, WorkloadError, flag_value, pod};

const SIDECAR: &str = "pd-sidecar";
const SIDECAR_IMAGE: &str = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0";
const NIXL_VOLUME: &str = "nixl-shm";
const NIXL_HOST: &str = "VLLM_NIXL_SIDE_CHANNEL_HOST";
const NIXL_PORT: &str = "VLLM_NIXL_SIDE_CHANNEL_PORT";
const DEFAULT_ENGINE_PORT: u16 = 8001;

/// Makes the pods of `template` the `phase` half of a disaggregated replica.
///
/// # Errors
///
/// If the decode engine's `--port` is not a port.
pub fn disaggregate(
    template: &mut PodTemplateSpec,
    replica: &ReplicaContext,
    phase: EnginePhase,
) -> Result<(), WorkloadError> {
    let role = match phase {
        EnginePhase::Prefill => "prefill",
        EnginePhase::Decode => "decode",
    };
    let labels = template.metadata.get_or_insert_with(ObjectMeta::default).labels.get_or_insert_default();
    labels.extend([
        (LLM_D_ROLE_LABEL.to_owned(), role.to_owned()),
        (LLM_D_SERVING_LABEL.to_owned(), "true".to_owned()),
        ("app".to_owned(), replica.label.clone()),
    ]);
    let Some(spec) = template.spec.as_mut() else { return Ok(()) };
    if phase == EnginePhase::Decode {
        add_sidecar(spec)?;
    }
    add_nixl(spec);
    Ok(())
}

/// Puts the sidecar on the serving port and the engine behind it.
fn add_sidecar(spec: &mut PodSpec) -> Result<(), WorkloadError> {
    let Some(engine) = engine_of(spec) else { return Ok(()) };
    let port = engine_port(engine.args.as_deref().unwrap_or_default())?;
    engine.ports = Some(vec![pod::port(port)]);
    engine.readiness_probe = Some(pod::health_probe(port));
    spec.containers.push(Container {
        name: SIDECAR.to_owned(),
        image: Some(SIDECAR_IMAGE.to_owned()),
        args: Some(vec![
            "--secure-proxy=false".to_owned(),
            "--kv-connector=nixlv2".to_owned(),
            format!("--vllm-port={port}"),
        ]),
        ports: Some(vec![pod::port(SERVING_PORT)]),
        readiness_probe: Some(pod::health_probe(SERVING_PORT)),
        ..Container::default()
    });
    Ok(())
}

/// The port the engine says it listens on. A port given inside `command` is not seen.
fn engine_port(args: &[String]) -> Result<u16, WorkloadError> {
    let Some(text) = flag_value(args, &["--port"]) else { return Ok(DEFAULT_ENGINE_PORT) };
    match text.trim().parse() {
        Ok(SERVING_PORT) => Err(WorkloadError::PortTaken(SERVING_PORT)),
        Ok(0) | Err(_) => Err(WorkloadError::Port(text.to_owned())),
        Ok(port) => Ok(port),
    }
}

/// Gives the engine what NIXL needs, as far as the user has not done so.
fn add_nixl(spec: &mut PodSpec) {
    let volumes = spec.volumes.get_or_insert_default();
    if volumes.iter().all(|volume| volume.name != NIXL_VOLUME) {
        volumes.push(pod::memory_volume(NIXL_VOLUME));
    }
    let Some(engine) = engine_of(spec) else { return };
    let mounts = engine.volume_mounts.get_or_insert_default();
    if mounts.iter().all(|mount| mount.mount_path != pod::SHARED_MEMORY_MOUNT) {
        mounts.push(pod::mount(NIXL_VOLUME, pod::SHARED_MEMORY_MOUNT));
    }
    let environment = engine.env.get_or_insert_default();
    for variable in [pod::field_variable(NIXL_HOST, "status.podIP"), pod::variable(NIXL_PORT, "5557")] {
        if environment.iter().all(|existing| existing.name != variable.name) {
            environment.push(variable);
        }
    }
}

fn engine_of(spec: &mut PodSpec) -> Option<&mut Container> {
    spec.containers.iter_mut().find(|container| container.name == ENGINE_CONTAINER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_may_not_take_the_sidecars_port() {
        assert_eq!(engine_port(&["--port=8000".to_owned()]), Err(WorkloadError::PortTaken(8000)));
    }

    #[test]
    fn the_engine_port_is_the_first_port_argument() {
        let cases: &[(&[&str], Result<u16, &str>)] = &[
            (&[], Ok(8001)),
            (&["--port", "9000"], Ok(9000)),
            (&["serve", "--port=9000", "--port", "1"], Ok(9000)),
            (&["--port"], Ok(8001)),
            (&["--ports", "9"], Ok(8001)),
            (&["--port="], Err("")),
            (&["--port", "http"], Err("http")),
            (&["--port=0"], Err("0")),
            (&["--port=65536"], Err("65536")),
        ];
        for (args, want) in cases {
            let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
            let want = want.map_err(|text| WorkloadError::Port(text.to_owned()));
            assert_eq!(engine_port(&args), want, "{args:?}");
        }
    }
}
