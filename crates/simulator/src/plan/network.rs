//! Gateways, routes, inference pools and services, and which pods serve behind a pool.

use serde_json::{Value, json};

use super::{Plan, gateway_conditions};
use crate::settings::Settings;
use crate::world::{World, has_labels, is_true, list, name, namespace, text};

/// Statuses of the network's objects. `address` is where the cluster's gateway listens, as `host:port`.
pub(super) fn plan(world: &World, settings: &Settings, address: &str, plan: &mut Plan) {
    for class in &world.gateway_classes {
        plan.status(
            class,
            json!({"conditions": gateway_conditions(class, &[("Accepted", true, "Accepted")])}),
        );
    }
    for gateway in &world.gateways {
        let class = text(gateway, "/spec/gatewayClassName");
        let accepted = world.gateway_classes.iter().any(|known| name(known) == class);
        let programmed = accepted && !settings.faults.gateway_down;
        let reason = if programmed { "Programmed" } else { "AddressNotUsable" };
        let conditions = gateway_conditions(
            gateway,
            &[("Accepted", accepted, "Accepted"), ("Programmed", programmed, reason)],
        );
        let mut status = json!({ "conditions": conditions });
        if accepted {
            status["addresses"] = json!([{"type": "modelplane.ai/host-port", "value": address}]);
        }
        plan.status(gateway, status);
    }
    for route in &world.routes {
        plan.status(route, parents(route, list(route, "/spec/parentRefs"), "Accepted"));
    }
    for pool in &world.inference_pools {
        let gateway = [json!({"kind": "Gateway", "name": "inference-gateway"})];
        plan.status(pool, parents(pool, &gateway, "Accepted"));
    }
    for service in world.services.iter().filter(|service| text(service, "/spec/type") == "LoadBalancer") {
        plan.status(service, json!({"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}));
    }
}

fn parents(object: &Value, references: &[Value], reason: &str) -> Value {
    let accepted = |reference: &Value| {
        let conditions =
            gateway_conditions(object, &[("Accepted", true, reason), ("ResolvedRefs", true, "ResolvedRefs")]);
        json!({
            "parentRef": reference, "controllerName": "gateway.envoyproxy.io/gatewayclass-controller",
            "conditions": conditions,
        })
    };
    json!({"parents": references.iter().map(accepted).collect::<Vec<_>>()})
}

/// The ready pods behind an InferencePool.
pub fn serving_pods<'w>(world: &'w World, pool: &'w Value) -> impl Iterator<Item = &'w Value> {
    let selector = &pool["spec"]["selector"]["matchLabels"];
    world.pods.iter().filter(move |pod| {
        namespace(pod) == namespace(pool) && has_labels(pod, selector) && is_true(pod, "Ready")
    })
}
