//! The Traefik backend: the controller from its chart, its GatewayClass and the fleet's Gateway.
//!
//! Traefik can rewrite paths per backend of a route, which services need because their endpoints have
//! different path layouts.

use modelplane_api::inference_gateway::InferenceGatewaySpec;
use modelplane_api::names::{FLEET_GATEWAY, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

use super::{
    GATEWAY, PROVIDER_CONFIG, gateway_api_is_served, metallb, provider_config, provider_config_usage,
    release, release_of, system_usage,
};
use crate::compose::object::{KubernetesObject, Metadata};
use crate::compose::usage::UsedBy;
use crate::contract::{Body, ComposeError, Desired, Observed, Ready, Severity};
use crate::versions::TRAEFIK;

/// Key of the release.
pub(super) const RELEASE: &str = "traefik";
const GATEWAY_CLASS: &str = "gateway-class";
const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";
/// Name of the GatewayClass, and of Traefik's Service.
const CLASS_NAME: &str = "traefik";
/// Port of Traefik's `web` entry point inside its pods; its Service exposes it as 80.
const WEB_PORT: u16 = 8000;

/// Composes Traefik; returns whether its controller runs.
pub(super) fn compose<'a>(
    observed: &Observed<'a>,
    spec: &InferenceGatewaySpec,
    desired: &mut Desired<'a>,
) -> Result<bool, ComposeError> {
    let traefik = spec
        .traefik
        .as_ref()
        .ok_or_else(|| observed.error("spec.traefik is missing, but spec.backend is Traefik"))?;
    desired.add(PROVIDER_CONFIG, provider_config(), Ready::True);
    metallb::compose(observed, traefik, desired);

    let running = observed.is_ready(RELEASE);
    // The chart brings no definitions: without them it cannot be rendered.
    let installable = observed.has(PROVIDER_CONFIG) && gateway_api_is_served(observed);
    if installable || observed.has(RELEASE) {
        let values = Some(values());
        desired.add(RELEASE, release(&TRAEFIK, &traefik.version, values), Ready::when(running));
        desired.add("usage-pc-by-traefik", provider_config_usage(&TRAEFIK), Ready::True);
    }
    for (key, body) in [(GATEWAY_CLASS, gateway_class as fn() -> Body<'static>), (GATEWAY, gateway)] {
        if running || observed.has(key) {
            // Not `Programmed`: without a load balancer a Gateway never is.
            desired.add(key, body(), Ready::when(observed.is_true(key, "Accepted")));
        }
    }
    deletion_order(desired);
    if running && !observed.has(GATEWAY) {
        desired.event(Severity::Normal, "Traefik is ready; composing its GatewayClass and Gateway");
    }
    Ok(running)
}

/// The release goes after its Gateway and GatewayClass, whose finalizers only its controller clears.
///
/// Upstream has these the other way round, under keys `usage-gateway-by-traefik` and
/// `usage-gateway-class-by-traefik`; both pairs together would block each other, so those are not kept.
fn deletion_order(desired: &mut Desired<'_>) {
    for (key, user, kind, name) in [
        ("usage-traefik-by-gateway-class", GATEWAY_CLASS, "GatewayClass", CLASS_NAME),
        ("usage-traefik-by-gateway", GATEWAY, "Gateway", FLEET_GATEWAY),
    ] {
        if desired.resources.contains_key(RELEASE) && desired.resources.contains_key(user) {
            let by = UsedBy::named(GATEWAY_API, kind, name);
            desired.add(key, system_usage(release_of(&TRAEFIK), by), Ready::True);
        }
    }
}

/// The chart's own Gateway and class are off: they are composed here, and so observable.
fn values() -> Value {
    let service = json!({"namespace": TRAEFIK.namespace, "name": CLASS_NAME});
    json!({
        "providers": {
            "kubernetesGateway": {"enabled": true, "statusAddress": {"service": service}},
            "kubernetesIngress": {"enabled": false},
        },
        // Under a fixed name, because the address is read from it.
        "service": {"nameOverride": CLASS_NAME},
        "gateway": {"enabled": false},
        "gatewayClass": {"enabled": false},
    })
}

fn gateway_class() -> Body<'static> {
    let spec = json!({"controllerName": "traefik.io/gateway-controller"});
    let class = KubernetesObject::with_spec(GATEWAY_API, "GatewayClass", spec);
    Body::of(&class.with_metadata(Metadata::named(CLASS_NAME)))
}

fn gateway() -> Body<'static> {
    let routes = json!({"namespaces": {"from": "All"}});
    let listener = json!({"name": "web", "protocol": "HTTP", "port": WEB_PORT, "allowedRoutes": routes});
    let spec = json!({"gatewayClassName": CLASS_NAME, "listeners": [listener]});
    let metadata = Metadata::named(FLEET_GATEWAY).and_namespace(SYSTEM_NAMESPACE);
    Body::of(&KubernetesObject::with_spec(GATEWAY_API, "Gateway", spec).with_metadata(metadata))
}
