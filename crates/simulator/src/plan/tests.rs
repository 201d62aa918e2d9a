//! Plans carried out on a world in memory, until there is nothing more to do.

use std::time::Duration;

use modelplane_api::common::{Device, DeviceCapacity};
use serde_json::{Value, json};

use super::{Action, Ages, Place, Planner};
use crate::settings::{Pool, Settings};
use crate::world::{World, is_true, list, name, text, uid};

/// A world that plans change, with pods as old as a test says.
struct Simulated {
    world: World,
    settings: Settings,
    planner: Planner,
    age: Duration,
    made: usize,
}

fn gpu(name: &str, memory: &str, count: i64) -> Device {
    let capacity = DeviceCapacity { value: memory.to_owned() };
    Device {
        name: name.to_owned(),
        driver: "gpu.nvidia.com".to_owned(),
        device_class_name: Some("gpu.nvidia.com".to_owned()),
        count: Some(count),
        capacity: [("memory".to_owned(), capacity)].into(),
        ..Device::default()
    }
}

fn pool(name: &str, nodes: u32, device: Device) -> Pool {
    Pool { name: name.to_owned(), nodes, devices: vec![device] }
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (into @ Value::Null, Value::Object(_)) => {
            *into = json!({});
            merge(into, patch);
        }
        (into, patch) => *into = patch.clone(),
    }
}

impl Simulated {
    fn new(pools: Vec<Pool>) -> Self {
        let settings = Settings::new("west", pools);
        Self {
            world: World::default(),
            settings,
            planner: Planner::default(),
            age: Duration::from_secs(60),
            made: 0,
        }
    }

    fn add(&mut self, mut object: Value) {
        self.made += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.made));
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        let kind = object["kind"].as_str().unwrap().to_owned();
        let objects = self.world.list(&kind);
        objects.push(object);
        objects.sort_by(|left, right| name(left).cmp(name(right)));
    }

    fn find(&mut self, place: &Place) -> &mut Value {
        let objects = self.world.list(&place.kind);
        objects.iter_mut().find(|object| name(object) == place.name).expect("the object is there")
    }

    /// Carries plans out until one is empty; gives the number of changes made.
    fn settle(&mut self) -> usize {
        let mut changes = 0;
        for _ in 0..20 {
            let ages: Ages = self.world.pods.iter().map(|pod| (uid(pod).to_owned(), self.age)).collect();
            let plan = self.planner.plan(&self.world, &self.settings, "127.0.0.1:1", &ages);
            if plan.actions.is_empty() {
                return changes;
            }
            changes += plan.actions.len();
            for action in plan.actions {
                match action {
                    Action::Create(object) => self.add(object),
                    Action::Patch(place, body) | Action::Status(place, body) => {
                        merge(self.find(&place), &body)
                    }
                    Action::Delete(place) => self.world.list(&place.kind).retain(|o| name(o) != place.name),
                }
            }
        }
        panic!("the plans do not come to an end");
    }

    fn template(&mut self, template: &str, count: u32, memory: &str) {
        let expression =
            format!("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('{memory}')) >= 0");
        let exactly = json!({
            "deviceClassName": "gpu.nvidia.com", "count": count, "selectors": [{"cel": {"expression": expression}}],
        });
        self.add(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": {"name": template, "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
        }));
    }

    fn deployment(&mut self, replicas: u32, template: &str) {
        let claims = json!([{"name": "devices", "resourceClaimTemplateName": template}]);
        self.add(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "engine", "namespace": "default"},
            "spec": {"replicas": replicas, "template": {
                "metadata": {"labels": {"modelplane.ai/serving": "qwen"}},
                "spec": {"containers": [{"name": "engine", "image": "vllm"}], "resourceClaims": claims},
            }},
        }));
    }

    fn nodes_of_pods(&self) -> Vec<&str> {
        self.world.pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect()
    }
}

#[test]
fn a_deployments_pods_get_devices_that_their_selectors_accept() {
    let pools = vec![pool("small", 2, gpu("gpu", "24Gi", 1)), pool("large", 1, gpu("gpu", "80Gi", 8))];
    let mut cluster = Simulated::new(pools);
    cluster.template("claim", 4, "40Gi");
    cluster.deployment(2, "claim");
    cluster.settle();
    assert_eq!(cluster.nodes_of_pods(), ["west-large-0", "west-large-0"]);
    let devices: Vec<&str> = cluster
        .world
        .claims
        .iter()
        .flat_map(|claim| list(claim, "/status/allocation/devices/results"))
        .map(|result| text(result, "/device"))
        .collect();
    assert_eq!(devices.len(), 8);
    assert_eq!(devices.iter().collect::<std::collections::BTreeSet<_>>().len(), 8, "each device once");
    assert!(is_true(&cluster.world.deployments[0], "Available"));
}

