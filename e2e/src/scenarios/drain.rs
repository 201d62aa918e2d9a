//! Emptying a cluster.

use modelplane_api::inference_cluster::InferenceCluster;
use modelplane_api::kind::Object as _;
use serde_json::json;

use super::view::{replicas, serves, spread};
use crate::environment::Environment;
use crate::failure::{Outcome, not_yet, until};
use crate::kube_api::Target;
use crate::resources::{DEPLOYMENT, Resource};

const INFERENCE_CLUSTER: Resource = Resource::of(InferenceCluster::INFO);

/// A `NoExecute` taint moves every replica away, and their workloads leave the cluster.
pub(super) async fn by_taint(environment: &mut Environment) -> Outcome {
    let target = Target::new(INFERENCE_CLUSTER, "", "west");
    let taints = json!({"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}});
    environment.control().merge(target, "", &taints).await?;
    until("all replicas are on the other cluster", async || {
        let spread = spread(&replicas(environment, "qwen").await.map_err(not_yet)?);
        let moved = spread.len() == 1 && spread.get("east") == Some(&2);
        if moved { Ok(()) } else { Err(format!("{spread:?}")) }
    })
    .await?;
    serves(environment, "qwen", 2).await?;
    until("no workload is left on the drained cluster", async || {
        let left = environment.workload("west").map_err(not_yet)?.list(DEPLOYMENT, "", "").await;
        match left.map_err(not_yet)?.len() {
            0 => Ok(()),
            count => Err(format!("{count} Deployments")),
        }
    })
    .await?;
    environment.control().merge(target, "", &json!({"spec": {"taints": null}})).await.map(drop)
}
