//! A selector decides here and in the cluster; what the cluster would refuse never gets there.

use serde_json::json;

use super::view::{MODEL_DEPLOYMENT, replicas};
use crate::environment::{Environment, TEAM};
use crate::failure::{Failure, Outcome, ensure, not_yet, until};
use crate::kube_api::{Mode, Target, condition, conditions, text};
use crate::manifests;
use crate::resources::RESOURCE_CLAIM_TEMPLATE;

/// The deployment says what is wrong and composes nothing; a claim with the same selector is refused by DRA.
pub(super) async fn refused_by_us_first(environment: &mut Environment) -> Outcome {
    const NAME: &str = "ill-typed";
    let deployment = manifests::own("ill-typed.yaml")?;
    let selector = deployment[0]
        .pointer("/spec/template/spec/engines/0/members/0/nodeSelector/devices/0/selectors/0/cel");
    let selector = selector.ok_or_else(|| Failure::Wrong("the manifest has no selector".to_owned()))?;
    environment.apply("ill-typed.yaml").await?;
    let kube = environment.control();
    until("the deployment says that its selector is invalid", async || {
        let found = kube.get(MODEL_DEPLOYMENT, TEAM, NAME).await.map_err(not_yet)?;
        let scheduled = condition(&found, "ReplicasScheduled");
        match scheduled {
            Some(condition) if condition["reason"] == "InvalidNodeSelector" => Ok(()),
            _ => Err(conditions(&found)),
        }
    })
    .await?;
    let composed = replicas(environment, NAME).await?;
    ensure(composed.is_empty(), || format!("{} replicas were composed all the same", composed.len()))?;

    let request = json!({"name": "gpu", "exactly": {
        "deviceClassName": "gpu.nvidia.com",
        "selectors": [{"cel": {"expression": selector}}],
    }});
    let template = json!({
        "apiVersion": RESOURCE_CLAIM_TEMPLATE.api_version(),
        "kind": RESOURCE_CLAIM_TEMPLATE.kind,
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    });
    match environment.workload("west")?.create(&template, Mode::DryRun).await {
        Err(Failure::Api { code: 422, message, .. }) if message.contains("cel") => {}
        other => {
            let seen = other.map(|object| text(&object, "/metadata/name").to_owned());
            return Err(Failure::Wrong(format!("DRA was expected to refuse {selector}: {seen:?}")));
        }
    }
    kube.delete(Target::new(MODEL_DEPLOYMENT, TEAM, NAME)).await
}
