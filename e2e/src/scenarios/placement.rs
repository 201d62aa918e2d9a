//! Where replicas go, and that the clusters agree.

use modelplane_api::names::{POOL_LABEL, WORKLOAD_NAMESPACE};
use serde_json::{Value, json};

use super::view::{MODEL_DEPLOYMENT, replicas, serves, spread, workload};
use crate::environment::{Environment, TEAM};
use crate::failure::{Failure, Outcome, ensure, not_yet, until};
use crate::kube_api::{Kube, is_true, label, list, name, text, uid};
use crate::resources::{INFERENCE_POOL, NODE, POD, RESOURCE_CLAIM};

/// Three replicas go to both clusters; each has its Deployment, its pool and its endpoint.
pub(super) async fn spread_over_clusters(environment: &mut Environment) -> Outcome {
    environment.apply("qwen.yaml").await?;
    let replicas = serves(environment, "qwen", 3).await?;
    let spread = spread(&replicas);
    let both = spread.len() == 2 && spread.values().all(|count| (1..=2).contains(count));
    ensure(both, || format!("3 replicas over two clusters went to {spread:?}"))?;
    for replica in &replicas {
        let there = environment.workload(text(replica, "/spec/clusterName"))?;
        let pool = modelplane_api::names::pool_name(name(replica));
        there.get(INFERENCE_POOL, WORKLOAD_NAMESPACE, &pool).await?;
    }
    Ok(())
}

/// Every serving pod runs on a node of the pool that our scheduler chose, with a claim that carries our
/// selector and was allocated by kube-scheduler.
pub(super) async fn allocated(environment: &mut Environment) -> Outcome {
    let deployment = environment.control().get(MODEL_DEPLOYMENT, TEAM, "qwen").await?;
    let selector = deployment
        .pointer("/spec/template/spec/engines/0/members/0/nodeSelector/devices/0/selectors/0/cel")
        .cloned()
        .unwrap_or_default();
    for replica in replicas(environment, "qwen").await? {
        let cluster = text(&replica, "/spec/clusterName");
        let kube = environment.workload(cluster)?;
        let workload = workload(environment, &replica).await?;
        let pod = running_pod(kube, &workload).await?;
        let pool = text(&replica, "/spec/engines/0/members/0/nodePoolName");
        ensure(pool == "l40s", || format!("{} was placed on pool {pool}", name(&replica)))?;
        let node = kube.get(NODE, "", text(&pod, "/spec/nodeName")).await?;
        let found = label(&node, POOL_LABEL);
        ensure(found == pool, || format!("pod {} runs in pool {found}, not {pool}", name(&pod)))?;
        check_claim(kube, &pod, name(&node), &selector).await?;
    }
    Ok(())
}

async fn running_pod(kube: &Kube, workload: &Value) -> Outcome<Value> {
    let selector = workload["spec"]["selector"]["matchLabels"].as_object().cloned().unwrap_or_default();
    let labels: Vec<String> =
        selector.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    until(&format!("the pod of {} runs", name(workload)), async || {
        let pods = kube.list(POD, WORKLOAD_NAMESPACE, &labels.join(",")).await.map_err(not_yet)?;
        match pods.as_slice() {
            [pod] if is_true(pod, "Ready") => Ok(pod.clone()),
            pods => Err(format!(
                "{} pods: {}",
                pods.len(),
                json!(pods.iter().map(|pod| &pod["status"]).collect::<Vec<_>>())
            )),
        }
    })
    .await
}

async fn check_claim(kube: &Kube, pod: &Value, node: &str, selector: &Value) -> Outcome {
    let pod_name = name(pod);
    let claim_name = text(pod, "/status/resourceClaimStatuses/0/resourceClaimName");
    ensure(!claim_name.is_empty(), || format!("pod {pod_name} has no ResourceClaim"))?;
    let claim = kube.get(RESOURCE_CLAIM, WORKLOAD_NAMESPACE, claim_name).await?;
    let asked = claim.pointer("/spec/devices/requests/0/exactly/selectors/0/cel/expression");
    ensure(asked == Some(selector), || format!("{claim_name} selects by {asked:?}, not {selector}"))?;
    let results = list(&claim, "/status/allocation/devices/results");
    let [device] = results else {
        return Err(Failure::Wrong(format!("{claim_name} was allocated {} devices", results.len())));
    };
    ensure(text(device, "/pool") == node, || {
        format!("{claim_name} has a device of {device}, not of {node}")
    })?;
    let reserved = list(&claim, "/status/reservedFor").iter().any(|user| user["uid"] == uid(pod));
    ensure(reserved, || format!("{claim_name} is not reserved for pod {pod_name}"))
}
