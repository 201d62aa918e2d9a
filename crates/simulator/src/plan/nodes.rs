//! Nodes of the declared pools and the devices they publish.

use std::collections::HashSet;

use modelplane_api::common::{ClaimMode, Device};
use modelplane_api::names::{POOL_LABEL, SIMULATED_LABEL};
use serde_json::{Value, json};

use super::{Action, Place, Plan, contains};
use crate::settings::{Pool, Settings};
use crate::world::{World, name, text};

/// Asks for every node and what it publishes, and for those that are too many to go.
pub(super) fn plan(world: &World, settings: &Settings, plan: &mut Plan) {
    let mut wanted = HashSet::new();
    for pool in &settings.pools {
        for index in 0..pool.nodes {
            let node = node_name(&settings.name, &pool.name, index);
            let lost = settings.faults.lost_nodes.get(&pool.name).is_some_and(|lost| index < *lost);
            ensure(plan, &world.nodes, node_object(&node, pool));
            if let Some(object) = world.nodes.iter().find(|object| name(object) == node) {
                plan.status(object, node_status(lost));
            }
            for slice in slices(&node, pool) {
                ensure(plan, &world.slices, slice);
            }
            wanted.insert(node);
        }
        for device in pool.devices.iter().filter(|device| device.claim() == ClaimMode::Dra) {
            if let Some(class) = &device.device_class_name {
                ensure(plan, &world.device_classes, device_class(class, &device.driver));
            }
        }
    }
    let gone = world.slices.iter().filter(|slice| !wanted.contains(text(slice, "/spec/nodeName")));
    let gone = gone.chain(world.nodes.iter().filter(|node| !wanted.contains(name(node))));
    plan.actions
        .extend(gone.filter(|object| is_ours(object)).map(|object| Action::Delete(Place::of(object))));
}

/// Whether a node's kubelet reports.
pub(super) fn is_reporting(node: &Value) -> bool {
    crate::world::is_true(node, "Ready")
}

/// Name of a node.
fn node_name(cluster: &str, pool: &str, index: u32) -> String {
    format!("{cluster}-{pool}-{index}")
}

fn is_ours(object: &Value) -> bool {
    object["metadata"]["labels"][SIMULATED_LABEL] == "true"
}

/// Asks for an object to be made, or to get the spec it should have.
fn ensure(plan: &mut Plan, known: &[Value], object: Value) {
    match known.iter().find(|known| name(known) == name(&object)) {
        None => plan.actions.push(Action::Create(object)),
        Some(known) if is_ours(known) && !contains(&known["spec"], &object["spec"]) => {
            plan.actions.push(Action::Patch(Place::of(known), json!({"spec": object["spec"]})));
        }
        Some(_) => {}
    }
}

fn node_object(node: &str, pool: &Pool) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node, "labels": {
            "kubernetes.io/hostname": node, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            POOL_LABEL: pool.name, SIMULATED_LABEL: "true",
        }},
        "spec": {"providerID": format!("simulated://{node}")},
    })
}

fn node_status(lost: bool) -> Value {
    let capacity = json!({"cpu": "192", "memory": "2Ti", "pods": "110"});
    let (status, reason) = if lost { ("Unknown", "NodeStatusUnknown") } else { ("True", "KubeletReady") };
    json!({
        "capacity": capacity, "allocatable": capacity,
        "conditions": [{"type": "Ready", "status": status, "reason": reason}],
        "nodeInfo": {
            "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "simulated://1", "kernelVersion": "",
            "kubeProxyVersion": "", "kubeletVersion": "v1.36.3-simulated", "machineID": "",
            "operatingSystem": "linux", "osImage": "simulated", "systemUUID": "",
        },
    })
}

/// One ResourceSlice for each driver of the pool's devices. Devices without a driver's claims are not published.
fn slices(node: &str, pool: &Pool) -> Vec<Value> {
    let claimable = |device: &&Device| device.claim() == ClaimMode::Dra;
    let mut drivers: Vec<&str> = pool.devices.iter().filter(claimable).map(|d| d.driver.as_str()).collect();
    drivers.sort_unstable();
    drivers.dedup();
    let slice = |driver: &str| {
        let of_driver = pool.devices.iter().filter(claimable).filter(|device| device.driver == driver);
        let devices: Vec<Value> = of_driver.flat_map(published).collect();
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": format!("{node}-{driver}"), "labels": {SIMULATED_LABEL: "true"}},
            "spec": {
                "driver": driver, "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        })
    };
    drivers.into_iter().map(slice).collect()
}

/// The devices of one entry of a class, as a driver publishes them.
fn published(device: &Device) -> Vec<Value> {
    (0..device.count.unwrap_or(1).max(0))
        .map(|index| {
            let mut one = json!({"name": format!("{}-{index}", device.name)});
            if !device.attributes.is_empty() {
                one["attributes"] = json!(device.attributes);
            }
            if !device.capacity.is_empty() {
                one["capacity"] = json!(device.capacity);
            }
            one
        })
        .collect()
}

/// The class through which a driver's devices are claimed, as the driver's chart would bring it.
fn device_class(class: &str, driver: &str) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": class, "labels": {SIMULATED_LABEL: "true"}},
        "spec": {"selectors": [{"cel": {"expression": format!("device.driver == '{driver}'")}}]},
    })
}
