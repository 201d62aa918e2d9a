//! Generated fleets for benchmarks, as the wire bytes a composition is given.
//!
//! Objects are as an API server holds them, with uid, managed fields, templates and conditions. A cluster is
//! about 3 kB and a replica about 1 kB on the wire, so that 1000 clusters with 5000 replicas make a request of
//! 8.7 MB and 5000 with 20000 one of 38 MB. The same size always gives the same fleet.

#![allow(clippy::allow_attributes, reason = "an expectation would fail where everything is used")]
#![allow(unreachable_pub, dead_code, reason = "each benchmark uses a part of it")]

use std::collections::BTreeMap;

use modelplane_core::contract::{Observed, Resource};
use modelplane_core::document::{Document, encode, write_bytes_field};
use serde_json::{Map, Value, json};

/// How big a fleet is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Clusters, three pools each.
    pub clusters: usize,
    /// Replicas of all deployments.
    pub replicas: usize,
}

/// What the deployment is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    /// Its four replicas run and stay.
    Steady,
    /// It has none and wants four.
    Placing,
}

/// In which order the fields of objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOrder {
    /// Always the same: equal devices have equal bytes.
    Fixed,
    /// A different one each time, as Go writes protobuf maps and so Crossplane its requests.
    Random,
}

/// A fleet and one deployment on it.
#[derive(Debug, Clone)]
pub struct Fleet {
    composite: Vec<u8>,
    composed: BTreeMap<String, Vec<u8>>,
    clusters: Vec<Vec<u8>>,
    replicas: Vec<Vec<u8>>,
}

/// The sizes that are measured.
pub const SIZES: [Size; 3] = [
    Size { clusters: 100, replicas: 500 },
    Size { clusters: 1000, replicas: 5000 },
    Size { clusters: 5000, replicas: 20000 },
];

/// Architecture, product, compute capability and memory in Gi of the eight kinds of node.
const PROFILES: [(&str, &str, &str, u32); 8] = [
    ("Ada Lovelace", "NVIDIA-L4", "8.9.0", 24),
    ("Ampere", "NVIDIA-A10G", "8.6.0", 22),
    ("Ampere", "NVIDIA-A100-SXM4-40GB", "8.0.0", 40),
    ("Ampere", "NVIDIA-A100-SXM4-80GB", "8.0.0", 80),
    ("Hopper", "NVIDIA-H100-80GB-HBM3", "9.0.0", 80),
    ("Hopper", "NVIDIA-H200", "9.0.0", 141),
    ("Blackwell", "NVIDIA-B200", "10.0.0", 180),
    ("Blackwell", "NVIDIA-GB300", "10.3.0", 279),
];

impl Size {
    /// Its name in benchmarks.
    pub fn name(self) -> String {
        format!("{}x{}", self.clusters, self.replicas)
    }
}

impl Fleet {
    /// Generates a fleet.
    pub fn generate(size: Size, situation: Situation, order: FieldOrder) -> Self {
        let mut writer = Writer { random: Random(0x5eed), order };
        let clusters = (0..size.clusters).map(|number| writer.write(cluster(number))).collect();
        let own = if situation == Situation::Steady { 4 } else { 0 };
        let mut replicas: Vec<Vec<u8>> = (0..size.replicas - own)
            .map(|number| {
                let cluster = writer.random.below(size.clusters);
                let pool = writer.random.below(3);
                writer.write(replica(&format!("model-{}", number / 3), number, cluster, &pool_name(pool)))
            })
            .collect();
        let mut composed = BTreeMap::new();
        for number in 0..own {
            // Every eighth cluster has H200 nodes as its first pool.
            let cluster = 8 * number + 5;
            let object = replica(DEPLOYMENT, 0, cluster, &pool_name(0));
            replicas.push(writer.write(object.clone()));
            let name = cluster_name(cluster);
            composed.insert(format!("replica-{name}-0"), writer.write(object));
            composed.insert(format!("endpoint-{name}-0"), writer.write(endpoint(cluster)));
        }
        Self { composite: writer.write(deployment()), composed, clusters, replicas }
    }

