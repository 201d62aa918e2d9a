//! MetalLB beside a gateway, for control planes without a cloud load balancer.
//!
//! Installed in order: namespace, release, then the address pool and its announcement, whose kinds the
//! release brings. When it is no longer asked for, it goes in the opposite order, one step a pass.

use modelplane_api::inference_gateway::{LoadBalancer, Traefik};
use serde_json::json;

use super::{PROVIDER_CONFIG, provider_config_usage, release};
use crate::compose::object::{KubernetesObject, Metadata};
use crate::contract::{Body, Desired, Observed, Ready, Severity};
use crate::versions::METALLB;

const NAMESPACE: &str = "namespace-metallb";
const RELEASE: &str = "metallb";
const PROVIDER_CONFIG_USAGE: &str = "usage-pc-by-metallb";
const POOL: &str = "metallb-pool";
const ANNOUNCEMENT: &str = "metallb-l2";
const API_VERSION: &str = "metallb.io/v1beta1";
/// Name of the pool and of its announcement.
const NAME: &str = "modelplane";

/// Composes MetalLB if it is asked for.
pub(super) fn compose<'a>(observed: &Observed<'a>, traefik: &Traefik, desired: &mut Desired<'a>) {
    let settings = traefik.metallb.as_ref();
    let pool = settings.map(|metallb| metallb.address_pool.as_str()).filter(|pool| !pool.is_empty());
    match (traefik.load_balancer, pool) {
        (Some(LoadBalancer::MetalLb), Some(pool)) => install(observed, pool, desired),
        (Some(LoadBalancer::MetalLb), None) => {
            hold(observed, desired, &[NAMESPACE, RELEASE, PROVIDER_CONFIG_USAGE, POOL, ANNOUNCEMENT]);
            desired.event(
                Severity::Warning,
                "spec.traefik.loadBalancer is MetalLB, but spec.traefik.metallb.addressPool is not set: MetalLB \
                 stays as it is; set a range of addresses",
            );
        }
        (None, _) => withdraw(observed, desired),
    }
}

fn install<'a>(observed: &Observed<'a>, pool: &str, desired: &mut Desired<'a>) {
    let namespace = KubernetesObject::with_content("v1", "Namespace", ());
    let namespace = namespace.with_metadata(Metadata::named(METALLB.namespace));
    desired.add(NAMESPACE, Body::of(&namespace), Ready::True);

    let running = observed.is_ready(RELEASE);
    if observed.has(PROVIDER_CONFIG) || observed.has(RELEASE) {
        let body = release::<()>(&METALLB, METALLB.version, None);
        desired.add(RELEASE, body, Ready::when(running));
        desired.add(PROVIDER_CONFIG_USAGE, provider_config_usage(&METALLB), Ready::True);
    }
    if running || observed.has(POOL) || observed.has(ANNOUNCEMENT) {
        let pool = custom_resource("IPAddressPool", json!({"addresses": [pool]}));
        desired.add(POOL, pool, Ready::True);
        let announcement = custom_resource("L2Advertisement", json!({"ipAddressPools": [NAME]}));
        desired.add(ANNOUNCEMENT, announcement, Ready::True);
    }
}

fn custom_resource(kind: &'static str, spec: serde_json::Value) -> Body<'static> {
    let metadata = Metadata::named(NAME).and_namespace(METALLB.namespace);
    Body::of(&KubernetesObject::with_spec(API_VERSION, kind, spec).with_metadata(metadata))
}

/// Withdraws the pool first, then the release that serves its kind, then the namespace.
fn withdraw<'a>(observed: &Observed<'a>, desired: &mut Desired<'a>) {
    if observed.has(POOL) || observed.has(ANNOUNCEMENT) {
        hold(observed, desired, &[NAMESPACE, RELEASE, PROVIDER_CONFIG_USAGE]);
    } else if observed.has(RELEASE) {
        // The usage keeps the provider config, which the release needs to be uninstalled.
        hold(observed, desired, &[NAMESPACE, PROVIDER_CONFIG_USAGE]);
    }
}

fn hold<'a>(observed: &Observed<'a>, desired: &mut Desired<'a>, keys: &[&'static str]) {
    for &key in keys {
        if let Some(resource) = observed.resources.get(key) {
            desired.hold(key, resource);
        }
    }
}
