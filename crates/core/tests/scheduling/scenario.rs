//! Small fleets in a few words, and the placements a composition makes of them.

use modelplane_core::compose::model_deployment::compose;
use modelplane_core::contract::{Condition, Desired, Severity};
use serde_json::{Value, json};

use crate::support::{Request, body};

/// A deployment, its fleet, and what is observed of it.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) deployment: Value,
    /// Delivered for `clusters`; `None`: not fetched yet.
    pub(crate) clusters: Option<Vec<Value>>,
    /// Delivered for `all-replicas`; `None`: not fetched yet.
    pub(crate) replicas: Option<Vec<Value>>,
    /// Delivered for `cache`; `None`: not fetched yet.
    pub(crate) cache: Option<Vec<Value>>,
    /// Composed resources by key.
    pub(crate) observed: Vec<(String, Value)>,
}

/// What a composition made of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// `cluster/index@pools` of every replica, in order of keys.
    pub(crate) placements: Vec<String>,
    /// Keys of the endpoints.
    pub(crate) endpoints: Vec<String>,
    /// `Type=Status/Reason` of every condition.
    pub(crate) conditions: Vec<String>,
    /// Messages of conditions that do not hold and of warnings.
    pub(crate) complaints: Vec<String>,
    /// Number of events that are no warnings.
    pub(crate) normal_events: usize,
    /// Bodies of the replicas, in order of keys.
    pub(crate) bodies: Vec<Value>,
    /// The composite's readiness.
    pub(crate) ready: modelplane_core::contract::Ready,
}

impl Scenario {
    /// `replicas` of deployment `d` in namespace `ml`: one engine `e`, one Standalone member that asks for 8
    /// GPUs of at least 80 Gi.
    pub(crate) fn new(replicas: i64, clusters: Vec<Value>) -> Self {
        let engine = engine("e", vec![member("Standalone", vec![request("gpu", 8, &at_least(80))])]);
        let deployment = json!({
            "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelDeployment",
            "metadata": {"name": "d", "namespace": "ml"},
            "spec": {"replicas": replicas, "template": {"spec": {"engines": [engine]}}},
        });
        let (clusters, replicas) = (Some(clusters), Some(Vec::new()));
        Self { deployment, clusters, replicas, cache: None, observed: Vec::new() }
    }

    pub(crate) fn engines(mut self, engines: Vec<Value>) -> Self {
        self.deployment["spec"]["template"]["spec"]["engines"] = json!(engines);
        self
    }

    pub(crate) fn tolerating(mut self, toleration: Value) -> Self {
        self.deployment["spec"]["template"]["spec"]["tolerations"] = json!([toleration]);
        self
    }

    pub(crate) fn caching(mut self, cache: Option<Vec<Value>>) -> Self {
        self.deployment["spec"]["template"]["spec"]["modelCacheRef"] = json!({"name": "weights"});
        self.cache = cache;
        self
    }

    /// An existing, ready replica of the deployment, with its endpoint.
    pub(crate) fn running(mut self, cluster: &str, index: u32, engines: Vec<Value>) -> Self {
        let name = format!("d-{cluster}-{index}");
        self.add_running(&name, cluster, index, engines);
        self
    }

    pub(crate) fn add_running(&mut self, name: &str, cluster: &str, index: u32, engines: Vec<Value>) {
        let replica = replica(("ml", name), Some("d"), (cluster, index), engines);
        let endpoint = json!({
            "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelEndpoint",
            "metadata": {"name": name, "namespace": "ml"},
            "spec": {"url": "http://10.0.0.1/"}, "status": ready_status(),
        });
        let composed = ready(replica.clone());
        self.replicas.get_or_insert_default().push(replica);
        self.observed.push((format!("replica-{cluster}-{index}"), composed));
        self.observed.push((format!("endpoint-{cluster}-{index}"), endpoint));
    }

    /// A replica of another deployment.
    pub(crate) fn foreign(mut self, cluster: &str, engines: Vec<Value>) -> Self {
        let replicas = self.replicas.get_or_insert_default();
        let name = format!("other-{}", replicas.len());
        replicas.push(replica(("ml", &name), Some("other"), (cluster, 0), engines));
        self
    }

    /// The wire form.
    pub(crate) fn request(&self) -> Request {
        let mut request = Request::default();
        request.set_composite(&self.deployment);
        for (key, resource) in &self.observed {
            request.set_resource(key, Some(resource));
        }
        request.set_required("clusters", self.clusters.as_deref());
        request.set_required("all-replicas", self.replicas.as_deref());
        request.set_required("cache", self.cache.as_deref());
        request
    }

    /// What the composition makes of it.
    pub(crate) fn run(&self) -> Outcome {
        let request = self.request();
        let observed = request.observed();
        Outcome::of(&compose(&observed).expect("the deployment is readable"))
    }

    /// The placements of [`Scenario::run`].
    pub(crate) fn placements(&self) -> Vec<String> {
        self.run().placements
    }
}

impl Outcome {
    fn of(desired: &Desired<'_>) -> Self {
        let keys = || desired.resources.keys().map(ToString::to_string);
        let bodies: Vec<Value> =
            keys().filter(|key| key.starts_with("replica-")).map(|key| body(desired, &key)).collect();
        let text = |condition: &Condition| {
            format!("{}={:?}/{}", condition.condition_type, condition.status, condition.reason)
        };
        let untrue = desired.conditions.iter().filter_map(|condition| condition.message.clone());
        let warnings = desired.events.iter().filter(|event| event.severity == Severity::Warning);
        Self {
            placements: bodies.iter().map(placement).collect(),
            endpoints: keys().filter(|key| key.starts_with("endpoint-")).collect(),
            conditions: desired.conditions.iter().map(text).collect(),
            complaints: untrue.chain(warnings.map(|event| event.message.clone())).collect(),
            normal_events: desired.events.iter().filter(|event| event.severity == Severity::Normal).count(),
            bodies,
            ready: desired.ready,
        }
    }

