//! The order in which a fleet is torn down, derived from what its tree says of itself.
//!
//! A model of deletion, without an engine: repeatedly remove everything that has been asked to go and that
//! nobody still uses. Somebody uses an object as long as
//!
//! * a Usage names it and what uses it still exists (Crossplane refuses to delete it, so what is below it
//!   is not even asked to go);
//! * something composed for it still exists (foreground deletion);
//! * a sibling selects it (clouds refuse to delete a network that a cluster is in).

use std::collections::{BTreeMap, BTreeSet};

use modelplane_core::simulate::{ObjectKey, Options, Simulation, StoredObject};
use serde_json::{Value, json};

/// A cloud whose cluster is torn down: its source, and the chain of kinds in order, first to last.
const CLOUDS: [(&str, &str, &[&str]); 2] = [
    ("GKE", "gke", &["NodePool", "Cluster", "Subnetwork", "Network"]),
    ("EKS", "eks", &["NodeGroup", "Cluster", "Subnet", "VPC"]),
];

#[test]
fn the_stack_goes_before_the_cluster_and_the_cluster_before_its_network() {
    for (source, block, chain) in CLOUDS {
        let fleet = Fleet::new(source, block, &[]);
        let rounds = fleet.tear_down("InferenceCluster");
        assert_eq!(rounds.len(), fleet.objects.len(), "{source}: something is never removed");
        let last = |kind: &str| fleet.rounds(&rounds, kind).max().unwrap_or_else(|| panic!("no {kind}"));
        let first = |kind: &str| fleet.rounds(&rounds, kind).min().unwrap_or_else(|| panic!("no {kind}"));

        let cluster = format!("{source}Cluster");
        let installed = fleet.composed_by("ServingStack").map(|key| rounds[key]);
        assert!(installed.max() < Some(first("ServingStack")), "{source}: the stack after its releases");
        let below: Vec<usize> = fleet.composed_by(&cluster).map(|key| rounds[key]).collect();
        let stack = last("ServingStack");
        assert!(!below.is_empty() && below.iter().all(|round| stack < *round), "{source}: stack first");
        for pair in chain.windows(2) {
            assert!(last(pair[0]) < first(pair[1]), "{source}: {} before {}", pair[0], pair[1]);
        }
        assert!(last(chain[chain.len() - 1]) < first(&cluster), "{source}: its network before {cluster}");
        assert!(last(&cluster) < first("InferenceCluster"), "{source}: the InferenceCluster goes last");
    }
}

#[test]
fn it_is_the_usages_that_keep_the_cluster_for_its_stack() {
    let mut fleet = Fleet::new("GKE", "gke", &[]);
    fleet.objects.retain(|object| !is_usage(object));
    let rounds = fleet.tear_down("InferenceCluster");
    let stack = fleet.rounds(&rounds, "ServingStack").max();
    assert!(fleet.rounds(&rounds, "NodePool").min() < stack, "without usages the nodes go first");
}

#[test]
fn what_is_installed_goes_while_its_provider_config_and_cluster_are_there() {
    for (source, block, _) in CLOUDS {
        let fleet = Fleet::new(source, block, &[]);
        let rounds = fleet.tear_down("InferenceCluster");
        let cluster = fleet.rounds(&rounds, "Cluster").min().expect("a cluster");
        let installed = fleet.objects.iter().filter(|object| is_installed(object) && !is_orphaned(object));
        let mut seen = 0;
        for object in installed {
            let config = fleet.provider_config(object).expect("its provider config is in the tree");
            assert!(rounds[&object.key] < rounds[&config.key], "{source}: {:?}", object.key);
            assert!(rounds[&object.key] < cluster, "{source}: {:?}", object.key);
            seen += 1;
        }
        assert!(seen > 5, "{source}: a stack installs more than {seen} things");
    }
}

