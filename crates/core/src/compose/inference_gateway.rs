//! `InferenceGateway`: the one entry point of the fleet, on the control plane (spec gateway-and-routing §2).
//!
//! This file picks the backend and reports what any backend reports; a backend's file composes its
//! resources and says whether its controller runs. What all backends need, the Gateway API's definitions,
//! is composed here.

mod metallb;
mod modelplane;
mod traefik;

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::inference_gateway::{GatewayBackend, InferenceGateway, InferenceGatewayStatus};
use modelplane_api::names::{IN_CLUSTER_PROVIDER_CONFIG, RELEASE_LABEL, SYSTEM_NAMESPACE};
use serde::Serialize;
use serde_json::json;

use super::object::{KubernetesObject, Metadata, ProviderConfigRef, RELEASE_API_VERSION, Spec};
use super::release::ReleaseSpec;
use super::usage::{UsageObject, UsedBy, usage};
use crate::contract::{Body, ComposeError, Condition, Desired, Observed, Ready};
use crate::crds::{self, Definition};
use crate::document::Document;
use crate::versions::Chart;

/// Key of the provider config with which the control plane installs on itself.
const PROVIDER_CONFIG: &str = "provider-config-helm";
/// Key of the Gateway, whatever implements it.
const GATEWAY: &str = "gateway";

/// Composes the fleet's gateway.
///
/// # Errors
///
/// If the composite cannot be read, or lacks the block of its backend.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let gateway: InferenceGateway = observed.decode_composite()?;
    let mut desired = Desired::starting_from(observed);
    for definition in crds::gateway_api() {
        let key = definition_key(definition);
        let ready = Ready::when(observed.is_true(&key, "Established"));
        desired.add(key, definition.body(), ready);
    }
    let (controller_runs, other_workload) = match gateway.spec.backend {
        GatewayBackend::Traefik => {
            (traefik::compose(observed, &gateway.spec, &mut desired)?, modelplane::DEPLOYMENT)
        }
        GatewayBackend::Modelplane => {
            (modelplane::compose(observed, &gateway.spec, &mut desired), traefik::RELEASE)
        }
    };
    if !controller_runs && observed.has(other_workload) {
        // The backend in service goes on, with the Gateway it answers for, until the new one runs.
        desired.resources.remove(GATEWAY);
        desired.hold_all(observed);
    }
    desired.condition(controller_ready(controller_runs));
    let address = address(observed).map(ToOwned::to_owned);
    desired.set_status(&InferenceGatewayStatus { conditions: Vec::new(), address });
    Ok(desired)
}

fn controller_ready(controller_runs: bool) -> Condition {
    let condition_type = ConditionType::ControllerReady.as_str();
    if controller_runs {
        Condition::is_true(condition_type, Reason::ControllerHealthy.as_str())
    } else {
        Condition::is_false(condition_type, Reason::Installing.as_str())
            .because("the gateway's controller is not ready yet")
    }
}

fn definition_key(definition: &Definition) -> String {
    format!("gateway-api-crd-{}", definition.name)
}

/// Whether the API server serves all of the Gateway API.
fn gateway_api_is_served(observed: &Observed<'_>) -> bool {
    crds::gateway_api().iter().all(|definition| observed.is_true(&definition_key(definition), "Established"))
}

/// The Gateway's first address. While the Gateway is not observed the address published last stays: every
/// service's own address is built on it.
fn address<'a>(observed: &Observed<'a>) -> Option<&'a str> {
    let Some(gateway) = observed.resources.get(GATEWAY) else {
        return observed.composite.document.text_at(&["status", "address"]);
    };
    let addresses: Option<Vec<Document<'a>>> =
        gateway.document.decode_at(&["status", "addresses"]).ok().flatten();
    addresses?.first()?.text_at(&["value"])
}

/// The provider config with which Helm installs on the control plane itself.
fn provider_config() -> Body<'static> {
    let spec = json!({"credentials": {"source": "InjectedIdentity"}});
    let metadata = Metadata::named(IN_CLUSTER_PROVIDER_CONFIG).and_namespace(SYSTEM_NAMESPACE);
    Body::of(
        &KubernetesObject::with_spec(RELEASE_API_VERSION, "ProviderConfig", spec).with_metadata(metadata),
    )
}

/// A release on the control plane, findable by its chart's name.
fn release<V: Serialize>(chart: &'static Chart, version: &str, values: Option<V>) -> Body<'static> {
    let provider_config = ProviderConfigRef::namespaced(IN_CLUSTER_PROVIDER_CONFIG);
    let release: KubernetesObject<'_, Spec<ReleaseSpec<'_, V>>> =
        KubernetesObject::release(provider_config, chart, version, values);
    let metadata = Metadata::in_namespace(SYSTEM_NAMESPACE).and_label(RELEASE_LABEL, chart.name);
    Body::of(&release.with_metadata(metadata))
}

/// The release of a chart, as one side of a usage.
fn release_of(chart: &'static Chart) -> UsedBy<'static> {
    UsedBy::sibling(RELEASE_API_VERSION, "Release").labelled(RELEASE_LABEL, chart.name)
}

/// Keeps the provider config until the release of `chart` is gone.
fn provider_config_usage(chart: &'static Chart) -> Body<'static> {
    let of = UsedBy::named(RELEASE_API_VERSION, "ProviderConfig", IN_CLUSTER_PROVIDER_CONFIG);
    system_usage(of, release_of(chart))
}

/// A usage in the system's namespace.
fn system_usage(of: UsedBy<'static>, by: UsedBy<'static>) -> Body<'static> {
    let object: UsageObject<'static> = usage(of, by);
    Body::of(&object.with_metadata(Metadata::in_namespace(SYSTEM_NAMESPACE)))
}
