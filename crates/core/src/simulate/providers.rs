//! Simulated providers: what the controllers of composed objects would report.
//!
//! An object becomes ready one pass after it appeared, and only once the siblings its spec refers to are
//! ready, so resources come up in dependency order. Reported values are derived from names and the order
//! of appearance; addresses come from the range set aside for benchmarks (RFC 2544).

use std::collections::BTreeMap;

use modelplane_cel::object::Program;
use serde_json::{Value, json};

use super::world::{ObjectKey, StoredObject, World};

/// The providers and what they remember.
#[derive(Debug, Clone, Default)]
pub(super) struct Providers {
    /// The number of each gateway, in order of appearance: addresses do not change when others come.
    addresses: BTreeMap<ObjectKey, u32>,
}

impl Providers {
    /// Lets every object that is not a composite make progress.
    pub(super) fn advance(&mut self, world: &mut World, stays_unready: impl Fn(&StoredObject) -> bool) {
        let mut updates = Vec::new();
        let waiting = world.iter().filter(|object| {
            object.owner.is_some() && object.settled_at < object.revision && !object.is_composite()
        });
        for object in waiting {
            let known = world.is_known(&object.key);
            let ready = known && !stays_unready(object) && dependencies_are_ready(world, object);
            let address = self.address(object);
            let status = status(object, ready, address);
            updates.push((object.key.clone(), status, is_managed_resource(object), ready));
        }
        for (key, status, managed, ready) in updates {
            if let Some(status) = status {
                world.set_status(&key, status);
                if managed {
                    world.annotate(&key, "crossplane.io/external-name", &key.name.clone());
                }
            }
            if ready {
                world.settle(&key);
            }
        }
    }

    /// The number of an object's address, if it is one that gets an address.
    fn address(&mut self, object: &StoredObject) -> u32 {
        if manifest(object)["kind"] != "Gateway" {
            return 0;
        }
        let next = u32::try_from(self.addresses.len() + 1).unwrap_or(u32::MAX);
        *self.addresses.entry(object.key.clone()).or_insert(next)
    }
}

/// The object itself, or the manifest it puts on another cluster.
fn manifest(object: &StoredObject) -> &Value {
    match is_provider_object(object) {
        true => &object.body["spec"]["forProvider"]["manifest"],
        false => &object.body,
    }
}

fn is_provider_object(object: &StoredObject) -> bool {
    object.key.group == "kubernetes.m.crossplane.io" && object.key.kind == "Object"
}

/// Whether a Crossplane provider would manage the object in some cloud.
fn is_managed_resource(object: &StoredObject) -> bool {
    let body = &object.body["spec"];
    body.get("forProvider").is_some() && !is_provider_object(object) && object.key.kind != "Release"
}

fn status(object: &StoredObject, ready: bool, address: u32) -> Option<Value> {
    if is_provider_object(object) {
        return Some(provider_object_status(object, ready, address));
    }
    if object.body["spec"].get("forProvider").is_some() {
        return Some(managed_status(object, ready));
    }
    native_status(&object.key.kind, &object.body, ready, address)
}

/// Status of a provider-kubernetes `Object`: the manifest as the cluster reports it, and readiness by its
/// own policy.
fn provider_object_status(object: &StoredObject, ready: bool, address: u32) -> Value {
    let mut manifest = manifest(object).clone();
    let kind = manifest["kind"].as_str().unwrap_or_default().to_owned();
    if let Some(status) = native_status(&kind, &manifest, ready, address) {
        manifest["status"] = status;
    }
    let ready = ready && policy_holds(&object.body["spec"]["readiness"], &manifest);
    json!({"atProvider": {"manifest": manifest}, "conditions": conditions(&[("Synced", true), ("Ready", ready)])})
}

fn policy_holds(readiness: &Value, manifest: &Value) -> bool {
    if readiness["policy"] != "DeriveFromCelQuery" {
        return true;
    }
    let query = readiness["celQuery"].as_str().unwrap_or_default();
    let program = Program::compile(&["object"], query);
    program.is_ok_and(|program| program.evaluate_bool(&[("object", manifest)]).unwrap_or(false))
}

/// Status of a managed resource of a cloud or of Helm: what was asked for, and the outputs others read.
fn managed_status(object: &StoredObject, ready: bool) -> Value {
    let mut at_provider = object.body["spec"]["forProvider"].clone();
    let name = &object.key.name;
    at_provider["id"] = json!(name);
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("cloudplatform.gcp.m.upbound.io", "ServiceAccount") => {
            at_provider["email"] = json!(format!("{name}@simulated.iam.gserviceaccount.com"));
        }
        ("eks.aws.m.upbound.io", "Cluster") => {
            at_provider["vpcConfig"]["clusterSecurityGroupId"] = json!(format!("sg-{name}"));
        }
        ("helm.m.crossplane.io", "Release") => at_provider = json!({"state": "deployed", "revision": 1}),
        _ => {}
    }
    json!({"atProvider": at_provider, "conditions": conditions(&[("Synced", true), ("Ready", ready)])})
}