#[test]
fn replicas_guard_the_cluster() {
    for (source, block, _) in CLOUDS {
        let fleet = Fleet::new(source, block, &[replica()]);
        let rounds = fleet.tear_down("InferenceCluster");
        assert!(rounds.is_empty(), "{source}: {rounds:?} went although a replica is there");
        assert!(fleet.rounds(&fleet.tear_down("ModelReplica"), "ModelReplica").next().is_some());
    }
}

/// Every object of a fleet at its fixed point.
struct Fleet {
    objects: Vec<StoredObject>,
}

impl Fleet {
    fn new(source: &str, block: &str, more: &[Value]) -> Self {
        let objects = [cluster(source, block), class(source, block)].into_iter().chain(more.to_vec());
        let mut simulation = Simulation::new(objects, Options::default());
        assert!(simulation.run().converged);
        let composed = |object: &&StoredObject| object.owner.is_some() || is_root(object);
        Self { objects: simulation.world().iter().filter(composed).cloned().collect() }
    }

    /// Asks all objects of a kind to go, and says in which round each object went.
    fn tear_down(&self, kind: &str) -> BTreeMap<ObjectKey, usize> {
        let mut gone = BTreeMap::new();
        for round in 0.. {
            let asked = self.asked(kind, &gone);
            let removable: Vec<_> = self
                .existing(&gone)
                .filter(|object| asked.contains(&object.key) && !self.is_used(object, &gone))
                .map(|object| object.key.clone())
                .collect();
            if removable.is_empty() {
                return gone;
            }
            gone.extend(removable.into_iter().map(|key| (key, round)));
        }
        gone
    }

    /// What has been asked to go: the objects of the kind and all below them, down to what is protected.
    fn asked(&self, kind: &str, gone: &BTreeMap<ObjectKey, usize>) -> BTreeSet<ObjectKey> {
        let mut asked = BTreeSet::new();
        loop {
            let next: Vec<_> = self
                .existing(gone)
                .filter(|object| !asked.contains(&object.key) && !self.is_protected(object, gone))
                .filter(|object| match &object.owner {
                    None => object.key.kind == kind,
                    Some(owner) => asked.contains(&owner.composite),
                })
                .map(|object| object.key.clone())
                .collect();
            if next.is_empty() {
                return asked;
            }
            asked.extend(next);
        }
    }

    fn is_used(&self, object: &StoredObject, gone: &BTreeMap<ObjectKey, usize>) -> bool {
        let composes = |other: &StoredObject| owner(other) == Some(&object.key);
        self.existing(gone).any(|other| {
            // A Usage stays until what uses is gone.
            let used = is_usage(object) && self.uses(object, other);
            other.key != object.key && (composes(other) || used || selects(other, object))
        })
    }

    /// Whether a Usage keeps the object.
    fn is_protected(&self, object: &StoredObject, gone: &BTreeMap<ObjectKey, usize>) -> bool {
        self.existing(gone).filter(|usage| is_usage(usage)).any(|usage| {
            let by = &usage.body["spec"]["by"];
            let in_use = by.is_null() || self.existing(gone).any(|other| self.uses(usage, other));
            in_use && is_side(usage, &usage.body["spec"]["of"], object)
        })
    }

    /// Whether `object` is what uses, according to the usage.
    fn uses(&self, usage: &StoredObject, object: &StoredObject) -> bool {
        is_side(usage, &usage.body["spec"]["by"], object)
    }

    fn provider_config(&self, installed: &StoredObject) -> Option<&StoredObject> {
        let reference = &installed.body["spec"]["providerConfigRef"];
        self.objects.iter().find(|object| {
            object.key.group == installed.key.group
                && object.key.kind == reference["kind"]
                && object.key.name == reference["name"]
        })
    }