    /// The fleet as a composition sees it.
    pub fn observed(&self) -> Observed<'_> {
        let clusters = self.clusters.iter().map(|object| wire(object)).collect();
        let replicas = self.replicas.iter().map(|object| wire(object)).collect();
        Observed {
            composite: wire(&self.composite),
            resources: self.composed.iter().map(|(key, bytes)| (key.as_str(), wire(bytes))).collect(),
            required: [("clusters", clusters), ("all-replicas", replicas)].into(),
            ..Observed::default()
        }
    }

    /// The fleet as the bytes of a `RunFunctionRequest`.
    pub fn request(&self) -> Vec<u8> {
        let mut state = Vec::new();
        write_bytes_field(&mut state, 1, &resource(&self.composite));
        for (key, object) in &self.composed {
            write_entry(&mut state, 2, key, &resource(object));
        }
        let mut request = Vec::new();
        write_bytes_field(&mut request, 2, &state);
        for (key, objects) in [("clusters", &self.clusters), ("all-replicas", &self.replicas)] {
            let mut items = Vec::new();
            for object in objects {
                write_bytes_field(&mut items, 1, &resource(object));
            }
            write_entry(&mut request, 8, key, &items);
        }
        request
    }
}

const DEPLOYMENT: &str = "qwen3-coder";

fn wire(bytes: &[u8]) -> Resource<'_> {
    Resource::new(Document::from_struct(bytes))
}

/// The bytes of a protocol `Resource`.
fn resource(object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + 6);
    write_bytes_field(&mut out, 1, object);
    out
}

fn write_entry(out: &mut Vec<u8>, field: u32, key: &str, value: &[u8]) {
    let mut entry = Vec::with_capacity(key.len() + value.len() + 12);
    write_bytes_field(&mut entry, 1, key.as_bytes());
    write_bytes_field(&mut entry, 2, value);
    write_bytes_field(out, field, &entry);
}

fn cluster_name(number: usize) -> String {
    format!("{}-{number:05}", ["gke-west", "eks-east", "aks-north", "nebius-eu"][number % 4])
}

fn pool_name(position: usize) -> String {
    format!("pool-{position}")
}

fn deployment() -> Value {
    let gpu = json!({"name": "gpu", "count": 8, "selectors": [
        {"cel": "device.driver == \"gpu.nvidia.com\""},
        {"cel": "device.attributes[\"gpu.nvidia.com\"].architecture in [\"Hopper\", \"Blackwell\"] && \
                 device.capacity[\"gpu.nvidia.com\"].memory.compareTo(quantity(\"140Gi\")) >= 0"},
    ]});
    let nic = json!({"name": "nic", "count": 1, "selectors": [
        {"cel": "device.driver == \"nic.example.com\" && device.attributes[\"nic.example.com\"].rdma"},
    ]});
    let selector = json!({"devices": [gpu, nic]});
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelDeployment",
        "metadata": {"name": DEPLOYMENT, "namespace": "ml-team"},
        "spec": {"replicas": 4, "template": {"spec": {
            "tolerations": [{"key": "reserved", "operator": "Equal", "value": "other"}],
            "engines": [{"name": "main", "members": [
                {"role": "Leader", "nodeSelector": selector, "template": template()},
                {"role": "Worker", "worker": {"nodes": 1}, "nodeSelector": selector, "template": template()},
            ]}],
        }}},
    })
}

fn cluster(number: usize) -> Value {
    let name = cluster_name(number);
    let pools: Vec<Value> = [0, 3, 6]
        .iter()
        .enumerate()
        .map(|(position, offset)| {
            pool(&pool_name(position), 2 + (number + position) % 5, (number + offset) % 8)
        })
        .collect();
    let mut spec = json!({
        "cluster": {"source": "Existing", "existing": {"secretRef": {"name": format!("{name}-kubeconfig"), "key": "kubeconfig"}}},
    });
    if number % 16 == 3 {
        spec["taints"] = json!([{"key": "maintenance", "value": "q3", "effect": "NoSchedule"}]);
    }
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceCluster",
        "metadata": metadata(&name, None, json!({"region": "us-west1", "tier": "prod"}), number),
        "spec": spec,
        "status": {
            "conditions": conditions(number % 10 != 7),
            "gateway": {"address": format!("10.{}.{}.4", number / 250, number % 250)},
            "providerConfigRef": {"name": format!("{name}-cluster")},
            "gpuPools": pools,
        },
    })
}

