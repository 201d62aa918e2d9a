//! Nodes and their GPUs: kwok's nodes, and the ResourceSlices that a DRA driver would publish for the devices
//! an InferenceClass declares.

use modelplane_api::names::{GPU_TAINT, POOL_LABEL};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome};
use crate::kube_api::{Kube, list, name, text};
use crate::resources::{NODE, RESOURCE_SLICE};

/// Makes the nodes of every pool of an InferenceCluster, with the devices of the pool's class, and one node
/// without for everything else.
///
/// # Errors
///
/// If a class is missing or the API server refuses something.
pub async fn install(kube: &Kube, cluster: &Value, classes: &[Value]) -> Outcome {
    install_plain_node(kube).await?;
    for pool in list(cluster, "/spec/nodePools") {
        let (pool_name, class_name) = (text(pool, "/name"), text(pool, "/className"));
        let class = classes.iter().find(|class| name(class) == class_name);
        let class = class.ok_or_else(|| Failure::Wrong(format!("no InferenceClass {class_name}")))?;
        for index in 0..pool["nodeCount"].as_u64().unwrap_or(1) {
            let node_name = format!("{pool_name}-{index}");
            kube.create_or_keep(&node(&node_name, Some(pool_name))).await?;
            for device in list(class, "/spec/devices") {
                kube.create_or_keep(&slice(&node_name, device)).await?;
            }
        }
    }
    Ok(())
}

/// Makes a node without devices, for whatever needs none.
///
/// # Errors
///
/// If the API server refuses it.
pub async fn install_plain_node(kube: &Kube) -> Outcome {
    kube.create_or_keep(&node("system-0", None)).await
}

/// A node; those of GPU pools are labelled and tainted as clouds and operators do.
fn node(name: &str, pool: Option<&str>) -> Value {
    let mut labels = json!({"kubernetes.io/hostname": name});
    let mut spec = json!({});
    if let Some(pool) = pool {
        labels[POOL_LABEL] = json!(pool);
        spec["taints"] = json!([{"key": GPU_TAINT, "value": "present", "effect": "NoSchedule"}]);
    }
    let capacity = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
    json!({
        "apiVersion": NODE.api_version(),
        "kind": NODE.kind,
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": spec,
        "status": {"capacity": capacity, "allocatable": capacity},
    })
}

/// What the driver of a class's device says about one node.
fn slice(node: &str, device: &Value) -> Value {
    let driver = text(device, "/driver");
    let count = device["count"].as_u64().unwrap_or(1);
    let object = |field: &str| device[field].as_object().cloned().unwrap_or_default();
    let devices: Vec<Value> = (0..count)
        .map(|index| {
            json!({
                "name": format!("{}-{index}", text(device, "/name")),
                "attributes": object("attributes"),
                "capacity": object("capacity"),
            })
        })
        .map(without_empty)
        .collect();
    json!({
        "apiVersion": RESOURCE_SLICE.api_version(),
        "kind": RESOURCE_SLICE.kind,
        "metadata": {"name": format!("{node}-{driver}")},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    })
}

fn without_empty(device: Value) -> Value {
    let Value::Object(fields) = device else { return device };
    let kept: Map<String, Value> =
        fields.into_iter().filter(|(_, value)| value.as_object().is_none_or(|map| !map.is_empty())).collect();
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_as_many_devices_as_its_class_declares() {
        let device = json!({
            "name": "gpu",
            "driver": "gpu.nvidia.com",
            "count": 2,
            "capacity": {"memory": {"value": "46068Mi"}},
        });
        let slice = slice("l40s-0", &device);
        let expected = json!([
            {"name": "gpu-0", "capacity": {"memory": {"value": "46068Mi"}}},
            {"name": "gpu-1", "capacity": {"memory": {"value": "46068Mi"}}},
        ]);
        assert_eq!(slice["spec"]["devices"], expected);
        assert_eq!(slice["spec"]["pool"]["name"], "l40s-0");
    }
}