    pub(crate) fn has_condition(&self, condition: &str) -> bool {
        self.conditions.iter().any(|found| found == condition)
    }
}

/// `cluster/index@pool`, with the pools of all engines joined by `+`.
fn placement(replica: &Value) -> String {
    let engines = replica["spec"]["engines"].as_array().expect("engines");
    let pools: Vec<&str> =
        engines.iter().map(|engine| engine["members"][0]["nodePoolName"].as_str().expect("a pool")).collect();
    let index = replica["metadata"]["labels"]["modelplane.ai/replica-index"].as_str().expect("an index");
    format!("{}/{index}@{}", replica["spec"]["clusterName"].as_str().expect("a cluster"), pools.join("+"))
}

/// A Ready cluster with a gateway.
pub(crate) fn cluster(name: &str, pools: Vec<Value>) -> Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceCluster", "metadata": {"name": name},
        "spec": {}, "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "gateway": {"address": "10.0.0.1"}, "gpuPools": pools,
        },
    })
}

/// `a[p:2]`: a cluster with one pool `p` of nodes with 8 GPUs of 141 Gi.
pub(crate) fn simple(name: &str, nodes: i64) -> Value {
    cluster(name, vec![pool("p", nodes, vec![gpu(141, 8)])])
}

pub(crate) fn tainted(mut cluster: Value, effect: &str) -> Value {
    cluster["spec"]["taints"] = json!([{"key": "m", "effect": effect}]);
    cluster
}

pub(crate) fn pool(name: &str, nodes: i64, devices: Vec<Value>) -> Value {
    json!({"name": name, "nodes": nodes, "devices": devices})
}

/// A DRA device kind `gpu` with memory in Gi.
pub(crate) fn gpu(memory: i64, count: i64) -> Value {
    json!({
        "name": "gpu", "driver": "gpu.nvidia.com", "claim": "DRA", "deviceClassName": "gpu.nvidia.com",
        "count": count, "attributes": {"architecture": {"string": "Hopper"}},
        "capacity": {"memory": {"value": format!("{memory}Gi")}},
    })
}

pub(crate) fn nic(claim: &str) -> Value {
    let mut device = json!({
        "name": "nic", "driver": "nic.example.com", "claim": claim, "count": 1, "attributes": {"rdma": {"bool": true}},
    });
    if claim == "DRA" {
        device["deviceClassName"] = json!("rdma.example.com");
    }
    device
}

/// A selector for GPUs with at least so many Gi.
pub(crate) fn at_least(memory: i64) -> String {
    format!(
        "device.driver == \"gpu.nvidia.com\" && \
         device.capacity[\"gpu.nvidia.com\"].memory.compareTo(quantity(\"{memory}Gi\")) >= 0"
    )
}

/// A selector for NICs.
pub(crate) const NIC: &str = "device.driver == \"nic.example.com\"";

pub(crate) fn request(name: &str, count: i64, cel: &str) -> Value {
    json!({"name": name, "count": count, "selectors": [{"cel": cel}]})
}

pub(crate) fn member(role: &str, requests: Vec<Value>) -> Value {
    let mut member = json!({"role": role, "template": template()});
    if !requests.is_empty() {
        member["nodeSelector"] = json!({"devices": requests});
    }
    member
}

pub(crate) fn worker(nodes: i64, requests: Vec<Value>) -> Value {
    let mut member = member("Worker", requests);
    member["worker"] = json!({"nodes": nodes});
    member
}

pub(crate) fn engine(name: &str, members: Vec<Value>) -> Value {
    json!({"name": name, "members": members})
}

pub(crate) fn copies(mut engine: Value, copies: i64) -> Value {
    engine["copies"] = json!(copies);
    engine
}

/// An engine of a replica: one Standalone member that claims on a pool.
pub(crate) fn claiming(name: &str, pool: &str) -> Vec<Value> {
    vec![engine(name, vec![pinned("Standalone", pool, true)])]
}

/// A member of a replica.
pub(crate) fn pinned(role: &str, pool: &str, claims: bool) -> Value {
    let mut member = json!({"role": role, "nodePoolName": pool, "template": template()});
    if claims {
        member["deviceRequests"] =
            json!([{"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 8, "selectors": []}]);
    }
    member
}

pub(crate) fn pinned_worker(nodes: i64, pool: &str, claims: bool) -> Value {
    let mut member = pinned("Worker", pool, claims);
    member["worker"] = json!({"nodes": nodes});
    member
}

/// A replica: (namespace, name), its deployment, (cluster, index), engines.
pub(crate) fn replica(
    (namespace, name): (&str, &str),
    deployment: Option<&str>,
    (cluster, index): (&str, u32),
    engines: Vec<Value>,
) -> Value {
    let mut labels = json!({
        "modelplane.ai/cluster": cluster, "modelplane.ai/replica-index": index.to_string(),
    });
    if let Some(deployment) = deployment {
        labels["modelplane.ai/deployment"] = json!(deployment);
    }
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"clusterName": cluster, "engines": engines},
    })
}

fn ready(mut object: Value) -> Value {
    object["status"] = ready_status();
    object
}

fn ready_status() -> Value {
    json!({"conditions": [{"type": "Ready", "status": "True"}]})
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.23.0"}]}})
}