    fn existing<'s>(
        &'s self,
        gone: &'s BTreeMap<ObjectKey, usize>,
    ) -> impl Iterator<Item = &'s StoredObject> {
        self.objects.iter().filter(|object| !gone.contains_key(&object.key))
    }

    fn rounds<'s>(
        &'s self,
        rounds: &'s BTreeMap<ObjectKey, usize>,
        kind: &'s str,
    ) -> impl Iterator<Item = usize> + 's {
        rounds.iter().filter(move |(key, _)| key.kind == kind).map(|(_, round)| *round)
    }

    fn composed_by<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s ObjectKey> + 's {
        let composed = move |object: &&StoredObject| owner(object).is_some_and(|owner| owner.kind == kind);
        self.objects.iter().filter(composed).map(|object| &object.key)
    }
}

fn owner(object: &StoredObject) -> Option<&ObjectKey> {
    object.owner.as_ref().map(|owner| &owner.composite)
}

fn is_root(object: &StoredObject) -> bool {
    matches!(object.key.kind.as_str(), "InferenceCluster" | "ModelReplica")
}

fn is_usage(object: &StoredObject) -> bool {
    object.key.group == "protection.crossplane.io"
}

fn is_installed(object: &StoredObject) -> bool {
    matches!(object.key.kind.as_str(), "Release" | "Object")
}

fn is_orphaned(object: &StoredObject) -> bool {
    let policies = object.body["spec"]["managementPolicies"].as_array();
    policies.is_some_and(|policies| !policies.contains(&json!("Delete")) && !policies.contains(&json!("*")))
}

/// Whether `object` is the side of a usage that `side` describes.
fn is_side(usage: &StoredObject, side: &Value, object: &StoredObject) -> bool {
    let group = side["apiVersion"].as_str().and_then(|version| version.split('/').next());
    if group != Some(&object.key.group) || side["kind"] != object.key.kind {
        return false;
    }
    match side["resourceRef"]["name"].as_str() {
        Some(name) => object.key.name == name,
        None => owner(object) == owner(usage) && has_labels(object, &side["resourceSelector"]["matchLabels"]),
    }
}

fn has_labels(object: &StoredObject, labels: &Value) -> bool {
    let labels = labels.as_object().into_iter().flatten();
    labels.into_iter().all(|(key, value)| &object.body["metadata"]["labels"][key] == value)
}

/// Whether a cloud resource selects its sibling anywhere in its spec: `subnetIdSelector` selects a `Subnet`.
fn selects(object: &StoredObject, sibling: &StoredObject) -> bool {
    fn any(value: &Value, test: &mut dyn FnMut(&str, &Value) -> bool) -> bool {
        match value {
            Value::Object(fields) => fields.iter().any(|(name, value)| test(name, value) || any(value, test)),
            Value::Array(items) => items.iter().any(|item| any(item, test)),
            _ => false,
        }
    }
    owner(object) == owner(sibling)
        && any(&object.body["spec"]["forProvider"], &mut |field, selector| {
            let Some(name) = field.strip_suffix("Selector") else { return false };
            let name = ["Id", "Name", "Arn"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
            name.eq_ignore_ascii_case(&sibling.key.kind) && has_labels(sibling, &selector["matchLabels"])
        })
}

fn cluster(source: &str, block: &str) -> Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": {"name": "west"},
        "spec": {
            "cluster": {"source": source, block: {"region": "r1"}},
            "nodePools": [{"name": "gpu", "className": "h100", "nodeCount": 2, "zones": ["r1a"]}],
        },
    })
}

fn class(source: &str, block: &str) -> Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": "h100"},
        "spec": {
            "devices": [{"name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com"}],
            "provisioning": {"provider": source, block: {
                "machineType": "a3-highgpu-8g",
                "instanceType": "p5.48xlarge",
                "accelerator": {"type": "nvidia-h100", "count": 8},
            }},
        },
    })
}

/// A replica on the cluster. What it serves does not matter here.
fn replica() -> Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {
            "name": "chat-12345",
            "namespace": "ml-team",
            "labels": {"modelplane.ai/cluster": "west"},
        },
        "spec": {"clusterName": "west", "engines": []},
    })
}