#[test]
fn a_plan_that_was_carried_out_asks_for_nothing_more() {
    let mut cluster = Simulated::new(vec![pool("small", 3, gpu("gpu", "24Gi", 1))]);
    cluster.template("claim", 1, "20Gi");
    cluster.deployment(3, "claim");
    assert!(cluster.settle() > 0);
    assert_eq!(cluster.settle(), 0);
}

#[test]
fn a_pod_without_free_devices_waits_and_says_why() {
    let mut cluster = Simulated::new(vec![pool("small", 1, gpu("gpu", "24Gi", 1))]);
    cluster.template("claim", 1, "20Gi");
    cluster.deployment(2, "claim");
    cluster.settle();
    assert_eq!(cluster.nodes_of_pods().iter().filter(|node| node.is_empty()).count(), 1);
    let waiting = cluster.world.pods.iter().find(|pod| text(pod, "/spec/nodeName").is_empty()).unwrap();
    let message = text(waiting, "/status/conditions/0/message");
    assert!(message.contains("0 of 1 devices for request gpu"), "{message}");
    assert!(!is_true(&cluster.world.deployments[0], "Available"));
}

#[test]
fn pods_of_nodes_that_stop_reporting_go_elsewhere() {
    let mut cluster = Simulated::new(vec![pool("small", 2, gpu("gpu", "24Gi", 1))]);
    cluster.template("claim", 1, "20Gi");
    cluster.deployment(1, "claim");
    cluster.settle();
    assert_eq!(cluster.nodes_of_pods(), ["west-small-0"]);
    cluster.settings.faults.lost_nodes.insert("small".to_owned(), 1);
    cluster.settle();
    assert_eq!(cluster.nodes_of_pods(), ["west-small-1"]);
    assert_eq!(cluster.world.claims.len(), 1, "the lost pod's claim is released");
}

#[test]
fn a_pod_is_ready_only_after_its_time() {
    let mut cluster = Simulated::new(vec![pool("small", 1, gpu("gpu", "24Gi", 1))]);
    cluster.template("claim", 1, "20Gi");
    cluster.deployment(1, "claim");
    cluster.age = Duration::ZERO;
    cluster.settle();
    assert!(!is_true(&cluster.world.pods[0], "Ready"));
    let ages: Ages = [(uid(&cluster.world.pods[0]).to_owned(), Duration::from_millis(400))].into();
    let plan = cluster.planner.plan(&cluster.world, &cluster.settings, "127.0.0.1:1", &ages);
    assert_eq!(plan.wake_after, Some(Duration::from_millis(600)));
    cluster.age = Duration::from_secs(1);
    cluster.settle();
    assert!(is_true(&cluster.world.pods[0], "Ready"));
}

#[test]
fn a_gang_has_a_leader_and_workers_in_each_group() {
    let mut cluster = Simulated::new(vec![pool("small", 1, gpu("gpu", "24Gi", 1))]);
    let pod = |role: &str| json!({"metadata": {"labels": {"role": role}}, "spec": {"containers": []}});
    cluster.add(json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"replicas": 2, "leaderWorkerTemplate": {
            "size": 2, "leaderTemplate": pod("leader"), "workerTemplate": pod("worker"),
        }},
    }));
    cluster.settle();
    let pods: Vec<(&str, &str)> =
        cluster.world.pods.iter().map(|pod| (name(pod), text(pod, "/metadata/labels/role"))).collect();
    assert_eq!(
        pods,
        [("gang-0", "leader"), ("gang-0-1", "worker"), ("gang-1", "leader"), ("gang-1-1", "worker")]
    );
    assert!(is_true(&cluster.world.gangs[0], "Available"));
}

#[test]
fn a_changed_template_replaces_the_pods() {
    let mut cluster = Simulated::new(vec![pool("small", 1, gpu("gpu", "24Gi", 1))]);
    cluster.template("claim", 1, "20Gi");
    cluster.deployment(1, "claim");
    cluster.settle();
    let before = name(&cluster.world.pods[0]).to_owned();
    cluster.world.deployments[0]["spec"]["template"]["spec"]["containers"][0]["image"] = json!("vllm:2");
    cluster.settle();
    assert_eq!(cluster.world.pods.len(), 1);
    assert_ne!(name(&cluster.world.pods[0]), before);
    assert!(is_true(&cluster.world.pods[0], "Ready"), "it has the device of the one before");
}

#[test]
fn a_pool_that_shrinks_loses_its_last_nodes() {
    let mut cluster = Simulated::new(vec![pool("small", 3, gpu("gpu", "24Gi", 1))]);
    cluster.settle();
    assert_eq!((cluster.world.nodes.len(), cluster.world.slices.len()), (3, 3));
    cluster.settings.pools[0].nodes = 1;
    cluster.settle();
    assert_eq!((cluster.world.nodes.len(), cluster.world.slices.len()), (1, 1));
    assert_eq!(name(&cluster.world.nodes[0]), "west-small-0");
}