fn pool(name: &str, nodes: usize, profile: usize) -> Value {
    let (architecture, product, capability, memory) = PROFILES[profile];
    let gpu = json!({
        "name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "claim": "DRA", "count": 8,
        "attributes": {
            "architecture": {"string": architecture}, "productName": {"string": product},
            "cudaComputeCapability": {"version": capability}, "driverVersion": {"version": "580.65.6"},
            "mig": {"bool": false},
        },
        "capacity": {"memory": {"value": format!("{memory}Gi")}},
    });
    let nic = json!({
        "name": "nic", "driver": "nic.example.com", "deviceClassName": "rdma.example.com", "claim": "DRA", "count": 8,
        "attributes": {"linkType": {"string": "infiniband"}, "rdma": {"bool": true}, "gbps": {"int": 400}},
    });
    json!({"name": name, "nodes": nodes, "devices": [gpu, nic]})
}

fn replica(deployment: &str, number: usize, cluster: usize, pool: &str) -> Value {
    let requests = json!([{"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 8,
        "selectors": [{"cel": "device.driver == \"gpu.nvidia.com\""}]}]);
    let ours = deployment == DEPLOYMENT;
    let member = |role: &str| {
        let mut member =
            json!({"role": role, "nodePoolName": pool, "deviceRequests": requests, "template": template()});
        if role == "Worker" {
            member["worker"] = json!({"nodes": 1});
        }
        member
    };
    let members = if ours { vec![member("Leader"), member("Worker")] } else { vec![member("Standalone")] };
    let cluster = cluster_name(cluster);
    let labels = json!({
        "modelplane.ai/deployment": deployment, "modelplane.ai/cluster": cluster,
        "modelplane.ai/replica-index": "0",
    });
    let name = format!("{deployment}-{:05x}", if ours { cluster.len() * 7919 + number } else { number });
    let name = if ours { format!("{name}-{cluster}") } else { name };
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelReplica",
        "metadata": metadata(&name, Some("ml-team"), labels, number),
        "spec": {"clusterName": cluster, "engines": [{"name": "main", "copies": 1, "members": members}]},
        "status": {"conditions": [condition("Ready", true)]},
    })
}

fn endpoint(cluster: usize) -> Value {
    let name = cluster_name(cluster);
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelEndpoint",
        "metadata": metadata(&name, Some("ml-team"), json!({}), cluster),
        "spec": {"url": "http://10.0.0.1/ml-team/x/v1", "rewritePath": "/ml-team/x/"},
        "status": {"conditions": [condition("Ready", true)]},
    })
}

fn template() -> Value {
    json!({"spec": {"containers": [{
        "name": "engine", "image": "vllm/vllm-openai:v0.23.0", "args": ["--model=Qwen/Qwen3-Coder"],
    }]}})
}

fn metadata(name: &str, namespace: Option<&str>, labels: Value, number: usize) -> Value {
    let mut metadata = json!({
        "name": name, "uid": format!("{number:08x}-51f5-4a86-9f31-4b60a5d5f2c1"),
        "resourceVersion": format!("{}", 100_000 + number),
        "creationTimestamp": "2026-05-04T09:12:44Z", "labels": labels,
        "managedFields": [{
            "manager": "crossplane", "operation": "Apply", "fieldsV1": {"f:spec": {}},
        }],
    });
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

fn conditions(ready: bool) -> Value {
    json!([condition("Synced", true), condition("Ready", ready)])
}

fn condition(kind: &str, status: bool) -> Value {
    json!({
        "type": kind, "status": if status { "True" } else { "False" }, "reason": "Available",
        "lastTransitionTime": "2026-05-04T09:20:01Z",
    })
}

/// Encodes objects in the chosen order of fields.
struct Writer {
    random: Random,
    order: FieldOrder,
}

impl Writer {
    fn write(&mut self, mut object: Value) -> Vec<u8> {
        if self.order == FieldOrder::Random {
            self.shuffle(&mut object);
        }
        encode(&object).expect("generated objects are objects")
    }

    /// Starts every object's fields somewhere else, as Go does for maps of up to eight entries.
    fn shuffle(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.shuffle(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.shuffle(field));
                let mut entries: Vec<(String, Value)> = std::mem::take(fields).into_iter().collect();
                if !entries.is_empty() {
                    let start = self.random.below(entries.len());
                    entries.rotate_left(start);
                }
                *fields = entries.into_iter().collect::<Map<_, _>>();
            }
            _ => {}
        }
    }
}

/// A small generator of numbers (xorshift); always the same sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