/// Status of an ordinary Kubernetes object, as far as compositions look at it.
fn native_status(kind: &str, body: &Value, ready: bool, address: u32) -> Option<Value> {
    let replicas = body["spec"]["replicas"].as_i64().unwrap_or(1);
    let available = if ready { replicas } else { 0 };
    Some(match kind {
        "Deployment" => json!({
            "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": available,
            "availableReplicas": available, "conditions": conditions(&[("Available", ready)]),
        }),
        "LeaderWorkerSet" => json!({
            "replicas": replicas, "readyReplicas": available, "conditions": conditions(&[("Available", ready)]),
        }),
        "DaemonSet" => json!({
            "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "updatedNumberScheduled": 1,
            "numberReady": i64::from(ready), "numberAvailable": i64::from(ready),
        }),
        "PersistentVolumeClaim" => json!({"phase": if ready { "Bound" } else { "Pending" }}),
        "Job" if ready => json!({"succeeded": 1, "conditions": conditions(&[("Complete", true)])}),
        "Job" => json!({"active": 1}),
        "CustomResourceDefinition" => json!({"conditions": conditions(&[("Established", ready)])}),
        "GatewayClass" => json!({"conditions": conditions(&[("Accepted", ready)])}),
        "Gateway" if ready => {
            let value = format!("198.18.{}.{}", address / 250, address % 250 + 1);
            let addresses = json!([{"type": "IPAddress", "value": value}]);
            json!({"addresses": addresses, "conditions": conditions(&[("Accepted", true), ("Programmed", true)])})
        }
        "Gateway" => json!({"conditions": conditions(&[("Accepted", false)])}),
        "HTTPRoute" => {
            let parents = body["spec"]["parentRefs"].as_array().cloned().unwrap_or_default();
            let accepted = |parent: Value| json!({"parentRef": parent, "conditions": conditions(&[("Accepted", ready)])});
            json!({"parents": parents.into_iter().map(accepted).collect::<Vec<_>>()})
        }
        _ => return None,
    })
}

fn conditions(list: &[(&str, bool)]) -> Value {
    let one = |(condition_type, holds): &(&str, bool)| {
        let status = if *holds { "True" } else { "False" };
        let reason = if *holds { "Simulated" } else { "Pending" };
        json!({"type": condition_type, "status": status, "reason": reason})
    };
    list.iter().map(one).collect()
}

/// Whether the siblings a managed resource refers to by selector or reference are ready.
fn dependencies_are_ready(world: &World, object: &StoredObject) -> bool {
    let Some(owner) = &object.owner else { return true };
    let mut wanted = Vec::new();
    collect_selectors(&object.body["spec"]["forProvider"], &mut wanted);
    wanted.iter().all(|dependency| {
        let siblings = world.composed_by(&owner.composite).map(|(_, sibling)| sibling);
        let mut matching =
            siblings.filter(|sibling| sibling.key != object.key && dependency.matches(sibling));
        matching.all(|sibling| sibling.condition("Ready") == Some("True"))
    })
}

/// A sibling that a managed resource waits for.
struct Dependency<'v> {
    /// Lower-case kind, as far as the field's name tells it.
    stem: String,
    labels: Option<&'v serde_json::Map<String, Value>>,
}

impl Dependency<'_> {
    fn matches(&self, sibling: &StoredObject) -> bool {
        let labels = &sibling.body["metadata"]["labels"];
        let labelled =
            self.labels.is_none_or(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value));
        labelled && self.stem.ends_with(&sibling.key.kind.to_lowercase())
    }
}

fn collect_selectors<'v>(value: &'v Value, out: &mut Vec<Dependency<'v>>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.strip_suffix("Selector").or_else(|| name.strip_suffix("Selectors")) {
                    Some(stem) if field.get("matchControllerRef").is_some() => {
                        let stem = ["Ids", "Id", "Names", "Name", "Arn"]
                            .iter()
                            .find_map(|end| stem.strip_suffix(end))
                            .unwrap_or(stem);
                        out.push(Dependency {
                            stem: stem.to_lowercase(),
                            labels: field["matchLabels"].as_object(),
                        });
                    }
                    _ => collect_selectors(field, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_selectors(item, out)),
        _ => {}
    }
}
