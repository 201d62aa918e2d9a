//! A cluster with replicas on it cannot be deleted by accident.

use std::time::Duration;

use modelplane_api::inference_cluster::InferenceCluster;
use modelplane_api::kind::Object as _;

use super::view::{remove, replicas, spread};
use crate::environment::Environment;
use crate::failure::{Failure, Outcome, ensure, not_yet, throughout, until};
use crate::kube_api::{Target, conditions, list};
use crate::resources::{CLUSTER_USAGE, GATEWAY, Resource};

const INFERENCE_CLUSTER: Resource = Resource::of(InferenceCluster::INFO);

/// The request is refused while there are replicas; once they are gone it is carried out by itself, and the
/// cluster is left without what had been installed on it.
pub(super) async fn held(environment: &mut Environment) -> Outcome {
    let kube = environment.control();
    let placed = spread(&replicas(environment, "qwen").await?);
    ensure(placed.contains_key("east"), || format!("no replica on east: {placed:?}"))?;
    let target = Target::new(INFERENCE_CLUSTER, "", "east");
    let usages = kube.list(CLUSTER_USAGE, "", "").await?;
    ensure(!usages.is_empty(), || "there is no ClusterUsage".to_owned())?;
    match kube.delete(target).await {
        Err(Failure::Api { code: 403 | 409, message, .. }) if message.contains("ModelReplica") => {}
        Err(other) => return Err(other),
        Ok(()) => return Err(Failure::Wrong("the deletion was accepted".to_owned())),
    }
    throughout("the cluster is not being deleted", Duration::from_secs(5), async || {
        let found = kube.get(INFERENCE_CLUSTER, "", "east").await.map_err(not_yet)?;
        let deleted = &found["metadata"]["deletionTimestamp"];
        if deleted.is_null() { Ok(()) } else { Err(format!("deletionTimestamp {deleted}")) }
    })
    .await?;
    remove(environment, "qwen").await?;
    until("the cluster is gone", async || {
        match kube.find(INFERENCE_CLUSTER, "", "east").await.map_err(not_yet)? {
            None => Ok(()),
            Some(found) => Err(format!(
                "{}; usages: {}",
                conditions(&found),
                list(&found, "/spec/crossplane/resourceRefs").len()
            )),
        }
    })
    .await?;
    until("its gateway is gone from the cluster", async || {
        let left = environment.workload("east").map_err(not_yet)?.list(GATEWAY, "", "").await;
        match left.map_err(not_yet)?.len() {
            0 => Ok(()),
            count => Err(format!("{count} Gateways")),
        }
    })
    .await
}
