//! The function server dies while it is needed.

use std::time::Duration;

use serde_json::json;

use super::view::{MODEL_DEPLOYMENT, objects_of, replicas, serves, uids};
use crate::environment::{Environment, TEAM};
use crate::failure::{Outcome, ensure, not_yet, throughout};
use crate::kube_api::{Target, name};

/// Killed in the middle of a change, and gone for a while: everything stays; back again, the change is made.
pub(super) async fn loses_nothing(environment: &mut Environment) -> Outcome {
    let replicas_before = serves(environment, "qwen", 2).await?;
    let before = uids(&replicas_before);
    let mut objects = Vec::new();
    for replica in &replicas_before {
        objects.extend(objects_of(environment, replica).await?);
    }
    let objects = uids(&objects);
    ensure(!objects.is_empty(), || "the replicas have no Objects".to_owned())?;

    let target = Target::new(MODEL_DEPLOYMENT, TEAM, "qwen");
    environment.control().merge(target, "", &json!({"spec": {"replicas": 4}})).await?;
    environment.function.kill();
    throughout("nothing is lost while the function is gone", Duration::from_secs(15), async || {
        let now = uids(&replicas(environment, "qwen").await.map_err(not_yet)?);
        let found = environment.control().get(MODEL_DEPLOYMENT, TEAM, "qwen").await.map_err(not_yet)?;
        if found["status"]["replicas"]["ready"] == 4 {
            return Err("the change was made without the function".to_owned());
        }
        let lost = before.iter().find(|(name, uid)| now.get(*name) != Some(uid));
        lost.map_or(Ok(()), |(name, _)| Err(format!("replica {name} is not what it was")))
    })
    .await?;
    environment.function.start_again().await?;
    let after = serves(environment, "qwen", 4).await?;
    let now = uids(&after);
    let kept = before.iter().all(|(name, uid)| now.get(name) == Some(uid));
    ensure(kept, || format!("replicas were replaced: {before:?}, then {now:?}"))?;
    let mut there = Vec::new();
    for replica in after.iter().filter(|replica| before.contains_key(name(replica))) {
        there.extend(objects_of(environment, replica).await?);
    }
    let there = uids(&there);
    ensure(there == objects, || format!("Objects were replaced: {objects:?}, then {there:?}"))?;
    // Leaves room for the scenarios that follow.
    environment.control().merge(target, "", &json!({"spec": {"replicas": 2}})).await?;
    serves(environment, "qwen", 2).await.map(drop)
}
