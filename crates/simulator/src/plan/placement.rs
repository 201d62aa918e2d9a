//! Pods to nodes, and claims to devices, by the same selectors as in Kubernetes (KEP-4381).
//!
//! A pod goes to the first node, by name, that has its labels and free devices for all its claims.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use modelplane_api::names::SIMULATED_LABEL;
use modelplane_cel::device::{Attribute, Device, PreparedDevice};
use serde_json::{Value, json};

use super::{Action, Place, Plan, Planner, conditions, controlled_by, nodes};
use crate::world::{World, list, name, namespace, number, text, uid};

/// A device: driver, pool (which is its node), name.
type DeviceId<'w> = (&'w str, &'w str, &'w str);

/// A device a node publishes.
struct Published<'w> {
    id: DeviceId<'w>,
    prepared: PreparedDevice<'w>,
}

/// A claim made for a pod, with the devices it got.
struct Allocation<'w> {
    claim: &'w Value,
    spec: &'w Value,
    results: Vec<Value>,
    devices: Vec<DeviceId<'w>>,
}

/// Binds pods that wait, with their claims.
pub(super) fn plan(planner: &mut Planner, world: &World, plan: &mut Plan) {
    let waiting: Vec<&Value> = world.pods.iter().filter(|pod| is_waiting(pod)).collect();
    let released = release_claims(world, plan);
    if waiting.is_empty() || released {
        return;
    }
    let published = published(world);
    let mut taken: HashSet<(String, String, String)> = allocated(world);
    for pod in waiting {
        match place(planner, world, pod, &published, &taken) {
            Ok((node, allocations)) => {
                let mut statuses = Vec::new();
                for allocation in &allocations {
                    taken.extend(allocation.devices.iter().map(|(driver, pool, device)| {
                        ((*driver).to_owned(), (*pool).to_owned(), (*device).to_owned())
                    }));
                    statuses.push(claim(world, pod, node, allocation, plan));
                }
                if !statuses.is_empty() {
                    let status = json!({"status": {"resourceClaimStatuses": statuses}});
                    plan.actions.push(Action::Status(Place::of(pod), status));
                }
                plan.actions.push(Action::Patch(Place::of(pod), json!({"spec": {"nodeName": node}})));
            }
            Err(message) => {
                let mut unscheduled = conditions(&[("PodScheduled", false, "Unschedulable")]);
                unscheduled[0]["message"] = json!(message);
                plan.status(pod, json!({"phase": "Pending", "conditions": unscheduled}));
            }
        }
    }
}

fn is_waiting(pod: &Value) -> bool {
    text(pod, "/spec/nodeName").is_empty() && pod["metadata"]["deletionTimestamp"].is_null()
}

/// Claims whose pod is gone go too; a real cluster's controllers do that by owner reference. Says whether any go:
/// their devices and names are free in the next pass.
fn release_claims(world: &World, plan: &mut Plan) -> bool {
    let before = plan.actions.len();
    let pods: HashSet<&str> = world.pods.iter().map(uid).collect();
    for claim in world.claims.iter().filter(|claim| claim["metadata"]["labels"][SIMULATED_LABEL] == "true") {
        if !pods.contains(text(claim, "/metadata/ownerReferences/0/uid")) {
            plan.actions.push(Action::Delete(Place::of(claim)));
        }
    }
    plan.actions.len() > before
}

/// Every device by node, prepared for selectors. One that cannot be read is left out, as in Kubernetes.
fn published(world: &World) -> HashMap<&str, Vec<Published<'_>>> {
    let mut by_node: HashMap<&str, Vec<Published<'_>>> = HashMap::new();
    for slice in &world.slices {
        let (driver, pool) = (text(slice, "/spec/driver"), text(slice, "/spec/pool/name"));
        let devices = by_node.entry(text(slice, "/spec/nodeName")).or_default();
        devices.extend(list(slice, "/spec/devices").iter().filter_map(|device| {
            let prepared = PreparedDevice::new(selectable(driver, device)).ok()?;
            Some(Published { id: (driver, pool, name_of(device)), prepared })
        }));
    }
    by_node
}

fn name_of(device: &Value) -> &str {
    text(device, "/name")
}

fn selectable<'w>(driver: &'w str, device: &'w Value) -> Device<'w> {
    let entries = |field: &str| device[field].as_object().into_iter().flatten();
    let attributes = entries("attributes").filter_map(|(name, value)| {
        let value = match value.as_object()?.iter().next()? {
            (kind, Value::String(text)) if kind == "version" => Attribute::Version(Cow::Borrowed(text)),
            (_, Value::String(text)) => Attribute::String(Cow::Borrowed(text)),
            (_, Value::Bool(bit)) => Attribute::Bool(*bit),
            (_, Value::Number(number)) => {
                Attribute::Int(number.as_i64().or_else(|| whole(number.as_f64()?))?)
            }
            _ => return None,
        };
        Some((Cow::Borrowed(name.as_str()), value))
    });
    let capacity = entries("capacity").filter_map(|(name, value)| {
        Some((Cow::Borrowed(name.as_str()), Cow::Borrowed(value["value"].as_str()?)))
    });
    Device {
        driver: Cow::Borrowed(driver),
        attributes: attributes.collect(),
        capacity: capacity.collect(),
        allow_multiple_allocations: false,
    }
}

fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// Devices that claims hold.
fn allocated(world: &World) -> HashSet<(String, String, String)> {
    let results = world.claims.iter().flat_map(|claim| list(claim, "/status/allocation/devices/results"));
    results
        .map(|result| {
            let part = |pointer: &str| text(result, pointer).to_owned();
            (part("/driver"), part("/pool"), part("/device"))
        })
        .collect()
}

/// The node for a pod, with the devices for its claims, or why there is none.
fn place<'w>(
    planner: &mut Planner,
    world: &'w World,
    pod: &'w Value,
    published: &HashMap<&'w str, Vec<Published<'w>>>,
    taken: &HashSet<(String, String, String)>,
) -> Result<(&'w str, Vec<Allocation<'w>>), String> {
    let selector = &pod["spec"]["nodeSelector"];
    let fits = |node: &&Value| {
        nodes::is_reporting(node) && (selector.is_null() || crate::world::has_labels(node, selector))
    };
    let candidates: Vec<&Value> = world.nodes.iter().filter(fits).collect();
    if candidates.is_empty() {
        return Err(format!(
            "0/{} nodes are available: no ready node has the pod's nodeSelector",
            world.nodes.len()
        ));
    }
    let mut reason = String::new();
    for node in &candidates {
        let devices = published.get(name(node)).map_or(&[][..], Vec::as_slice);
        match allocate(planner, world, pod, devices, taken) {
            Ok(allocations) => return Ok((name(node), allocations)),
            Err(why) => reason = why,
        }
    }
    Err(format!("0/{} nodes are available: {reason}", world.nodes.len()))
}

/// Devices of one node for all claims of a pod.
fn allocate<'w>(
    planner: &mut Planner,
    world: &'w World,
    pod: &'w Value,
    published: &[Published<'w>],
    taken: &HashSet<(String, String, String)>,
) -> Result<Vec<Allocation<'w>>, String> {
    let mut chosen: HashSet<DeviceId<'w>> = HashSet::new();
    let mut allocations = Vec::new();
    for reference in list(pod, "/spec/resourceClaims") {
        let template_name = text(reference, "/resourceClaimTemplateName");
        let template = world
            .claim_templates
            .iter()
            .find(|template| name(template) == template_name && namespace(template) == namespace(pod))
            .ok_or_else(|| format!("there is no ResourceClaimTemplate {template_name}"))?;
        let spec = &template["spec"]["spec"];
        let mut allocation = Allocation { claim: reference, spec, results: Vec::new(), devices: Vec::new() };
        for request in list(spec, "/devices/requests") {
            let exactly = &request["exactly"];
            let selectors = selectors_of(world, exactly);
            let count = number(exactly, "/count").unwrap_or(1) as usize;
            let before = allocation.devices.len();
            for device in published {
                if allocation.devices.len() - before == count {
                    break;
                }
                let (driver, pool, device_name) = device.id;
                let is_free = !chosen.contains(&device.id)
                    && !taken.contains(&(driver.to_owned(), pool.to_owned(), device_name.to_owned()));
                let matches = |text: &&str| {
                    let selector = planner.selector(text);
                    selector.is_some_and(|selector| selector.matches(&device.prepared).unwrap_or(false))
                };
                if is_free && selectors.iter().all(matches) {
                    chosen.insert(device.id);
                    allocation.devices.push(device.id);
                    allocation.results.push(json!({
                        "request": request["name"], "driver": driver, "pool": pool, "device": device_name,
                    }));
                }
            }
            if allocation.devices.len() - before < count {
                return Err(format!(
                    "cannot allocate all claims: {} of {count} devices for request {}",
                    allocation.devices.len() - before,
                    text(request, "/name")
                ));
            }
        }
        allocations.push(allocation);
    }
    Ok(allocations)
}

/// The selectors of a request: those of its class and its own.
fn selectors_of<'w>(world: &'w World, exactly: &'w Value) -> Vec<&'w str> {
    let class_name = text(exactly, "/deviceClassName");
    let class = world.device_classes.iter().find(|class| name(class) == class_name);
    let of_class = class.into_iter().flat_map(|class| list(class, "/spec/selectors"));
    let mut selectors: Vec<&str> = of_class
        .chain(list(exactly, "/selectors"))
        .map(|selector| text(selector, "/cel/expression"))
        .collect();
    if class.is_none() {
        // A class that is not there has no devices.
        selectors.push("false");
    }
    selectors
}

/// The claim of a pod, made and allocated; gives what the pod's status says of it.
fn claim(world: &World, pod: &Value, node: &str, allocation: &Allocation<'_>, plan: &mut Plan) -> Value {
    let claim_name = format!("{}-{}", name(pod), text(allocation.claim, "/name"));
    let object = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {
            "name": claim_name, "namespace": namespace(pod), "labels": {SIMULATED_LABEL: "true"},
            "annotations": {"resource.kubernetes.io/pod-claim-name": allocation.claim["name"]},
            "ownerReferences": controlled_by(pod),
        },
        "spec": allocation.spec,
    });
    let place = Place::of(&object);
    let exists =
        world.claims.iter().any(|known| name(known) == claim_name && namespace(known) == namespace(pod));
    if !exists {
        plan.actions.push(Action::Create(object));
    }
    let on_node = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]);
    plan.actions.push(Action::Status(
        place,
        json!({"status": {
            "allocation": {
                "devices": {"results": allocation.results},
                "nodeSelector": {"nodeSelectorTerms": on_node},
            },
            "reservedFor": [{"resource": "pods", "name": name(pod), "uid": uid(pod)}],
        }}),
    ));
    json!({"name": allocation.claim["name"], "resourceClaimName": claim_name})
}
