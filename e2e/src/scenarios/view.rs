//! What scenarios look at again and again.

use std::collections::BTreeMap;

use modelplane_api::kind::Object as _;
use modelplane_api::model_deployment::ModelDeployment;
use modelplane_api::model_replica::ModelReplica;
use modelplane_api::names::{CLUSTER_LABEL, DEPLOYMENT_LABEL, WORKLOAD_NAMESPACE};
use serde_json::Value;

use crate::environment::{Environment, TEAM};
use crate::failure::{Outcome, not_yet, until};
use crate::kube_api::{conditions, is_true, label, list, name, text, uid};
use crate::resources::{DEPLOYMENT, OBJECT, Resource};

/// ModelDeployment.
pub(super) const MODEL_DEPLOYMENT: Resource = Resource::of(ModelDeployment::INFO);
/// ModelReplica.
pub(super) const MODEL_REPLICA: Resource = Resource::of(ModelReplica::INFO);

/// The replicas of a deployment.
pub(super) async fn replicas(environment: &Environment, deployment: &str) -> Outcome<Vec<Value>> {
    let labels = format!("{DEPLOYMENT_LABEL}={deployment}");
    let mut replicas = environment.control().list(MODEL_REPLICA, TEAM, &labels).await?;
    replicas.sort_by(|a, b| name(a).cmp(name(b)));
    Ok(replicas)
}

/// How many replicas a deployment has on each cluster.
pub(super) fn spread(replicas: &[Value]) -> BTreeMap<String, usize> {
    let mut spread = BTreeMap::new();
    for replica in replicas {
        *spread.entry(label(replica, CLUSTER_LABEL).to_owned()).or_default() += 1;
    }
    spread
}

/// Unique ids by name.
pub(super) fn uids(objects: &[Value]) -> BTreeMap<String, String> {
    objects.iter().map(|object| (name(object).to_owned(), uid(object).to_owned())).collect()
}

/// Waits until a deployment has this many replicas and they, and their workloads, are ready; returns them.
pub(super) async fn serves(environment: &Environment, deployment: &str, count: usize) -> Outcome<Vec<Value>> {
    let statement = format!("ModelDeployment {deployment} is ready with {count} replicas");
    until(&statement, async || {
        let kube = environment.control();
        let found = kube.get(MODEL_DEPLOYMENT, TEAM, deployment).await.map_err(not_yet)?;
        let replicas = replicas(environment, deployment).await.map_err(not_yet)?;
        let ready = found.pointer("/status/replicas/ready").and_then(Value::as_u64);
        if replicas.len() != count || ready != Some(count as u64) || !is_true(&found, "Ready") {
            let each: Vec<String> = replicas
                .iter()
                .map(|replica| format!("{}: {}", name(replica), conditions(replica)))
                .collect();
            return Err(format!("{}\n  {}", conditions(&found), each.join("\n  ")));
        }
        for replica in &replicas {
            let workload = workload(environment, replica).await.map_err(not_yet)?;
            if !is_true(&workload, "Available") {
                return Err(format!("Deployment {}: {}", name(&workload), conditions(&workload)));
            }
        }
        Ok(replicas)
    })
    .await
}

/// The one workload of a replica of a single engine, on the cluster it was placed on.
pub(super) async fn workload(environment: &Environment, replica: &Value) -> Outcome<Value> {
    let kube = environment.workload(text(replica, "/spec/clusterName"))?;
    let name = modelplane_api::names::workload_name(name(replica), "engine");
    kube.get(DEPLOYMENT, WORKLOAD_NAMESPACE, &name).await
}

/// The provider Objects that a replica composed.
pub(super) async fn objects_of(environment: &Environment, replica: &Value) -> Outcome<Vec<Value>> {
    let owned =
        |object: &Value| list(object, "/metadata/ownerReferences").iter().any(|o| o["uid"] == uid(replica));
    let mut objects = environment.control().list(OBJECT, TEAM, "").await?;
    objects.retain(owned);
    Ok(objects)
}

/// Waits until a deployment, its replicas and everything on the clusters are gone.
pub(super) async fn remove(environment: &Environment, deployment: &str) -> Outcome {
    let kube = environment.control();
    let gone = replicas(environment, deployment).await?;
    kube.delete(crate::kube_api::Target::new(MODEL_DEPLOYMENT, TEAM, deployment)).await?;
    until(&format!("ModelDeployment {deployment} and its replicas are gone"), async || {
        let found = kube.find(MODEL_DEPLOYMENT, TEAM, deployment).await.map_err(not_yet)?;
        let left = replicas(environment, deployment).await.map_err(not_yet)?;
        if found.is_none() && left.is_empty() { Ok(()) } else { Err(format!("{} replicas", left.len())) }
    })
    .await?;
    for replica in &gone {
        let name = name(replica);
        until(&format!("the workload of {name} is gone"), async || {
            match workload(environment, replica).await {
                Err(failure) if failure.is_not_found() => Ok(()),
                Err(failure) => Err(failure.describe()),
                Ok(_) => Err("it exists".to_owned()),
            }
        })
        .await?;
    }
    Ok(())
}
