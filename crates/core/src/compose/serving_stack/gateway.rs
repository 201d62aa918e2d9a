//! The gateway of a cluster: namespace, proxy settings, class and Gateway (spec serving-stack §5.4).

use modelplane_api::names::{CLUSTER_GATEWAY, SYSTEM_NAMESPACE};
use modelplane_api::serving_stack::{Listener, ListenerProtocol, ServingStackSpec, StackGateway};
use serde_json::{Value, json};

use super::parts::{Parts, Slot};
use super::{GATEWAY, GATEWAY_CLASS, GATEWAY_PROXY, manifest};
use crate::compose::object::{KubernetesObject, Metadata, Readiness};

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";
const ENVOY_GROUP: &str = "gateway.envoyproxy.io";

/// An object that is not ready is observed every half minute instead of every ten, so the load balancer's
/// address is noticed soon.
const HAS_ADDRESS: &str = "has(object.status.addresses) && object.status.addresses.size() > 0";

/// Composes the gateway.
pub(super) fn compose(parts: &mut Parts<'_, '_, '_>, spec: &ServingStackSpec) {
    let default = StackGateway::default();
    let gateway = spec.gateway.as_ref().unwrap_or(&default);
    let slot = |key| Slot::new(key).labelled(key);
    let in_system = |name| Metadata::named(name).and_namespace(SYSTEM_NAMESPACE);

    parts.object(Slot::new("gateway-namespace"), None, || {
        KubernetesObject::with_content("v1", "Namespace", ()).with_metadata(Metadata::named(SYSTEM_NAMESPACE))
    });
    parts.object(slot(GATEWAY_PROXY), None, || {
        // Envoy Gateway's own default, `Local`, is refused by some clouds' load balancers.
        let service = json!({"envoyService": {"externalTrafficPolicy": "Cluster"}});
        let spec = json!({"provider": {"type": "Kubernetes", "kubernetes": service}});
        manifest("gateway.envoyproxy.io/v1alpha1", "EnvoyProxy", in_system(CLUSTER_GATEWAY), spec)
    });
    parts.object(slot(GATEWAY_CLASS), None, || {
        let spec = json!({
            "controllerName": "gateway.envoyproxy.io/gatewayclass-controller",
            "parametersRef": {
                "group": ENVOY_GROUP,
                "kind": "EnvoyProxy",
                "name": CLUSTER_GATEWAY,
                "namespace": SYSTEM_NAMESPACE,
            },
        });
        manifest(GATEWAY_API, "GatewayClass", Metadata::named(gateway.class_name()), spec)
    });
    let readiness = Readiness::DeriveFromCelQuery { cel_query: HAS_ADDRESS.into() };
    parts.object(slot(GATEWAY), Some(readiness), || {
        let spec =
            json!({"gatewayClassName": gateway.class_name(), "listeners": listeners(&gateway.listeners)});
        manifest(GATEWAY_API, "Gateway", in_system(CLUSTER_GATEWAY), spec)
    });
}

/// The listeners asked for, or HTTP on port 80; routes of every namespace may attach.
fn listeners(listeners: &[Listener]) -> Vec<Value> {
    let listener = |name: &str, protocol: ListenerProtocol, port: i64| {
        let routes = json!({"namespaces": {"from": "All"}});
        json!({"name": name, "protocol": protocol, "port": port, "allowedRoutes": routes})
    };
    match listeners {
        [] => vec![listener("http", ListenerProtocol::Http, 80)],
        listeners => listeners.iter().map(|l| listener(&l.name, l.protocol, l.port)).collect(),
    }
}
